"""B1 and B5 against brute force, against scanning, and against exact integers."""

from fractions import Fraction
from itertools import permutations, product
from math import floor, log2, perm

import hypothesis.strategies as st
import pytest
from flint import arb
from hypothesis import given, settings

import bounds
from bounds import rigorous
from bounds.questions import nodes
from constructions.sizes import size
from geotheory.errors import InvalidArgument


def tables(N, R, k, M):
    """Distinct answer tables on the first M entities, over every tuple of R permutations."""
    found = set()
    words = list(product(range(R), repeat=k))
    for world in product(permutations(range(N)), repeat=R):
        answers = []
        for x in range(M):
            for word in words:
                y = x
                for r in word:
                    y = world[r][y]
                answers.append(y)
        found.add(tuple(answers))
    return len(found)


def test_the_counter_counts():
    assert [tables(4, 2, 2, M) for M in (1, 2, 3, 4)] == [148, 456, 458, 458]
    assert [tables(3, 3, 2, M) for M in (1, 2, 3)] == [185, 188, 188]


SMALL = [
    (1, 2, 2),
    (2, 1, 1),
    (2, 1, 2),
    (2, 2, 1),
    (2, 2, 2),
    (2, 3, 2),
    (3, 1, 3),
    (3, 2, 1),
    (3, 2, 2),
    (3, 2, 3),
    (3, 3, 2),
]


@pytest.mark.parametrize(("N", "R", "k"), [*SMALL, (4, 2, 1), (4, 2, 2), (4, 2, 3)])
def test_never_above_brute_force(N, R, k):
    # With P shared bits and D bits a row, at most 2^(P + M D) tables; the bound must allow what a table of tables achieves.
    for M in range(1, N + 1):
        count = tables(N, R, k, M)
        for P in (0, 1, 3, 10):
            bound = bounds.fixed_unembedding(N, R, k, P)
            if bound.roots == M:
                assert P + M * bound.bits <= log2(count) + 1e-9 or bound.bits == 0


@given(st.integers(1, 200), st.integers(1, 5), st.integers(1, 4), st.integers(0, 3000))
def test_searching_finds_what_scanning_finds(N, R, k, P):
    found = bounds.fixed_unembedding(N, R, k, P)
    inner, leaves = nodes(R, k - 1) if k > 1 else 0, R ** (k - 1)
    best = 0.0
    for M in range(1, N // (inner + leaves) + 1):
        u, l = M * inner, M * leaves  # noqa: E741
        best = max(best, (R * log2(perm(N - u, l)) - P) / M)
    # Full trees alone; test_search.py scans the narrower ones and fewer hops too.
    assert found.bits >= best * (1 - 1e-9)
    if found.bits > 0 and found.witness == {"M": found.roots, "R": R, "k": k}:
        assert found.bits == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(st.integers(1, 10**18), st.integers(1, 300), st.integers(1, 6), st.integers(0, 10**20))
@settings(max_examples=100)
def test_monotone(N, R, k, P):
    bound = bounds.fixed_unembedding(N, R, k, P).bits
    assert bound >= 0
    assert bounds.fixed_unembedding(N, R, k, P + 1 + P // 7).bits <= bound
    assert bounds.fixed_unembedding(2 * N, R, k, P).bits >= bound
    if nodes(R + 1, k) <= N:
        assert bounds.fixed_unembedding(N, R + 1, k, P).bits >= bound


@given(st.integers(1, 3000), st.data())
def test_balls_and_integers_agree(n, data):
    length = data.draw(st.integers(0, n))
    exact, known = perm(n, length), rigorous.log2_falling(n, length)
    # 2^lower <= product, with the float as the exact rational that it is.
    low = Fraction(rigorous.lower(known))
    assert low <= exact.bit_length()
    assert rigorous.lower(rigorous.scaled(known, 1)) == rigorous.lower(known)
    ball = arb(exact).log() / arb.const_log2()
    assert float(low) == pytest.approx(float(ball.mid()), rel=1e-12, abs=1e-12)
    assert arb(float(low)) <= ball.upper()


def test_rounding_is_downwards():
    for n in range(2, 2000):
        # The float below log2 n, as a rational p/q: 2^p <= n^q exactly.
        low = Fraction(rigorous.lower(rigorous.log2_falling(n, 1))).limit_denominator(10**6)
        p, q = floor(rigorous.lower(rigorous.log2_falling(n, 1)) * 2**12), 2**12
        assert 2**p <= n**q
        assert low > 0 or n == 1


def test_met_exactly_at_powers_of_two():
    for exponent in (0, 1, 12, 60):
        for R in (1, 3, 16):
            bound = bounds.fixed_unembedding(2**exponent, R)
            assert (bound.bits, bound.roots) == (R * exponent, 1)
            assert bounds.width(2**exponent, R).value == R * exponent


def test_figures_of_the_theory():
    bound = bounds.fixed_unembedding(4096, 16, 2)
    assert round(bound.bits, 1) == 3071.2
    assert size("direct", entities=4096, relations=16, hops=2).bits_in == 3072
    assert bounds.fixed_unembedding(4096, 16, 2, shared_bits=10**9).bits == 0


@given(st.integers(1, 10**12), st.integers(1, 60), st.integers(1, 5), st.integers(1, 4))
def test_no_construction_is_below_its_bound(N, R, k, bits):
    direct = size("direct", entities=N, relations=R, hops=k, bits=bits)
    assert direct.bits_in >= bounds.fixed_unembedding(N, R, k).bits
    assert direct.width * bits >= bounds.width(N, R, k).value
    assert direct.width >= bounds.width(N, R, k, bits=bits).value
    for j in range(1, k + 1):
        chain = size("chain_of_thought", entities=N, relations=R, hops=k, hops_per_step=j, bits=bits)
        assert chain.bits_in >= bounds.fixed_unembedding(N, R, j).bits


def test_what_is_said_in_words():
    bound = bounds.fixed_unembedding(100, 3, 2, shared_bits=7)
    assert "7 bits in all other weights" in bound.statement
    assert bound.mark == "sharper"
    assert bound.to_dict()["theorem"] == "B1"
    assert bound.bits == bound.value
    assert bounds.width(100, 3).mark == "new"


@pytest.mark.parametrize("arguments", [(0, 1), (1, 0), (1, 1, 0), (1, 1, 1, -1), (2, 2, 1, True)])
def test_bad_numbers(arguments):
    with pytest.raises(InvalidArgument):
        bounds.fixed_unembedding(*arguments)
