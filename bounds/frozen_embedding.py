"""B4: dimension if the embeddings are fixed before the facts."""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from bounds.bound import Bound
from bounds.questions import shape
from bounds.record import Argument, Record
from bounds.rigorous import log2_factorial, lower, scaled
from geotheory.errors import InvalidArgument, positive_integer

__all__ = ["RECORD", "formula", "frozen_embedding"]


def frozen_embedding(
    entities: int, relations: int, hops: int = 1, *, width_factor: float = 4.0, bits: int = 32, heads: int = 0
) -> Bound:
    """Dimension, if embeddings and unembedding are fixed before the facts are drawn (B4).

    All facts must then lie in the shared weights: `P >= R log2 N!` bits at one hop (at several, `(R - 1) log2 N!`: B7). An MLP of
    width `c d` at `b` bits a weight has `b (2 c d^2 + c d + d)` bits, biases included; each attention head adds `2 b d^2` for its
    value and output. The least `d` with so many bits is the bound: `sqrt(R log2 N! / (2 c b))` and lower terms.

    Parameters
    ----------
    entities, relations, hops
        As for :func:`fixed_unembedding`.
    width_factor
        `c`, neurons per dimension.
    bits
        `b`, bits a weight.
    heads
        Attention heads whose values are learned.

    Source: the paper says that frozen embeddings need a dimension polynomial in `N`; this bound is **sharper** and explicit.

    Examples
    --------
    >>> frozen_embedding(4096, 16, width_factor=4, bits=2).value
    208.0
    """
    N, R, k, _ = shape(entities, relations, hops)
    b, h = positive_integer("bits", bits), positive_integer("heads", heads, least=0)
    if not width_factor > 0:
        raise InvalidArgument(f"width_factor must be above 0, not {width_factor!r}")
    c = Fraction(width_factor)
    tables = lower(scaled(log2_factorial(N), R if k == 1 else R - 1))
    needed = Fraction(tables)

    def held(d: int) -> Fraction:
        return b * (2 * c * d * d + c * d + d + 2 * h * d * d)

    # Every term grows with d, and the linear one alone holds enough at d = needed / b.
    d, enough = 0, ceil(needed / b)
    while d < enough:
        middle = (d + enough) // 2
        d, enough = (middle + 1, enough) if held(middle) < needed else (d, middle)
    return Bound(
        value=float(d),
        unit="dimensions",
        witness={"M": N, "R": R, "k": k},
        theorem="B4",
        mark="sharper",
        inequality=formula,
        statement=(
            f"dimension, if W_E and W_U are fixed before the facts and an MLP of width {float(c):g} d with {b} bits a weight "
            f"answers all {k}-hop queries of every {R:,} permutations of {N:,} entities"
        ),
    )


def formula(_: Mapping[str, int]) -> Any:
    """Bits of an MLP of width `c d` without heads against all tables of one hop."""
    from sympy import Ge

    from bounds import symbols as s

    return Ge(s.b * (2 * s.c * s.d**2 + s.c * s.d + s.d), s.R * s.log2_factorial(s.N))


RECORD = Record(
    "B4",
    "sharper",
    frozen_embedding,
    formula,
    (
        Argument("width_factor", "Neurons per dimension.", float),
        Argument("bits", "Bits a weight."),
        Argument("heads", "Attention heads whose values are learned."),
    ),
)
