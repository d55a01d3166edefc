"""The least that any model needs, and what the constructions need, side by side; and the inverse questions."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bounds.bound import Bound
from bounds.chain_of_thought import chain_of_thought
from bounds.fixed_unembedding import fixed_unembedding, formula
from bounds.free_unembedding import free_unembedding
from bounds.frozen_embedding import frozen_embedding
from bounds.real_dimension import real_dimension
from bounds.rigorous import log2_factorial, lower, scaled
from constructions.sizes import Size, size
from geotheory.digits import code_length
from geotheory.errors import InvalidArgument, positive_integer

__all__ = ["Row", "dimension_curves", "largest_entities", "largest_hops", "minimum", "smallest_bits"]


@dataclass(frozen=True)
class Row:
    """One regime: a construction, what it costs, and the least possible there.

    Attributes
    ----------
    regime
        What may depend on the facts, and how the model answers.
    construction
        Its name and options: `j` hops per step, `f` hops forward, `b` bits a coordinate. In brackets what is assumed where
        there is no construction, only a bound.
    d, width, depth, steps, parameters
        Of the construction; None without one.
    cost, least
        The quantity that the bound speaks of, for the construction and at least for every model. `least` is None where no bound
        applies.
    unit
        Of both: `"bits per subject"`, `"bits per embedding"` (of subject or attribute, the larger), `"shared bits"` or
        `"dimensions"`.
    theorem, mark
        Of the bound; the construction's own marks are in its docstring.
    """

    regime: str
    construction: str
    d: int | None
    width: int | None
    depth: int | None
    steps: int | None
    parameters: int | None
    cost: float | None
    least: float | None
    unit: str
    theorem: str
    mark: str

    @property
    def ratio(self) -> float | None:
        """How many times the least possible the construction needs."""
        return self.cost / self.least if self.cost is not None and self.least else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self) | {"ratio": self.ratio}


def minimum(
    entities: int, relations: int, hops: int = 1, bits: int = 1, shared_bits: int = 0, *, residual: bool = False
) -> list[Row]:
    """What each construction needs to answer every `k`-hop query, beside the least that any model needs.

    Parameters
    ----------
    entities, relations, hops
        `N`, `R`, `k`, each at least 1.
    bits
        Bits a coordinate of the constructions that have amplitude codes.
    shared_bits
        `P`: bits that the other model, whose least is shown, may have in its shared weights.
    residual
        Size the constructions with a residual stream.

    Returns
    -------
    list of Row
        Fixed unembedding (B1), chain of thought for each number of hops per step (B7), facts in the MLP (B3), free unembedding
        (B2), frozen embeddings (B4) and real weights (B6).

    Examples
    --------
    >>> row = minimum(4096, 16, 2)[0]
    >>> row.construction, row.cost, round(row.least, 2), row.theorem
    ('direct', 3072, 3071.23, 'B1')
    """
    N, R, k = (
        positive_integer(what, n) for what, n in (("entities", entities), ("relations", relations), ("hops", hops))
    )
    P = positive_integer("shared_bits", shared_bits, least=0)
    shape: dict[str, Any] = {"entities": N, "relations": R, "hops": k, "residual": residual}
    rows = []

    def add(regime: str, name: str, cost: Size | None, used: float | None, unit: str, bound: Bound) -> None:
        row = Row(regime, name, None, None, None, None, None, used, bound.value, unit, bound.theorem, bound.mark)
        if cost is not None:
            row = replace(row, **{f: getattr(cost, f) for f in ("d", "width", "depth", "steps", "parameters")})
        rows.append(row)

    fixed = fixed_unembedding(N, R, k, P)
    for kind in ("single_hop", "direct") if k == 1 else ("direct",):
        cost = size(kind, **shape, bits=bits)
        add("fixed unembedding", kind, cost, cost.bits_in, "bits per subject", fixed)
    for j in range(1, max(2, k)):
        cost = size("chain_of_thought", **shape, bits=bits, hops_per_step=j)
        name = "chain_of_thought" + (f", j = {j}" if j > 1 else "")
        add("chain of thought", name, cost, cost.bits_in, "bits per subject", chain_of_thought(N, R, k, j, P))
    cost = size("key_value", **shape)
    facts = Bound(
        # Without a bit in the subjects' rows B1 reads P >= R log2 (N - u)_l; over all entities at one hop, and by B7 at several.
        value=lower(scaled(log2_factorial(N), R if k == 1 else R - 1)),
        unit="bits",
        witness={"M": N},
        theorem="B1" if k == 1 else "B7",
        mark="sharper",
        inequality=formula,
        statement="bits in the shared weights, if nothing else depends on the facts",
    )
    add("facts in the MLP", "key_value", cost, cost.bits_shared, "shared bits", facts)
    splits = [(f, size("meet_in_middle", **shape, forward=f)) for f in range(k + 1)]
    f, cost = min(splits, key=lambda split: max(split[1].bits_in, split[1].bits_out))
    larger = max(cost.bits_in, cost.bits_out)
    add(
        "free unembedding",
        f"meet_in_middle, f = {f}",
        cost,
        larger,
        "bits per embedding",
        free_unembedding(N, R, k, P),
    )
    add("frozen embedding", "(MLP width 4 d, 32 bits a weight)", None, None, "dimensions", frozen_embedding(N, R, k))
    # One coordinate a block: amplitude codes as fine as need be.
    finest = min(24, code_length(N))
    cost = size("direct", **shape, bits=finest)
    real = real_dimension(N, R, k, width=cost.width)
    add("real weights", f"direct, b = {finest}", cost, cost.d, "dimensions", real)
    return rows


def dimension_curves(
    entities: Sequence[int], relations: int, hops: int = 1
) -> tuple[dict[str, list[int]], dict[str, list[float]]]:
    """Dimensions of the constructions at one bit a coordinate, and the bits per subject that are needed, for each `N`.

    Returns
    -------
    Two dictionaries: construction -> `d`, and "no steps" (B1) and, for several hops, "with steps" (B7) -> bits.

    Examples
    --------
    >>> sizes, least = dimension_curves([4096], 16, 2)
    >>> sizes["direct"], [round(bits, 2) for bits in least["no steps"]]
    ([3082], [3071.23])
    """
    kinds = ("direct", "meet_in_middle", "chain_of_thought", "key_value")
    sizes = {kind: [size(kind, entities=N, relations=relations, hops=hops).d for N in entities] for kind in kinds}
    least = {"no steps": [fixed_unembedding(N, relations, hops).bits for N in entities]}
    if hops > 1:
        least["with steps"] = [chain_of_thought(N, relations, hops).bits for N in entities]
    return sizes, least


# Inverse questions


def largest_entities(d: int, relations: int, hops: int = 1, *, kind: str = "direct", **options: Any) -> int:
    """The most entities that a construction can tell apart with a hidden state of dimension `d`.

    Raises
    ------
    InvalidArgument
        Even one entity needs more.

    Examples
    --------
    >>> largest_entities(196, 16, kind="single_hop")
    4096
    """
    d = positive_integer("d", d)
    return _largest("entities", lambda n: size(kind, entities=n, relations=relations, hops=hops, **options).d <= d, d)


def largest_hops(d: int, entities: int, relations: int, *, kind: str = "direct", **options: Any) -> int:
    """The most hops of a query with a hidden state of dimension `d`.

    Examples
    --------
    >>> largest_hops(3100, 4096, 16), largest_hops(226, 4096, 16, kind="chain_of_thought")
    (2, 512)
    """
    d = positive_integer("d", d)
    return _largest("hops", lambda n: size(kind, entities=entities, relations=relations, hops=n, **options).d <= d, d)


def smallest_bits(d: int, entities: int, relations: int, hops: int = 1, *, kind: str = "direct", **options: Any) -> int:
    """The fewest bits a coordinate with which a construction fits into dimension `d`.

    Raises
    ------
    InvalidArgument
        Even one coordinate a block does not fit.

    Examples
    --------
    >>> smallest_bits(100, 4096, 16, kind="single_hop")
    2
    """
    d = positive_integer("d", d)
    for bits in range(1, code_length(entities) + 1):
        if size(kind, entities=entities, relations=relations, hops=hops, bits=bits, **options).d <= d:
            return bits
    raise InvalidArgument(f"d = {d} is too small for {kind}: one coordinate a block needs more already")


def _largest(what: str, fits: Callable[[int], bool], d: int) -> int:
    if not fits(1):
        raise InvalidArgument(f"d = {d} is too small even for a single one of {what}")
    few = 1
    while fits(2 * few):
        few *= 2
    many = 2 * few
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(middle) else (few, middle)
    return few
