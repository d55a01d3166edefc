"""Lower bounds by counting answer tables (THEORY 5): bits that the facts must occupy somewhere in the weights."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil

from bounds.bound import Bound
from bounds.rigorous import Real, above, log2_factorial, log2_falling, log2_share, lower, plus, scaled
from geotheory.errors import InvalidArgument, positive_integer

__all__ = ["chain_of_thought", "fixed_unembedding", "free_unembedding", "frozen_embedding", "split_witnesses", "width"]


def _shape(entities: int, relations: int, hops: int, shared_bits: int = 0) -> tuple[int, int, int, int]:
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


# B1


def fixed_unembedding(
    entities: int, relations: int, hops: int = 1, shared_bits: int = 0, *, share: float = 1.0
) -> Bound:
    """Bits per subject, if the unembedding does not depend on the facts (B1).

    A family of models with `P = shared_bits` bits in its shared weights and `D` bits in each subject's row that answers all
    `k`-hop queries of every tuple of `R` permutations of `N` entities has, for every `M` with `u + l <= N`,

        P + M D >= R log2 (N - u)_l,   l = M R^(k-1),   u = M (1 + R + ... + R^(k-2)).

    The best `M` is taken. With `P = 0` this is about `R^k log2 N`: met by T1 exactly where `N` is a power of two.

    Parameters
    ----------
    entities, relations, hops
        `N`, `R`, `k`, each at least 1. Any size: 10^18 entities take milliseconds.
    shared_bits
        `P >= 0`. 0 is a fact-independent decoder.
    share
        For one hop: the share `1 - eta` of all tuples that the family must answer ("most instead of all"). Every value of the
        answer table on `M` roots is taken by equally many tuples, so that `log2(share)` is added to the right side.

    Returns
    -------
    Bound
        Rounded down; 0 where `P` could hold everything.

    Raises
    ------
    InvalidArgument
        A number is out of range or no integer; a share below 1 with several hops, for which nothing is proved.

    Notes
    -----
    Where no tree of `R^(k-1)` leaves fits into `N` entities, the same bound is taken for fewer relations, or for fewer hops and one
    relation less: a model that answers all `k`-hop queries also answers those of the words over `R' <= R` relations; and with the
    identity as one relation, all shorter queries of the others.

    Source: the paper's Theorem 4.2 has `d = Omega~(R^k)` or width `Omega(N R)`; for every finite `N, R, k` it is **sharper**.

    Examples
    --------
    >>> fixed_unembedding(4096, 16).bits
    192.0
    >>> fixed_unembedding(4096, 16, 2).bits
    3071.23...
    """
    N, R, k, P = _shape(entities, relations, hops, shared_bits)
    if not 0 < share <= 1:
        raise InvalidArgument(f"share must lie in (0, 1], not {share!r}")
    if share < 1 and k > 1:
        raise InvalidArgument(
            f"a share of all tuples is covered for one hop only, not for {k}: the worst case is what is proved"
        )
    spare = plus(log2_share(share), -P)
    best, roots, (r, j) = max((_best_roots(N, r, j, spare) for r, j in _fitting(N, R, k)), default=(0.0, 1, (R, k)))
    most = "every" if share == 1 else f"a share {share:g} of all"
    return Bound(
        value=best,
        unit="bits",
        witness={"M": roots, "R": r, "k": j},
        theorem="B1",
        mark="sharper",
        statement=(
            f"bits in each subject's row, if a model with {P:,} bits in all other weights and an unembedding that does not depend "
            f"on the facts answers all {k}-hop queries of {most} {R:,} permutations of {N:,} entities"
        ),
    )


def _fitting(N: int, R: int, k: int) -> list[tuple[int, int]]:
    """Pairs (relations, hops) whose bound holds for `(R, k)` and whose trees fit into `N` entities."""
    shapes = []
    for j, most in [(k, R), *((j, R - 1) for j in range(min(k - 1, N.bit_length()), 0, -1))]:
        # The most relations whose tree of one root fits; more relations mean more tables.
        few, many = 0, most
        while few < many:
            middle = (few + many + 1) // 2
            few, many = (middle, many) if fits(middle, j, N) else (few, middle - 1)
        if few:
            shapes.append((few, j))
        if few == most:
            break  # fewer hops of as many relations have fewer leaves
    return shapes  # none for one relation and k > N hops: g^k can be the identity for every g


def _best_roots(N: int, R: int, k: int, spare: Real) -> tuple[float, int, tuple[int, int]]:
    """The best bound for words of `k` of `R` relations, its `M`, and `(R, k)`; `spare` is `log2(share) - P`."""
    inner, leaves = nodes(R, k - 1), R ** (k - 1)

    def value(M: int) -> Real:
        return scaled(plus(scaled(log2_falling(N - M * inner, M * leaves), R), spare), 1, M)

    # R log2 (N - u)_l is concave in M: its second derivative is a positive multiple of a^2 psi'(N - aM + 1) -
    # (a + c)^2 psi'(N - (a + c)M + 1) with a = inner, c = leaves, and psi' is positive and falls. A concave function plus a
    # constant, divided by M, rises and then falls; so the first M whose successor is no better is best.
    first, last = 1, N // (inner + leaves)
    while first < last:
        middle = (first + last) // 2
        if above(value(middle + 1), value(middle)):
            first = middle + 1
        else:
            last = middle
    return max(0.0, lower(value(first))), first, (R, k)


# B2


def free_unembedding(
    entities: int, relations: int, hops: int = 1, shared_bits: int = 0, forward: int | None = None
) -> Bound:
    """Bits per embedding, if the unembedding may depend on the facts too (B2): on the larger of `D_in` and `D_out`.

    With `D_in` bits per subject and `D_out` bits per attribute, for all `p + q + 1 = k` and integers `M, M'` such that `R^q`
    divides `F = M R^p`, `F <= M' R^q` and `M (1 + .. + R^p) + M' (1 + .. + R^q) <= N`,

        P + M D_in + M' D_out >= R R^q log2 (M')_(F / R^q);

    at one hop also `P + N D_in + N D_out >= R log2 N!`. So `max(D_in, D_out)` is at least the right side, less `P`, by `M + M'`.
    It grows as `R^ceil(k/2)`, and T5 meets this exponent.

    Parameters
    ----------
    entities, relations, hops, shared_bits
        As for :func:`fixed_unembedding`.
    forward
        `p`, from 0 to `k - 1`; None: the best.

    Source: **new**.

    Examples
    --------
    >>> fixed = fixed_unembedding(4096, 4, 3)
    >>> 0 < free_unembedding(4096, 4, 3).bits < fixed.bits
    True
    """
    N, R, k, P = _shape(entities, relations, hops, shared_bits)
    if forward is not None and positive_integer("forward", forward, least=0) >= k:
        raise InvalidArgument(
            f"forward = {forward} leaves no hop between forward and backward trees: it must be below hops = {k}"
        )
    best, witness = 0.0, {"p": 0, "q": k - 1, "M": 0, "M'": 0}
    for p, M, other, right in split_witnesses(N, R, k, forward):
        value = lower(scaled(plus(right, -P), 1, M + other))
        if value > best:
            best, witness = value, {"p": p, "q": k - 1 - p, "M": M, "M'": other}
    return Bound(
        value=best,
        unit="bits",
        witness=witness,
        theorem="B2",
        mark="new",
        statement=(
            f"bits in a subject's row of W_E or in an attribute's column of W_U, whichever has more, if a model with {P:,} bits in "
            f"all other weights answers all {k}-hop queries of every {R:,} permutations of {N:,} entities"
        ),
    )


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


# B4


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
    N, R, k, _ = _shape(entities, relations, hops)
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
        statement=(
            f"dimension, if W_E and W_U are fixed before the facts and an MLP of width {float(c):g} d with {b} bits a weight "
            f"answers all {k}-hop queries of every {R:,} permutations of {N:,} entities"
        ),
    )


# B5


def width(entities: int, relations: int, hops: int = 1, bits: int = 1) -> Bound:
    """Neurons of a single hidden layer behind a fact-independent decoder (B5).

    If the subject's share of each pre-activation takes at most `2^bits` values, then `width * bits` is at least the logarithm of
    the number of answer tables of one subject, hence at least B1 with `M = 1`. T1 and T2 with sign codes meet it within the
    ceiling.

    Parameters
    ----------
    entities, relations, hops
        As for :func:`fixed_unembedding`.
    bits
        `c >= 1`.

    Source: **new**.

    Examples
    --------
    >>> width(4096, 16).value
    192.0
    """
    c = positive_integer("bits", bits)
    tables = fixed_unembedding(entities, relations, hops)  # without shared bits a single root is best
    return replace(
        tables,
        value=lower(Fraction(tables.bits) / c),
        unit="neurons",
        theorem="B5",
        mark="new",
        statement=(
            "neurons of one hidden layer, if nothing but the subjects' rows depends on the facts and a subject's share of each "
            f"pre-activation takes at most 2^{c} values"
        ),
    )


# B7


def chain_of_thought(entities: int, relations: int, hops: int, hops_per_step: int = 1, shared_bits: int = 0) -> Bound:
    """Bits per subject, if every `j`-th entity of the chain is emitted and embedded again (B7).

    The first emitted entity answers a `j`-hop query from the subject's row alone: B1 with `k = j`, whatever the number of steps.
    If the unembedding may depend on the facts, `P + N (D_in + D_out) >= (R - 1) log2 N!` is left, since at most `N!` tuples share a
    table of `k`-hop answers.

    Parameters
    ----------
    entities, relations, hops, shared_bits
        As for :func:`fixed_unembedding`.
    hops_per_step
        `j`, from 1 to `hops`.

    Source: **sharper** for `j = 1`, **new** for more.

    Examples
    --------
    >>> chain_of_thought(4096, 16, hops=1000).bits
    192.0
    """
    _, _, k, _ = _shape(entities, relations, hops, shared_bits)
    j = positive_integer("hops_per_step", hops_per_step)
    if j > k:
        raise InvalidArgument(f"hops_per_step = {j} exceeds hops = {k}")
    first = fixed_unembedding(entities, relations, j, shared_bits)
    return replace(
        first,
        theorem="B7",
        mark="sharper" if j == 1 else "new",
        statement=first.statement.replace(f"{j}-hop queries", f"{k}-hop queries, emitting every {j}. entity,"),
    )
