"""Lower bounds by counting answer tables (THEORY 5): bits that the facts must occupy somewhere in the weights."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil
from operator import add

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
    Where no tree of `R^(k-1)` leaves fits into `N` entities, or where whole trees leave room, trees that branch into the first
    `rho < R` relations only are counted, and fewer hops of one relation less: with the identity as one relation, a model answers
    all shorter queries of the others. The witness says which, `rho` where trees are narrower. The bound grows with `N` and `R` and
    falls with `P`; the search finds the best `rho` unless more than 32 are in question. It need not grow with `k`, and what it
    bounds does not either: for `N = R = 2` one subject has 4 tables at one hop, and 2 at two.

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
    best, witness = 0.0, {"M": 1, "R": R, "k": k}
    for r, j in _easier_questions(N, R, k):
        for value, M, rho in _best_roots(N, r, j, spare):
            if value > best:
                best, witness = value, {"M": M, "R": r, "k": j} | ({"rho": rho} if rho < r else {})
    most = "every" if share == 1 else f"a share {share:g} of all"
    return Bound(
        value=best,
        unit="bits",
        witness=witness,
        theorem="B1",
        mark="sharper",
        statement=(
            f"bits in each subject's row, if a model with {P:,} bits in all other weights and an unembedding that does not depend "
            f"on the facts answers all {k}-hop queries of {most} {R:,} permutations of {N:,} entities"
        ),
    )


# Narrower trees that are tried where the room of the widest limits the number of roots.
_NARROWER = 32


def _easier_questions(N: int, R: int, k: int) -> Iterator[tuple[int, int]]:
    """`(relations, hops)` whose bounds hold for `(R, k)` too, itself first.

    With the identity as relation `R`, words that end in it are all shorter words over the other `R - 1`. Trees of more than
    `log2 N` levels do not branch, and are no better than one level.
    """
    yield R, k
    if R > 1:
        yield from ((R - 1, j) for j in range(min(k - 1, N.bit_length()), 0, -1))


def log2_tables(N: int, R: int, k: int, M: int, rho: int) -> Real:
    """Answer tables on `M` roots whose trees branch into the first `rho` of `R` relations, at least.

    The first `k - 1` levels are fixed so that all nodes are distinct. Each relation may then send the `l` leaves, injectively,
    wherever it has not sent one of the `u` inner nodes, and relations beyond `rho` have sent none:
    `((N - u)_l)^rho ((N)_l)^(R - rho)`. `rho = R` is B1 as the theory has it.
    """
    inner, leaves = M * nodes(rho, k - 1), M * rho ** (k - 1)
    inside = scaled(log2_falling(N - inner, leaves), rho)
    return plus(inside, scaled(log2_falling(N, leaves), R - rho)) if rho < R else inside


def _best_roots(N: int, R: int, k: int, spare: Real) -> Iterator[tuple[float, int, int]]:
    """`(bound, M, rho)`: the best `M` for each `rho` that may be best; `spare` is `log2(share) - P`."""
    if k > N:
        return  # no path of k entities; and for one relation g^k may be the identity for every g
    if k == 1:
        yield *_best_forest(N, R, 1, R, spare), R  # a root alone: nothing to branch
        return
    widest = _last(1, min(R, N), lambda rho: fits(rho, k, N))
    for rho in range(widest, max(0, widest - _NARROWER), -1):
        bound, M = _best_forest(N, R, k, rho, spare)
        yield bound, M, rho
        if N // nodes(rho, k) > M:
            return  # narrower trees leave room for more roots, and these are not wanted


def _best_forest(N: int, R: int, k: int, rho: int, spare: Real) -> tuple[float, int]:
    """The best bound from trees that branch into `rho` relations, and its number of roots."""

    def value(M: int) -> Real:
        return plus(log2_tables(N, R, k, M, rho), spare)

    # log2_tables is concave in M: a sum of F(aM, cM) with F(u, l) = log2 (N - u)_l, whose second derivative is a positive
    # multiple of a^2 psi'(N - aM + 1) - (a + c)^2 psi'(N - (a + c)M + 1), and psi' is positive and falls. A concave function
    # plus a constant, divided by M, rises and then falls; without shared bits it is 0 at M = 0 and only falls.
    M = 1 if spare == 0 else _peak(value, lambda M: M, 1, N // nodes(rho, k))
    return lower(scaled(value(M), 1, M)), M


def _last(first: int, last: int, holds: Callable[[int], bool]) -> int:
    """The last integer up to which `holds`, by halving; at `first` it does."""
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if holds(middle) else (first, middle - 1)
    return first


def _peak(value: Callable[[int], Real], divisor: Callable[[int], int], first: int, last: int) -> int:
    """Where `value / divisor`, which rises and then falls, is largest: the first integer whose successor is no better.

    Balls are compared, not floats: near 10^18 neighbours differ by less than a float can show, and a rise looks flat.
    """
    while first < last:
        middle = (first + last) // 2
        here, there = value(middle), value(middle + 1)
        if above(scaled(there, divisor(middle)), scaled(here, divisor(middle + 1))):
            first = middle + 1
        else:
            last = middle
    return first


# B2


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
    >>> fixed = fixed_unembedding(4096, 4, 3)
    >>> 0 < free_unembedding(4096, 4, 3).bits < fixed.bits
    True
    """
    N, R, k, P = _shape(entities, relations, hops, shared_bits)
    if forward is not None and positive_integer("forward", forward, least=0) >= k:
        raise InvalidArgument(
            f"forward = {forward} leaves no hop between forward and backward trees: it must be below hops = {k}"
        )
    best, witness = 0.0, {"p": forward or 0, "q": k - 1 - (forward or 0), "M": 0, "M'": 0, "R": R, "k": k}
    for r, j in [(R, k)] if forward is not None else _easier_questions(N, R, k):
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
        yield 0, _peak(lambda M: plus(_log2_splits(R, 1, 0, M, N), -P), lambda M: M + N, 1, N), N
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
        units = _peak(lambda units: value(units, edge(units)), lambda units: units * unit + edge(units), 1, most)
        yield units * unit, edge(units)
        return
    for units in range(1, most + 1):
        M = units * unit
        yield M, _peak(partial(value, units), partial(add, M), units * per, edge(units))


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

    If a subject's row reaches the logits through the hidden layer alone, and its share of each pre-activation does not depend on
    the query and takes at most `2^bits` values, then `width * bits` is at least the logarithm of the number of answer tables of one
    subject, hence at least B1 with `M = 1`. T1 and T2 with sign codes meet it within the ceiling.

    Not so with a residual stream past the layer: for `R = k = 1` it alone can carry the answer's code to the unembedding.

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
            "neurons of one hidden layer, if nothing but the subjects' rows depends on the facts, a row reaches the logits through "
            "this layer alone (no residual stream past it), and its share of each pre-activation does not depend on the query and "
            f"takes at most 2^{c} values"
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
