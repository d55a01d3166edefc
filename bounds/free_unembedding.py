"""B2: bits per embedding if the unembedding may learn, by joining trees ahead to trees behind."""

from collections.abc import Iterator, Mapping
from functools import partial
from operator import add
from typing import Any

from bounds.bound import Bound
from bounds.questions import easier_questions, nodes, shape
from bounds.record import SHARED_BITS, Argument, Record
from bounds.rigorous import Real, log2_factorial, log2_falling, lower, plus, scaled
from bounds.search import peak
from geotheory.errors import InvalidArgument, positive_integer

__all__ = ["RECORD", "formula", "free_unembedding", "split_witnesses"]


def free_unembedding(
    entities: int, relations: int, hops: int = 1, shared_bits: int = 0, forward: int | None = None
) -> Bound:
    """Bits per embedding, if the unembedding may depend on the facts too (B2): on the larger of `D_in` and `D_out`.

    With `D_in` bits per subject and `D_out` bits per attribute, for all `p + q + 1 = k` and integers `M, M'` such that `R^q`
    divides `F = M R^p`, `F <= M' R^q` and `M (1 + .. + R^p) + M' (1 + .. + R^q) <= N`,

        P + M D_in + M' D_out >= R R^q log2 (M')_(F / R^q);

    at one hop subjects and attributes may overlap, and `M <= M' <= N` is enough. So `max(D_in, D_out)` is at least the right side,
    less `P`, by `M + M'`. It grows as `R^ceil(k/2)`, and T5 meets this exponent.

    Parameters
    ----------
    entities, relations, hops, shared_bits
        As for :func:`fixed_unembedding`.
    forward
        `p`, from 0 to `k - 1`; None: the best.

    Easier questions, of one relation and some hops less, are asked too unless `forward` is given; the witness says which.

    Source: **new**.

    Examples
    --------
    >>> free_unembedding(4096, 4, 3).bits
    58.496...
    """
    N, R, k, P = shape(entities, relations, hops, shared_bits)
    if forward is not None and positive_integer("forward", forward, least=0) >= k:
        raise InvalidArgument(
            f"forward = {forward} leaves no hop between forward and backward trees: it must be below hops = {k}"
        )
    best, witness = 0.0, {"p": forward or 0, "q": k - 1 - (forward or 0), "M": 0, "M'": 0, "R": R, "k": k}
    for r, j in [(R, k)] if forward is not None else easier_questions(N, R, k):
        for p, M, other in _best_splits(N, r, j, P, forward):
            value = lower(scaled(plus(_log2_splits(r, j, p, M, other), -P), 1, M + other))
            if value > best:
                best, witness = value, {"p": p, "q": j - 1 - p, "M": M, "M'": other, "R": r, "k": j}
    return Bound(
        value=best,
        unit="bits",
        witness=witness,
        theorem="B2",
        mark="new",
        inequality=formula,
        statement=(
            f"bits in a subject's row of W_E or in an attribute's column of W_U, whichever has more, if a model with {P:,} bits in "
            f"all other weights answers all {k}-hop queries of every {R:,} permutations of {N:,} entities"
        ),
    )


def _log2_splits(R: int, k: int, p: int, M: int, other: int) -> Real:
    """`log2` of the choices of joining edges: for each relation and backward word, an injection of leaves into attributes."""
    q = k - 1 - p
    return scaled(log2_falling(other, M * R**p // R**q), R ** (q + 1))


def _best_splits(N: int, R: int, k: int, P: int, forward: int | None) -> Iterator[tuple[int, int, int]]:
    """`(p, M, M')`: the best `M` and `M'` for each split of the hops; of many splits, those at the ends and in the middle."""
    if k == 1:
        # Subjects and attributes may overlap; more attributes are better as long as there are as many subjects.
        yield 0, peak(lambda M: plus(_log2_splits(R, 1, 0, M, N), -P), lambda M: M + N, 1, N), N
        return
    if k > 2 * N.bit_length() + 1 and R > 1:
        return  # not even one tree ahead and one behind
    splits = range(k) if k <= 8 else sorted({0, k // 2 - 1, (k - 1) // 2, k // 2, k - 1})
    for p in splits if forward is None else (forward,):
        for M, other in _best_trees(N, R, p, k - 1 - p, P):
            yield p, M, other


def _best_trees(N: int, R: int, p: int, q: int, P: int) -> Iterator[tuple[int, int]]:
    """`(M, M')`: how many trees ahead and behind are best for one split; where few fit, the best `M'` for every `M`."""
    ahead, behind = nodes(R, p + 1), nodes(R, q + 1)
    # R^q divides M R^p: M is a multiple of `unit`, and each unit needs `per` attributes.
    unit, per = R ** max(0, q - p), R ** max(0, p - q)
    most = N // (unit * ahead + per * behind)

    def edge(units: int) -> int:
        """The most trees behind, beside so many units ahead."""
        room: int = (N - units * unit * ahead) // behind
        return room

    def value(units: int, other: int) -> Real:
        return plus(_log2_splits(R, p + q + 1, p, units * unit, other), -P)

    # The right side grows faster than M and M' together, so that trees should fill all entities, and along this edge it is
    # concave: log Gamma(M' + 1) - log Gamma(M' - L + 1), M' falling and L growing in proportion to M. Rounding M' bends
    # this a little, which is felt where there are few trees: then all are tried. For fixed M it is concave in M' too.
    if most > 32:
        units = peak(lambda units: value(units, edge(units)), lambda units: units * unit + edge(units), 1, most)
        yield units * unit, edge(units)
        return
    for units in range(1, most + 1):
        M = units * unit
        yield M, peak(partial(value, units), partial(add, M), units * per, edge(units))


def split_witnesses(N: int, R: int, k: int, forward: int | None = None) -> Iterator[tuple[int, int, int, Real]]:
    """Witnesses `(p, M, M', right side)` of B2, along the edge of what fits into `N` entities.

    The right side grows faster than `M` and `M'` together, so that the largest trees that fit are best; what is left to choose is
    the ratio of `M` and `M'`, of which some dozens are tried.
    """
    if k == 1:
        yield 0, N, N, scaled(log2_factorial(N), R)
    deepest = N.bit_length() + 1
    # With one relation all splits are alike; with more, no tree deeper than log2 N fits.
    splits = range(max(0, k - 1 - deepest), min(k, deepest)) if R > 1 else range(min(k, 1))
    for p in splits if forward is None else (forward,):
        q = k - 1 - p
        if max(p, q) > deepest and R > 1:
            continue
        ahead, behind = nodes(R, p + 1), nodes(R, q + 1)
        # R^q divides M R^p; each M' takes at most all of its R^q leaves of a colour.
        unit = R ** max(0, q - p)
        per = R ** max(0, p - q)  # F / R^q for M = unit
        most = N // (unit * ahead + per * behind)
        if not most:
            continue
        for times in _spread(most):
            M = times * unit
            other = (N - M * ahead) // behind
            length = times * per
            yield p, M, other, scaled(log2_falling(other, length), R ** (q + 1))
            if other > length:  # the smallest M' that takes all leaves: every target is used
                yield p, M, length, scaled(log2_factorial(length), R ** (q + 1))


def _spread(most: int) -> list[int]:
    """Some dozens of integers from 1 to `most`, evenly by their logarithms and near the upper end."""
    steps = {1, most}
    value = most
    while value > 1 and len(steps) < 64:
        value = value * 4 // 5
        steps.add(max(1, value))
    return sorted(steps, reverse=True)


def formula(_: Mapping[str, int]) -> Any:
    """`P + M D_in + M' D_out` against the choices of joining edges."""
    from sympy import Ge

    from bounds import symbols as s

    joined = s.R ** (s.q + 1) * s.log2_falling(s.M_out, s.M * s.R ** (s.p - s.q))
    return Ge(s.P + s.M * s.D_in + s.M_out * s.D_out, joined)


FORWARD = Argument("forward", "Hops answered by the trees ahead (default: the best).")
RECORD = Record("B2", "new", free_unembedding, formula, (SHARED_BITS, FORWARD))
