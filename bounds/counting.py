"""How many R-regular edge-coloured graphs there are, exactly (THEORY 6).

Where colours are independent of one another, the labelled count is a power, and the count up to relabelling a sum over cycle types
(Burnside) that factors over the cycle lengths: the coefficient of `x^N` in a product of power series, never a list of partitions.
Where colours exclude one another (`simple`), entities that have the same colours behind them are alike, so that it is enough to
count how many there are of each sort: polynomial in `N` for fixed `R`, though of a degree that grows as `2^R`.
"""

from functools import lru_cache
from itertools import permutations
from math import comb, factorial, perm, prod

from bounds.colours import allowed, commuting
from bounds.kinds import Kind, kind_named
from geotheory.errors import TooLarge, positive_integer

__all__ = ["count"]

# States of the search for simple graphs, of which some 10^4 a second are visited.
MOST_STATES = 400_000


def count(kind: str, *, entities: int, relations: int, connected: bool = False, labelled: bool = True) -> int:
    """Number of R-regular edge-coloured graphs on `N` entities.

    Parameters
    ----------
    kind
        `"permutation"` (loops and parallel edges allowed: `R` bijections), `"derangement"` (no loops), `"involution"` (undirected,
        loops allowed), `"matching"` (undirected, no loops), `"simple"` (directed, no loops, colours pairwise disjoint: Latin
        rectangles), `"simple_matching"` (undirected, properly coloured).
    entities, relations
        `N` and `R`, each at least 1.
    connected
        Count connected graphs alone.
    labelled
        False: up to relabelling the entities; colours are kept.

    Returns
    -------
    int
        0 where there is none, as for matchings of an odd number of entities.

    Raises
    ------
    TooLarge
        For the simple kinds, beyond what their search can reach.
    UnknownName, InvalidArgument
        No such kind; a number out of range.

    Notes
    -----
    Labelled and unlabelled counts of the independent kinds are polynomial in `N`. Connected counts follow from all counts: by the
    recursion on the component of the first entity, or by the inverse Euler transform.

    Examples
    --------
    >>> count("permutation", entities=3, relations=2)
    36
    >>> [count("permutation", entities=n, relations=2, labelled=False) for n in range(1, 7)]
    [1, 4, 11, 43, 161, 901]
    >>> [count("simple", entities=n, relations=2) for n in range(1, 6)]
    [0, 0, 2, 24, 552]
    """
    chosen = kind_named(kind)
    N, R = positive_integer("entities", entities), positive_integer("relations", relations)
    if labelled:
        if not connected:
            return _labelled(chosen, N, R)
        return _connected_labelled([1, *(_labelled(chosen, n, R) for n in range(1, N + 1))])
    totals = _unlabelled(chosen, N, R)
    return _inverse_euler(totals)[N] if connected else totals[N]


def _labelled(kind: Kind, N: int, R: int) -> int:
    if kind.simple:
        return _simple_matchings(N, R) if kind.undirected else _simple(N, R)
    each = allowed(kind, N)
    return prod(each for _ in range(R))


def _unlabelled(kind: Kind, N: int, R: int) -> list[int]:
    """Counts up to relabelling for `0, ..., N` entities."""
    if kind.simple:
        from bounds.graphs import graphs

        return [
            1,
            *(
                sum(1 for _ in graphs(kind.name, entities=n, relations=R, up_to_isomorphism=True))
                for n in range(1, N + 1)
            ),
        ]
    # Burnside: the mean over all permutations pi of the number of graphs that pi fixes, which in each colour is the number of
    # allowed permutations that commute with pi. There are n! / prod_j j^c c! permutations with c cycles of each length j, so the
    # mean is the coefficient of x^n in prod_j sum_c fixed(j, c)^R / (j^c c!) x^(jc). If everything is allowed, fixed(j, c) is
    # j^c c!, and all terms are integers; otherwise n! times the coefficients are.
    whole = kind.loops and not kind.undirected
    totals = [1] + [0] * N
    for j in range(1, N + 1):
        cycles = [j**c * factorial(c) for c in range(N // j + 1)]
        fixed = [commuting(kind, j, c) ** R for c in range(N // j + 1)]
        if whole:
            terms = [f // z for f, z in zip(fixed, cycles)]
            totals = [sum(terms[c] * totals[n - j * c] for c in range(n // j + 1)) for n in range(N + 1)]
        else:
            totals = [
                sum(perm(n, j * c) // cycles[c] * fixed[c] * totals[n - j * c] for c in range(n // j + 1))
                for n in range(N + 1)
            ]
    return totals if whole else [total // factorial(n) for n, total in enumerate(totals)]


def _connected_labelled(totals: list[int]) -> int:
    """`t_N = a_N - sum_k C(N-1, k-1) t_k a_(N-k)`: the component of the first entity has `k` entities."""
    t = [0]
    for n in range(1, len(totals)):
        t.append(totals[n] - sum(comb(n - 1, k - 1) * t[k] * totals[n - k] for k in range(1, n)))
    return t[-1]


def _inverse_euler(totals: list[int]) -> list[int]:
    """Connected counts `c` from `sum_n a_n x^n = prod_n (1 - x^n)^(-c_n)`."""
    # With b_n = sum_{d | n} d c_d: n a_n = sum_{k=1..n} b_k a_{n-k}.
    b, c = [0], [0]
    for n in range(1, len(totals)):
        b.append(n * totals[n] - sum(b[k] * totals[n - k] for k in range(1, n)))
        c.append((b[n] - sum(d * c[d] for d in range(1, n) if n % d == 0)) // n)
    return c


class _Search:
    """Completions of partial graphs, counted by how many entities there are of each sort.

    Entities are taken one after the other; the entity in hand gets all its edges. The number of completions does not depend on who
    comes next, nor on the names of entities or colours: states are equal up to these.
    """

    def __init__(self, R: int) -> None:
        self.R = R
        self.known: dict[tuple[int, ...], int] = {}
        # The same state with its colours renamed.
        self.renamings = [
            [sum(1 << p[r] for r in range(R) if sort >> r & 1) for sort in range(1 << R)]
            for p in permutations(range(R))
        ]

    def remember(self, state: tuple[int, ...], value: int) -> int:
        if len(self.known) >= MOST_STATES:
            raise TooLarge(
                f"simple graphs with R = {self.R}: the exact search needs more than {MOST_STATES:,} states; take fewer entities or "
                "relations, or the kind without 'simple', whose count is a formula"
            )
        self.known[state] = value
        return value


class _SimpleSearch(_Search):
    """Directed: a state counts, by the colours that already lead to them, entities in hand before, then entities still to come."""

    def canonical(self, done: list[int], open_: list[int]) -> tuple[int, ...]:
        return min(
            tuple([done[s] for s in _inverse(names)] + [open_[s] for s in _inverse(names)]) for names in self.renamings
        )

    def completions(self, state: tuple[int, ...]) -> int:
        if state in self.known:
            return self.known[state]
        half = 1 << self.R
        done, open_ = list(state[:half]), list(state[half:])
        sort = next((s for s in range(half) if open_[s]), None)
        if sort is None:
            return 1
        open_[sort] -= 1  # the entity in hand: no loops, so it is no target now
        total = 0
        after_done, after_open = done[:], open_[:]

        def choose(colour: int, ways: int) -> None:
            nonlocal total
            if colour == self.R:
                after_done[sort] += 1
                total += ways * self.completions(self.canonical(after_done, after_open))
                after_done[sort] -= 1
                return
            bit = 1 << colour
            for free, after in ((done, after_done), (open_, after_open)):
                for s in range(half):
                    if s & bit or not free[s]:
                        continue
                    many = free[s]
                    # A target of this step is out of reach for its other colours: colours are disjoint.
                    free[s] -= 1
                    after[s] -= 1
                    after[s | bit] += 1
                    choose(colour + 1, ways * many)
                    after[s | bit] -= 1
                    after[s] += 1
                    free[s] += 1

        choose(0, 1)
        return self.remember(state, total)


class _MatchingSearch(_Search):
    """Undirected: a state counts the entities that still lack edges, by the colours that they have."""

    def canonical(self, open_: list[int]) -> tuple[int, ...]:
        return min(tuple(open_[s] for s in _inverse(names)) for names in self.renamings)

    def completions(self, state: tuple[int, ...]) -> int:
        if state in self.known:
            return self.known[state]
        half = 1 << self.R
        open_ = list(state)
        # Whoever has the most colours already leaves the fewest choices.
        sort = max((s for s in range(half) if open_[s]), key=int.bit_count, default=None)
        if sort is None:
            return 1
        open_[sort] -= 1
        after = open_[:]
        total = 0

        def choose(colour: int, ways: int) -> None:
            nonlocal total
            if colour == self.R:
                total += ways * self.completions(self.canonical(after))
                return
            bit = 1 << colour
            if sort & bit:
                choose(colour + 1, ways)
                return
            for s in range(half):
                if s & bit or not open_[s]:
                    continue
                many = open_[s]
                open_[s] -= 1
                after[s] -= 1
                after[s | bit] += 1
                choose(colour + 1, ways * many)
                after[s | bit] -= 1
                after[s] += 1
                open_[s] += 1

        choose(0, 1)
        return self.remember(state, total)


def _inverse(names: list[int]) -> list[int]:
    order = [0] * len(names)
    for old, new in enumerate(names):
        order[new] = old
    return order


@lru_cache(maxsize=256)
def _simple(N: int, R: int) -> int:
    if R >= N:
        return 0  # an entity has N - 1 others
    if R == 1:
        return allowed(kind_named("derangement"), N)
    search = _SimpleSearch(R)
    half = 1 << R
    return search.completions(search.canonical([0] * half, [N] + [0] * (half - 1)))


@lru_cache(maxsize=256)
def _simple_matchings(N: int, R: int) -> int:
    if R >= N or N % 2:
        return 0
    if R == 1:
        return allowed(kind_named("matching"), N)
    search = _MatchingSearch(R)
    return search.completions(search.canonical([N] + [0] * ((1 << R) - 1)))
