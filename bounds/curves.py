"""The bounds as curves: bits per subject against shared bits (B3), and bits in against bits out (B2)."""

from collections.abc import Mapping
from dataclasses import dataclass

from bounds.fixed_unembedding import fixed_unembedding
from bounds.free_unembedding import split_witnesses
from bounds.record import SHARED_BITS, CurveRecord
from bounds.rigorous import log2_factorial, lower, scaled, upper
from constructions.sizes import size
from geotheory.errors import InvalidArgument, positive_integer

__all__ = ["SPLIT", "THRESHOLD", "SplitCurve", "ThresholdCurve", "split_curve", "threshold_curve"]


@dataclass(frozen=True)
class ThresholdCurve:
    """Points `(P, D)`: with `P` shared bits at least `D` bits per subject are needed (B3); from `everything` on, none."""

    points: tuple[tuple[int, float], ...]
    everything: int


@dataclass(frozen=True)
class SplitCurve:
    """Points `(D_in, D_out)`: with `D_in` bits per subject at least `D_out` bits per attribute are needed (B2).

    `meet_in_middle` has T5's `(D_in, D_out)` for each split, by its `f`.
    """

    points: tuple[tuple[float, float], ...]
    meet_in_middle: Mapping[int, tuple[int, int]]


def threshold_curve(entities: int, relations: int, hops: int = 1, *, points: int = 40) -> ThresholdCurve:
    """B1 as a curve over the shared bits `P` (B3).

    It starts at about `R^k log2 N` and falls, almost on a straight line, to 0 where `P` holds nearly the whole table: only shared
    weights with about `N R log2 N` bits (T4: width `N R`) escape. Depth does not help, since `P` counts all layers.

    Source: the "or" of the paper's Theorem 4.2, **sharper**.

    Examples
    --------
    >>> curve = threshold_curve(4096, 16, 2)
    >>> curve.points[0]
    (0, 3071.23...)
    >>> curve.points[-1][1]
    0.0
    """
    N, R, count = (
        positive_integer("entities", entities),
        positive_integer("relations", relations),
        positive_integer("points", points, 2),
    )
    everything = int(upper(scaled(log2_factorial(N), R))) + 1
    # Closer together towards 0, where the best number of roots changes from one to as many as fit.
    at = sorted({everything * i**3 // (count - 1) ** 3 for i in range(count)})
    return ThresholdCurve(tuple((P, fixed_unembedding(N, R, hops, P).bits) for P in at), everything)


def split_curve(entities: int, relations: int, hops: int, shared_bits: int = 0, *, points: int = 60) -> SplitCurve:
    """B2 as a curve: the least `D_out` for each `D_in`, next to the points of meet in the middle (T5).

    About the hyperbola `D_in D_out ~ R^k log2^2 N`; T5 lies above it, within a factor `1 + 1/R` of its tangents as `N` grows.

    Source: **new**.

    Examples
    --------
    >>> curve = split_curve(10**6, 4, 3)
    >>> all(a[1] >= b[1] for a, b in zip(curve.points, curve.points[1:]))
    True
    """
    N, R, k = (
        positive_integer(what, n) for what, n in (("entities", entities), ("relations", relations), ("hops", hops))
    )
    P, count = positive_integer("shared_bits", shared_bits, least=0), positive_integer("points", points, 2)
    lines = [(lower(right) - P, M, other) for _, M, other, right in split_witnesses(N, R, k)]
    if not lines:
        raise InvalidArgument(
            f"no two trees of {k} hops fit into {N:,} entities: take fewer hops or relations, or more entities"
        )
    most = max(right / M for right, M, _ in lines)
    found = []
    for i in range(count):
        D_in = max(1.0, most) ** (i / (count - 1))
        found.append((D_in, max(0.0, *((right - M * D_in) / other for right, M, other in lines))))
    costs = {f: size("meet_in_middle", entities=N, relations=R, hops=k, forward=f) for f in range(k + 1)}
    return SplitCurve(tuple(found), {f: (cost.bits_in, cost.bits_out) for f, cost in costs.items()})


THRESHOLD = CurveRecord("B3", threshold_curve, ("P shared bits", "D bits per subject"), "plot_threshold")
SPLIT = CurveRecord("B2", split_curve, ("D_in", "D_out"), "plot_split", (SHARED_BITS,))
