"""What is asked of a model: how many entities, relations and hops; the trees that queries fill; easier questions."""

from collections.abc import Iterator

from geotheory.errors import positive_integer

__all__ = ["easier_questions", "fits", "nodes", "shape"]


def shape(entities: int, relations: int, hops: int, shared_bits: int = 0) -> tuple[int, int, int, int]:
    """`N, R, k, P`, refused by name where one is out of range."""
    return (
        positive_integer("entities", entities),
        positive_integer("relations", relations),
        positive_integer("hops", hops),
        positive_integer("shared_bits", shared_bits, least=0),
    )


def nodes(R: int, levels: int) -> int:
    """`1 + R + ... + R^(levels-1)`, the nodes of so many levels of a tree; 0 for no level."""
    return levels if R == 1 else (R**levels - 1) // (R - 1)


def fits(R: int, levels: int, N: int) -> bool:
    """Whether a tree of so many levels fits into `N` entities, without raising `R` to powers far beyond `N`."""
    return levels <= (N if R == 1 else N.bit_length()) and nodes(R, levels) <= N


def easier_questions(N: int, R: int, k: int) -> Iterator[tuple[int, int]]:
    """`(relations, hops)` whose bounds hold for `(R, k)` too, itself first.

    With the identity as relation `R`, words that end in it are all shorter words over the other `R - 1`. Trees of more than
    `log2 N` levels do not branch, and are no better than one level.
    """
    yield R, k
    if R > 1:
        yield from ((R - 1, j) for j in range(min(k - 1, N.bit_length()), 0, -1))
