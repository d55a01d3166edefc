"""Lower bounds by counting answer tables (THEORY 5): bits that the facts must occupy somewhere in the weights."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from bounds.rigorous import Real, log2_falling, lower, scaled
from geotheory.errors import positive_integer

__all__ = ["Bound", "fixed_unembedding", "width"]


@dataclass(frozen=True)
class Bound:
    """A lower bound, rounded down.

    Attributes
    ----------
    bits
        The bound: bits per subject, or (`width`) neurons times bits of a pre-activation.
    roots
        The number `M` of subjects whose answers were counted: the best one. 0 if the bound is 0.
    theorem
        Its number in the theory.
    mark
        `"paper"`, `"sharper"` or `"new"`.
    formula
        What was evaluated, for a reader.
    statement
        What is bounded and under which assumptions, in words.
    """

    bits: float
    roots: int
    theorem: str
    mark: str
    formula: str
    statement: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return dict(vars(self))


def fixed_unembedding(entities: int, relations: int, hops: int = 1, shared_bits: int = 0) -> Bound:
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

    Returns
    -------
    Bound
        Rounded down; 0 where `P` could hold everything.

    Raises
    ------
    InvalidArgument
        A number is out of range or no integer.

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
    N, R, k = (
        positive_integer(what, n) for what, n in (("entities", entities), ("relations", relations), ("hops", hops))
    )
    P = positive_integer("shared_bits", shared_bits, least=0)
    best, roots, words = max((_best_roots(N, r, j, P) for r, j in _shapes(N, R, k)), default=(0.0, 0, (R, k)))
    return Bound(
        bits=best,
        roots=roots,
        theorem="B1",
        mark="sharper",
        formula=f"max over M of (R log2 (N - u)_l - {P}) / M, with N = {N}, R = {words[0]}, k = {words[1]}, here M = {roots}",
        statement=(
            f"bits in each subject's row, if a model with {P} bits in all other weights and an unembedding that does not depend on "
            f"the facts answers all {k}-hop queries of every {R} permutations of {N} entities"
        ),
    )


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

    Returns
    -------
    Bound
        Its `bits` is a number of neurons.

    Source: **new**.

    Examples
    --------
    >>> width(4096, 16).bits
    192.0
    """
    c = positive_integer("bits", bits)
    tables = fixed_unembedding(entities, relations, hops)  # without shared bits a single root is best
    return Bound(
        bits=lower(Fraction(tables.bits) / c),
        roots=1,
        theorem="B5",
        mark="new",
        formula=f"R log2 (N - u)_l / {c}, with M = 1",
        statement=(
            "neurons of one hidden layer, if nothing but the subjects' rows depends on the facts and a subject's share of each "
            f"pre-activation takes at most 2^{c} values"
        ),
    )


def _shapes(N: int, R: int, k: int) -> list[tuple[int, int]]:
    """Pairs (relations, hops) whose bound holds for `(R, k)` and whose trees fit into `N` entities."""
    shapes = []
    for j, most in [(k, R), *((j, R - 1) for j in range(k - 1, 0, -1))]:
        # The most relations whose tree of one root fits; more relations mean more tables.
        few, many = 0, most
        while few < many:
            middle = (few + many + 1) // 2
            few, many = (middle, many) if _nodes(middle, j) <= N else (few, middle - 1)
        if few:
            shapes.append((few, j))
        if few == most:
            break  # fewer hops cannot do better with fewer relations
    return shapes


def _nodes(R: int, levels: int) -> int:
    """`1 + R + ... + R^(levels-1)`."""
    return levels if R == 1 else (R**levels - 1) // (R - 1)


def _best_roots(N: int, R: int, k: int, P: int) -> tuple[float, int, tuple[int, int]]:
    """The best bound for words of `k` of `R` relations, its `M`, and `(R, k)`."""
    inner = _nodes(R, k - 1) if k > 1 else 0
    leaves = R ** (k - 1)

    def value(M: int) -> Real:
        return scaled(log2_falling(N - M * inner, M * leaves), R, Fraction(P), M)

    # R log2 (N - u)_l is concave in M: its second derivative is a positive multiple of a^2 psi'(N - aM + 1) -
    # (a + c)^2 psi'(N - (a + c)M + 1) with a = inner, c = leaves, and psi' is positive and falls. A concave function less P,
    # divided by M, rises and then falls; so the first M whose successor is no better is best.
    first, last = 1, N // (inner + leaves)
    if P == 0:
        last = 1  # the ratio of a concave function that is 0 at M = 0 only falls
    while first < last:
        middle = (first + last) // 2
        if lower(value(middle + 1)) > lower(value(middle)):
            first = middle + 1
        else:
            last = middle
    return max(0.0, lower(value(first))), first, (R, k)
