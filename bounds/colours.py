"""One colour: the permutations that a kind of graph allows, counted and listed."""

from collections.abc import Iterator
from itertools import permutations
from math import comb, factorial

from bounds.kinds import Kind

__all__ = ["allowed", "commuting", "listed"]


def allowed(kind: Kind, N: int) -> int:
    """How many permutations of `N` entities a colour may be."""
    return commuting(kind, 1, N)


def commuting(kind: Kind, j: int, c: int) -> int:
    """Allowed permutations that commute with a permutation of `c` cycles of length `j` each.

    Such a permutation permutes the cycles and rotates each: `c! j^c` in all. A cycle that stays in place may be rotated by any of
    `j` amounts; without loops not by 0; to be its own inverse, by 0 or `j/2`. Cycles that are exchanged are rotated by opposite
    amounts if the permutation is to be its own inverse.
    """
    if kind.undirected:
        staying = (1 if kind.loops else 0) + (1 if j % 2 == 0 else 0)
        pairings = (factorial(c) // (factorial(p) * 2**p * factorial(c - 2 * p)) for p in range(c // 2 + 1))
        return sum(number * int(j**p * staying ** (c - 2 * p)) for p, number in enumerate(pairings))
    if kind.loops:
        return factorial(c) * int(j**c)
    # Inclusion and exclusion over the cycles that stay as they are.
    return sum((1 - i % 2 * 2) * comb(c, i) * factorial(c - i) * int(j ** (c - i)) for i in range(c + 1))


def listed(kind: Kind, N: int) -> Iterator[tuple[int, ...]]:
    """Every permutation that a single colour may be, in lexicographic order."""
    if kind.undirected:
        yield from _pairings(list(range(N)), kind.loops, [0] * N)
        return
    for row in permutations(range(N)):
        if kind.loops or all(x != y for x, y in enumerate(row)):
            yield row


def _pairings(left: list[int], loops: bool, row: list[int]) -> Iterator[tuple[int, ...]]:
    if not left:
        yield tuple(row)
        return
    x, *rest = left
    if loops:
        row[x] = x
        yield from _pairings(rest, loops, row)
    for y in rest:
        row[x], row[y] = y, x
        yield from _pairings([z for z in rest if z != y], loops, row)
