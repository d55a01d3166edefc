"""The formulas are what the numbers are, and their limits are what the theory says."""

import hypothesis.strategies as st
import pytest
import sympy as sp
from hypothesis import given, settings

import bounds
from bounds import symbolic
from bounds.free_unembedding import split_witnesses
from bounds.rigorous import lower


@given(st.integers(2, 10**9), st.integers(2, 20), st.integers(1, 4), st.integers(0, 10**6))
@settings(max_examples=40)
def test_numbers_are_the_formulas(N, R, k, P):
    # The formula at the witness, whichever it is: full trees, narrower ones, fewer hops.
    bound, neurons = bounds.fixed_unembedding(N, R, k, P), bounds.width(N, R, k)
    branching = min(bound.witness["R"], bound.witness.get("rho", 2)) > 1  # the geometric sum has no value at 1
    if bound.bits and branching:
        assert bound.bits == pytest.approx(symbolic.evaluate("B1", N=N, P=P, **bound.witness), rel=1e-9)
    if neurons.value and neurons.witness["R"] > 1 and neurons.witness.get("rho", 2) > 1:
        assert neurons.value == pytest.approx(symbolic.evaluate("B5", N=N, **neurons.witness), rel=1e-9)
    for p, M, other, right in list(split_witnesses(N, R, k))[1::40]:
        values = {"R": R, "p": p, "q": k - 1 - p, "M": M, "M'": other}
        assert lower(right) == pytest.approx(symbolic.evaluate("B2", **values), rel=1e-9)


@pytest.mark.parametrize(("R", "k"), [(2, 1), (3, 1), (2, 2), (3, 2), (2, 3)])
def test_direct_meets_its_bound_in_the_limit(R, k):
    assert symbolic.limit_of_direct(R, k) == 1


@pytest.mark.parametrize(("R", "k"), [(2, 2), (3, 2), (2, 3), (3, 3)])
def test_meet_in_middle_is_within_one_plus_one_over_r_for_every_split(R, k):
    for f in range(1, k + 1):
        assert symbolic.limit_of_meet_in_middle(R, k, f) == 1 + sp.Rational(1, R)


def test_stirling():
    n = sp.Symbol("N", positive=True)
    series = symbolic.stirling(symbolic.lower_side("B4"))
    for value in (10, 1000, 10**9):
        exact = symbolic.evaluate("B4", N=value, R=3)
        assert float(series.subs({n: value, symbolic.SYMBOLS["R"]: 3})) == pytest.approx(exact, rel=1e-5)
    # R N log2 N - R N log2 e + (R/2) log2(2 pi N), and what is left is R / (12 N ln 2) and less.
    R = symbolic.SYMBOLS["R"]
    main = R * n * sp.log(n, 2) - R * n / sp.log(2) + R / 2 * sp.log(2 * sp.pi * n, 2)
    for value in (10**3, 10**6):
        left = (series - main).subs({n: value, R: 3}).evalf(40)
        assert float(left * value) == pytest.approx(3 / (12 * float(sp.log(2))), rel=1e-5)


@pytest.mark.parametrize("theorem", ["B1", "B2", "B3", "B4", "B5", "B6", "B7"])
def test_every_bound_prints(theorem):
    assert ">=" in str(symbolic.inequality(theorem))
    assert sp.latex(symbolic.inequality(theorem))


def test_a_bound_carries_its_formula():
    assert bounds.fixed_unembedding(50, 2).formula == symbolic.inequality("B1")
    assert bounds.real_dimension(50, 2, width=9).formula.has(sp.Function("Phi"))
