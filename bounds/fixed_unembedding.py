"""B1: bits per subject behind a fixed unembedding, by counting the answer tables on some roots."""

from collections.abc import Iterator, Mapping
from typing import Any

from bounds.bound import Bound
from bounds.questions import easier_questions, fits, nodes, shape
from bounds.record import SHARED_BITS, Argument, Record
from bounds.rigorous import Real, log2_falling, log2_share, lower, plus, scaled
from bounds.search import last, peak
from geotheory.errors import InvalidArgument

__all__ = ["RECORD", "fixed_unembedding", "formula", "log2_tables", "tables_formula"]

SHARE = Argument("share", "Share of all tuples that must be answered (one hop).", float)


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
    N, R, k, P = shape(entities, relations, hops, shared_bits)
    if not 0 < share <= 1:
        raise InvalidArgument(f"share must lie in (0, 1], not {share!r}")
    if share < 1 and k > 1:
        raise InvalidArgument(
            f"a share of all tuples is covered for one hop only, not for {k}: the worst case is what is proved"
        )
    spare = plus(log2_share(share), -P)
    best, witness = 0.0, {"M": 1, "R": R, "k": k}
    for r, j in easier_questions(N, R, k):
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
        inequality=formula,
        statement=(
            f"bits in each subject's row, if a model with {P:,} bits in all other weights and an unembedding that does not depend "
            f"on the facts answers all {k}-hop queries of {most} {R:,} permutations of {N:,} entities"
        ),
    )


# Narrower trees that are tried where the room of the widest limits the number of roots.
_NARROWER = 32


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
    widest = last(1, min(R, N), lambda rho: fits(rho, k, N))
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
    M = 1 if spare == 0 else peak(value, lambda M: M, 1, N // nodes(rho, k))
    return lower(scaled(value(M), 1, M)), M


def formula(witness: Mapping[str, int]) -> Any:
    """Bits per subject with `M` roots; `rho` in the witness: for trees that branch into `rho < R` relations."""
    from sympy import Ge

    from bounds.symbols import D_in, M, P

    return Ge(D_in, (tables_formula("rho" in witness) - P) / M)


def tables_formula(narrow: bool = False) -> Any:
    """:func:`log2_tables` in symbols."""
    from bounds import symbols as s

    if not narrow:
        return s.R * s.log2_falling(s.N - s.M * s.levels(s.R, s.k - 1), s.M * s.R ** (s.k - 1))
    leaves = s.M * s.rho ** (s.k - 1)
    inside = s.rho * s.log2_falling(s.N - s.M * s.levels(s.rho, s.k - 1), leaves)
    return inside + (s.R - s.rho) * s.log2_falling(s.N, leaves)


RECORD = Record("B1", "sharper", fixed_unembedding, formula, (SHARED_BITS, SHARE))
