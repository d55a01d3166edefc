"""Kinds of R-regular edge-coloured graphs (THEORY 6): one relation is one permutation of the entities, with conditions."""

from dataclasses import dataclass

from geotheory.errors import UnknownName

__all__ = ["KINDS", "Kind", "kind_named"]


@dataclass(frozen=True)
class Kind:
    """What the permutations of the colours must satisfy.

    Attributes
    ----------
    name
        As it is asked for.
    undirected
        Every colour is its own inverse.
    loops
        An entity may be its own attribute.
    simple
        Different colours never join the same pair of entities in the same direction.
    """

    name: str
    undirected: bool
    loops: bool
    simple: bool


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("permutation", undirected=False, loops=True, simple=False),
        Kind("derangement", undirected=False, loops=False, simple=False),
        Kind("involution", undirected=True, loops=True, simple=False),
        Kind("matching", undirected=True, loops=False, simple=False),
        Kind("simple", undirected=False, loops=False, simple=True),
        Kind("simple_matching", undirected=True, loops=False, simple=True),
    )
}


def kind_named(name: str) -> Kind:
    """The kind of this name; spaces and hyphens may stand for underscores. Raises UnknownName with the nearest."""
    kind = KINDS.get(name.strip().replace("-", "_").replace(" ", "_"))
    if kind is None:
        raise UnknownName("kind of graph", name, KINDS)
    return kind
