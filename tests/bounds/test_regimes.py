"""B2 to B7, the curves, and the table of least sizes."""

from fractions import Fraction
from itertools import pairwise, permutations, product
from math import comb, lgamma, log, log2, perm

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import bounds
from bounds.free_unembedding import split_witnesses
from bounds.questions import nodes
from bounds.rigorous import lower
from constructions.sizes import size
from geotheory.errors import InvalidArgument
from tests.bounds.test_fixed_unembedding import tables


@pytest.mark.parametrize(("N", "M", "other", "p", "q", "count"), [(6, 3, 3, 0, 0, 36), (6, 1, 2, 1, 0, 4)])
def test_the_tables_that_b2_counts(N, M, other, p, q, count):
    # With all internal edges fixed, R R^q colours and types each take any injection: listed one by one, R = 2.
    R = 2
    length = M * R**p // R**q
    listed = set(product(permutations(range(other), length), repeat=R * R**q))
    assert len(listed) == count == perm(other, length) ** (R * R**q)


@given(st.integers(1, 10**12), st.integers(1, 30), st.integers(1, 5))
def test_witnesses_of_b2_are_admissible(N, R, k):
    for p, M, other, right in split_witnesses(N, R, k):
        q = k - 1 - p
        assert M >= 1
        assert (M * R**p) % R**q == 0
        length = M * R**p // R**q
        assert length <= other
        overlap = k == 1 and M == other == N
        assert overlap or M * nodes(R, p + 1) + other * nodes(R, q + 1) <= N
        value = R ** (q + 1) * (lgamma(other + 1) - lgamma(other - length + 1)) / log(2)
        if N < 10**6:
            assert lower(right) == pytest.approx(value, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(("N", "R", "k"), [(2, 2, 1), (3, 2, 1), (4, 2, 1), (4, 2, 2), (3, 3, 2), (4, 2, 3)])
def test_b2_never_exceeds_all_tables(N, R, k):
    # If every row and every column holds the number of the whole table, all is answered: no bound on D may exceed that.
    assert bounds.free_unembedding(N, R, k).bits <= log2(max(1, tables(N, R, k, N)))


@given(st.integers(1, 10**9), st.integers(1, 20), st.integers(1, 4), st.integers(0, 10**9))
@settings(max_examples=60)
def test_meet_in_middle_respects_b2(N, R, k, P):
    bound = bounds.free_unembedding(N, R, k, P)
    for f in range(k + 1):
        cost = size("meet_in_middle", entities=N, relations=R, hops=k, forward=f)
        for p, M, other, right in split_witnesses(N, R, k):
            assert M * cost.bits_in + other * cost.bits_out >= lower(right) * (1 - 1e-12), (f, p)
        assert max(cost.bits_in, cost.bits_out) >= bound.bits
    assert bounds.free_unembedding(N, R, k, P + 1000).bits <= bound.bits


def test_b2_grows_as_the_square_root():
    for k, exponent in ((1, 1), (3, 2), (5, 3)):
        small, large = (bounds.free_unembedding(10**18, R, k).bits for R in (8, 16))
        assert log2(large / small) == pytest.approx(exponent, abs=0.25)


def test_b4_is_the_least_dimension():
    for N, R, c, b in ((4096, 16, 4, 2), (64, 2, 1, 1), (1, 1, 4, 32), (1000, 3, Fraction(1, 2), 8)):
        d = bounds.frozen_embedding(N, R, width_factor=float(c), bits=b).value
        needed = R * lgamma(N + 1) / log(2)
        assert b * (2 * c * d * d + c * d + d) >= needed - 1e-6
        assert d == 0 or b * (2 * c * (d - 1) ** 2 + c * (d - 1) + d - 1) < needed
    assert bounds.frozen_embedding(4096, 16, 2).value < bounds.frozen_embedding(4096, 16, 1).value


@given(st.integers(1, 10**6), st.integers(1, 20), st.floats(1e-4, 100), st.integers(1, 32), st.integers(0, 3))
def test_b4_never_asks_for_more_than_is_needed(N, R, c, b, h):
    # At few neurons a dimension the biases hold most of the bits.
    d = int(bounds.frozen_embedding(N, R, width_factor=c, bits=b, heads=h).value)
    needed = R * lgamma(N + 1) / log(2)

    def held(d):
        return b * (2 * c * d * d + c * d + d + 2 * h * d * d)

    assert held(d) >= needed * (1 - 1e-9)
    assert d == 0 or held(d - 1) < needed * (1 + 1e-9)


def test_b6():
    assert bounds.real_dimension(4096, 16, width=192).value == 6
    assert [bounds.cells(5, d) for d in range(7)] == [1, 6, 16, 26, 31, 32, 32]
    assert all(bounds.cells(9, d) == sum(comb(9, i) for i in range(d + 1)) for d in range(12))
    # The least d, exactly: one less is too few.
    for N, R, k, W in ((50, 3, 2, 54), (1000, 4, 1, 40), (200, 2, 3, 64)):
        d = int(bounds.real_dimension(N, R, k, width=W).value)
        Q, u = R**k, nodes(R, k - 1)
        needed = perm(N - u, R ** (k - 1)) ** R
        assert bounds.cells(Q * W, d) * bounds.cells(Q * N * (N - 1) // 2, d) >= needed
        assert bounds.cells(Q * W, d - 1) * bounds.cells(Q * N * (N - 1) // 2, d - 1) < needed
    # Beyond exact sums the bound goes on growing as R^k.
    dimensions = [bounds.real_dimension(10**9, 8, k, width=8**k * 30).value for k in (2, 3, 4, 5)]
    assert all(4 < b / a < 9 for a, b in pairwise(dimensions))
    # Where no tree of three hops fits, fewer relations or hops are asked about.
    smaller = bounds.real_dimension(10, 4, 3, width=5)
    assert smaller.witness != {"M": 1, "R": 4, "k": 3}
    assert 0 < smaller.value <= bounds.real_dimension(10**6, 4, 3, width=5).value


def test_cells_of_lines():
    # Lines in general position, by the signs of sample points: 3 lines cut the plane into 7 cells.
    import numpy as np

    generator = np.random.default_rng(0)
    normals, offsets = generator.normal(size=(4, 2)), generator.normal(size=4)
    points = generator.normal(scale=60, size=(400_000, 2))
    near = generator.normal(scale=2, size=(400_000, 2))
    signs = {tuple(row) for row in (np.vstack([points, near]) @ normals.T > offsets)}
    assert len(signs) <= bounds.cells(4, 2) == 11
    assert len(signs) >= 10


def test_b7_is_b1_of_a_step():
    for j in (1, 2, 3):
        chain = bounds.chain_of_thought(1000, 4, 6, j)
        assert chain.bits == bounds.fixed_unembedding(1000, 4, j).bits
        assert chain.theorem == "B7"
        assert "6-hop queries, emitting every" in chain.statement


def test_most_instead_of_all():
    # At one hop: half of the tuples cost one bit less in all. Brute force: any half of the worlds still has half of the tables.
    whole, half = bounds.fixed_unembedding(4096, 16).bits, bounds.fixed_unembedding(4096, 16, share=0.5)
    assert half.bits * half.roots == pytest.approx(
        bounds.fixed_unembedding(4096, 16, shared_bits=1).bits * half.roots, rel=1e-12
    )
    assert half.bits < whole
    with pytest.raises(InvalidArgument, match="one hop only"):
        bounds.fixed_unembedding(50, 2, 2, share=0.9)
    for share in (0, 1.5, -1, float("nan")):
        with pytest.raises(InvalidArgument, match="share must lie"):
            bounds.fixed_unembedding(50, 2, share=share)


def test_threshold_curve():
    curve = bounds.threshold_curve(4096, 16, 2)
    P, D = zip(*curve.points)
    assert P[0] == 0
    assert P[-1] == curve.everything >= 16 * lgamma(4097) / log(2)
    assert list(D) == sorted(D, reverse=True)
    assert (round(D[0], 1), D[-1]) == (3071.2, 0.0)
    # The key-value memory's own shared weights lie beyond it, so that B3 asks nothing of its rows.
    assert (
        bounds.fixed_unembedding(4096, 16, 2, size("key_value", entities=4096, relations=16, hops=2).bits_shared).bits
        == 0
    )


def test_split_curve():
    curve = bounds.split_curve(10**6, 4, 3)
    assert [a[0] for a in curve.points] == sorted(a[0] for a in curve.points)
    assert [a[1] for a in curve.points] == sorted((a[1] for a in curve.points), reverse=True)
    for D_in, D_out in curve.meet_in_middle.values():
        assert D_out >= max((y for x, y in curve.points if x >= D_in), default=0)
    assert curve.meet_in_middle == {0: (0, 1280), 1: (80, 320), 2: (320, 80), 3: (1280, 0)}
    with pytest.raises(InvalidArgument, match="no two trees"):
        bounds.split_curve(3, 4, 5)


@given(st.integers(1, 10**12), st.integers(1, 40), st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6))
@settings(max_examples=60)
def test_no_construction_beats_its_bound(N, R, k, bits, P):
    for row in bounds.minimum(N, R, k, bits, 0):
        if row.cost is not None:
            assert row.cost >= row.least or row.regime == "real weights", row
    for with_shared, without in zip(bounds.minimum(N, R, k, bits, P), bounds.minimum(N, R, k, bits, 0)):
        assert with_shared.least <= without.least


def test_minimum_at_the_paper_s_size():
    rows = {row.construction: row for row in bounds.minimum(4096, 16, 2)}
    direct = rows["direct"]
    assert (direct.cost, round(direct.least, 1), direct.theorem, round(direct.ratio, 3)) == (3072, 3071.2, "B1", 1.0)
    assert rows["chain_of_thought"].ratio == 1.0
    assert rows["meet_in_middle, f = 1"].unit == "bits per embedding"
    assert rows["(MLP width 4 d, 32 bits a weight)"].d is None
    assert {row.theorem for row in rows.values()} == {"B1", "B2", "B4", "B6", "B7"}


def test_inverse_questions():
    for d in (30, 200, 1000):
        for kind, R, k in (("direct", 3, 2), ("chain_of_thought", 4, 3), ("meet_in_middle", 3, 3)):
            N = bounds.largest_entities(d, R, k, kind=kind)
            assert (
                size(kind, entities=N, relations=R, hops=k).d <= d < size(kind, entities=N + 1, relations=R, hops=k).d
            )
    hops = bounds.largest_hops(500, 4096, 4, kind="chain_of_thought")
    assert size("chain_of_thought", entities=4096, relations=4, hops=hops).d <= 500
    assert size("chain_of_thought", entities=4096, relations=4, hops=hops + 1).d > 500
    bits = bounds.smallest_bits(100, 4096, 16, kind="single_hop")
    assert size("single_hop", entities=4096, relations=16, bits=bits).d <= 100
    assert size("single_hop", entities=4096, relations=16, bits=bits - 1).d > 100
    with pytest.raises(InvalidArgument, match="too small"):
        bounds.largest_entities(3, 16)
    with pytest.raises(InvalidArgument, match="too small for single_hop"):
        bounds.smallest_bits(16, 4096, 16, kind="single_hop")


def test_results_in_milliseconds_at_any_size():
    # Not a timed test: it would simply not end if anything were scanned.
    for bound in (
        bounds.fixed_unembedding(10**18, 1000, 5, 10**21),
        bounds.free_unembedding(10**18, 50, 6),
        bounds.frozen_embedding(10**18, 16),
        bounds.fixed_unembedding(5, 10**9, 10**9, 7),
    ):
        assert bound.value >= 0
    # No tree of so many hops fits; but with the identity as one relation, single hops of all others are asked.
    assert bounds.free_unembedding(10**6, 10**9, 10**9).witness["k"] == 1
    assert bounds.fixed_unembedding(4096, 16, 1, 10**400).value == 0
    assert len(bounds.minimum(10**18, 16, 4)) == 8


def test_bounds_print_and_refuse():
    bound = bounds.width(100, 3)
    assert str(bound).startswith("B5: at least 19.9")
    with pytest.raises(AttributeError, match="bounds neurons, not bits"):
        _ = bound.bits
    assert bound.to_dict()["witness"] == {"M": 1, "R": 3, "k": 1}
    for call in (
        lambda: bounds.free_unembedding(10, 2, 2, forward=2),
        lambda: bounds.free_unembedding(10, 2, 2, forward=-1),
        lambda: bounds.chain_of_thought(10, 2, 2, 3),
        lambda: bounds.frozen_embedding(10, 2, width_factor=0),
        lambda: bounds.minimum(10, 2, 2, shared_bits=-1),
    ):
        with pytest.raises(InvalidArgument):
            call()
