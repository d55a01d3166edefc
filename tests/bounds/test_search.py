"""The searches for the best witness: against scanning everything, against worlds, and where floats see no difference."""

from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import inf, lgamma, log, log2, perm

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import bounds
from bounds.fixed_unembedding import log2_tables
from bounds.questions import nodes
from bounds.rigorous import lower, plus, scaled


@cache
def falling(n, length):
    return log2(perm(n, length))


def easier(R, k):
    return [(R, k), *((R - 1, j) for j in range(1, k) if R > 1)]


def scan_b1(N, R, k, P):
    best = 0.0
    for r, j in easier(R, k):
        for rho in range(1, r + 1):
            for M in range(1, N // nodes(rho, j) + 1):
                leaves, inner = M * rho ** (j - 1), M * nodes(rho, j - 1)
                best = max(best, (rho * falling(N - inner, leaves) + (r - rho) * falling(N, leaves) - P) / M)
    return best


def scan_b2(N, R, k, P):
    best = 0.0
    for r, j in easier(R, k):
        for p, M in product(range(j), range(1, N + 1)):
            q = j - 1 - p
            if (M * r**p) % r**q:
                continue
            length = M * r**p // r**q
            for other in range(length, N + 1):
                if j == 1 or M * nodes(r, p + 1) + other * nodes(r, q + 1) <= N:
                    best = max(best, (r ** (q + 1) * falling(other, length) - P) / (M + other))
    return best


@given(st.integers(1, 200), st.integers(1, 8), st.integers(1, 5), st.data())
def test_b1_is_the_best_of_all_its_witnesses(N, R, k, data):
    # Shared bits up to what the whole table has, where rounding the number of trees matters most.
    P = data.draw(st.integers(0, int(R * lgamma(N + 1) / log(2)) + 1))
    assert bounds.fixed_unembedding(N, R, k, P).bits == pytest.approx(scan_b1(N, R, k, P), rel=1e-9, abs=1e-9)


@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 4), st.integers(0, 400))
@settings(deadline=None)
def test_b2_is_the_best_of_all_its_witnesses(N, R, k, P):
    assert bounds.free_unembedding(N, R, k, P).bits == pytest.approx(scan_b2(N, R, k, P), rel=1e-9, abs=1e-9)


def test_b1_is_monotone_in_entities_relations_and_shared_bits():
    # Every case: violations are rare, and random ones would miss them.
    for N, R, k, P in product(range(9, 17), range(1, 8), (2, 3), range(0, 300, 13)):
        bound = bounds.fixed_unembedding(N, R, k, P).bits
        assert bounds.fixed_unembedding(N + 1, R, k, P).bits >= bound * (1 - 1e-15)
        assert bounds.fixed_unembedding(N, R + 1, k, P).bits >= bound * (1 - 1e-15)
        assert bounds.fixed_unembedding(N, R, k, P + 1).bits <= bound


def test_b2_is_monotone_in_entities_and_shared_bits():
    for N, R, k, P in product(range(2, 30), (1, 2, 3), (1, 2, 3), (0, 7, 50)):
        bound = bounds.free_unembedding(N, R, k, P).bits
        assert bounds.free_unembedding(N + 1, R, k, P).bits >= bound * (1 - 1e-15)
        assert bounds.free_unembedding(N, R, k, P + 1).bits <= bound


def test_more_relations_help_where_rounding_wastes_trees():
    # Six relations leave room for one tree among 13 entities, five for two; with most of the facts shared, two are better.
    five, six = (bounds.fixed_unembedding(13, R, 2, 112).bits for R in (5, 6))
    assert six >= five > 7


def test_what_is_bounded_is_not_monotone_in_hops():
    assert [bounds.tables("permutation", entities=2, relations=2, hops=k, roots=1) for k in (1, 2, 3)] == [4, 2, 4]


@pytest.mark.parametrize(
    ("N", "R", "k", "P"),
    [(10**18, 2, 1, 10**20), (10**17, 2, 1, 10**19), (10**18, 16, 1, 9 * 10**20), (10**18, 16, 3, 10**20)],
)
def test_slopes_that_floats_do_not_see(N, R, k, P):
    found = bounds.fixed_unembedding(N, R, k, P).bits
    most = N // nodes(R, k)
    for part in range(1, 201):
        M = max(1, most * part // 200)
        assert lower(scaled(plus(log2_tables(N, R, k, M, R), -P), 1, M)) <= found
    assert found > 0


def test_b1_is_not_above_brute_force_for_narrow_trees():
    narrow = 0
    for N, R, k in ((3, 2, 2), (3, 3, 2), (4, 2, 3), (3, 2, 3), (5, 2, 3), (4, 3, 2)):
        for P in (0, 1, 3):
            bound = bounds.fixed_unembedding(N, R, k, P)
            count = bounds.tables("permutation", entities=N, relations=R, hops=k, roots=bound.roots)
            assert P + bound.roots * bound.bits <= log2(count)
            narrow += "rho" in bound.witness
    assert narrow


@pytest.mark.parametrize(("N", "R", "k"), [(3, 2, 1), (4, 2, 1), (5, 1, 3), (5, 2, 2)])
def test_b2_is_not_above_what_worlds_show(N, R, k):
    # For every witness: tables on M subjects, seen only where the answer is one of the M' attributes.
    worlds = list(product(permutations(range(N)), repeat=R))
    checked = 0
    for p, M in product(range(k), range(1, N + 1)):
        q = k - 1 - p
        if (M * R**p) % R**q:
            continue
        length = M * R**p // R**q
        for other in range(length, N + 1):
            if k > 1 and M * nodes(R, p + 1) + other * nodes(R, q + 1) > N:
                continue
            seen = set()
            for world in worlds:
                answers = list(range(M))
                for _ in range(k):
                    answers = [row[y] for y in answers for row in world]
                seen.add(tuple(y if y >= N - other else None for y in answers))
            assert len(seen) >= perm(other, length) ** R ** (q + 1)
            checked += 1
    assert checked


def test_numbers_beyond_floats():
    huge = Fraction(10**400)
    assert 0 < lower(huge) < inf
    assert lower(-huge) == -inf
    assert 0 < bounds.fixed_unembedding(4, 10**400).bits < inf
