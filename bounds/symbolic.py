"""The bounds and the sizes as sympy expressions: printed, evaluated, expanded, and taken to the limit.

Each formula stands in its bound's own file. Numbers are evaluated rigorously there; the tests hold them against these formulas.
"""

from functools import cache
from typing import Any

import sympy as sp

from bounds.registry import numbered
from bounds.symbols import SYMBOLS, M, M_out, N, R, levels, p, q

__all__ = [
    "SYMBOLS",
    "direct_ratio",
    "evaluate",
    "inequality",
    "limit_of_direct",
    "limit_of_meet_in_middle",
    "lower_side",
    "stirling",
]


def inequality(theorem: str, *, narrow: bool = False) -> Any:
    """The bound as a relation between symbols, as it is printed; `narrow`: with trees that branch into `rho < R` relations.

    Raises
    ------
    UnknownName
        No bound has this number.

    Examples
    --------
    >>> inequality("B4")
    b*(2*c*d**2 + c*d + d) >= R*loggamma(N + 1)/log(2)
    """
    return numbered(theorem).formula({"rho": 1} if narrow else {})


@cache
def lower_side(theorem: str, *, narrow: bool = False) -> sp.Expr:
    """What a bound says the bits, neurons or dimensions are at least: the right side of :func:`inequality`."""
    return inequality(theorem, narrow=narrow).rhs


def evaluate(theorem: str, **values: float) -> float:
    """The lower side at the numbers of a witness, with 60 digits inside.

    Examples
    --------
    >>> round(evaluate("B1", N=4096, R=16, k=2, M=1, P=0), 3)
    3071.233
    """
    # Not by substitution: sympy would turn log Gamma of an integer into the logarithm of its factorial, written out.
    import mpmath

    side = lower_side(theorem, narrow="rho" in values)
    function = sp.lambdify([SYMBOLS[name] for name in values], side, "mpmath")
    with mpmath.workdps(60):
        return float(function(*(mpmath.mpf(value) for value in values.values())))


def stirling(expression: sp.Expr, terms: int = 1) -> sp.Expr:
    """Every `log Gamma(z + 1)` by Stirling's series: `z log z - z + log(2 pi z) / 2 + 1 / (12 z) - ...`."""

    def series(argument: sp.Expr) -> sp.Expr:
        z = argument - 1
        tail = sum(sp.bernoulli(2 * i) / (2 * i * (2 * i - 1) * z ** (2 * i - 1)) for i in range(1, terms + 1))
        return z * sp.log(z) - z + sp.log(2 * sp.pi * z) / 2 + tail

    return expression.replace(sp.loggamma, series)


def direct_ratio(relations: int, hops: int) -> sp.Expr:
    """Bits per subject of T2 over B1 (`M = 1`, `P = 0`) as a function of `N`, both without their ceilings."""
    leaves, inner = (
        relations ** (hops - 1),
        int(levels(sp.Integer(relations), hops - 1)) if relations > 1 else hops - 1,
    )
    bound = sum(sp.log(N - inner - i) for i in range(leaves)) * relations
    return relations**hops * sp.log(N) / bound


def limit_of_direct(relations: int, hops: int) -> sp.Expr:
    """The limit of :func:`direct_ratio` as `N` grows: 1, so that B1 and T2 meet.

    Examples
    --------
    >>> limit_of_direct(2, 3)
    1
    """
    return sp.limit(direct_ratio(relations, hops), N, sp.oo)


def limit_of_meet_in_middle(relations: int, hops: int, forward: int) -> sp.Expr:
    """How far T5 with this split is from the hyperbola of B2 as `N` grows: `1 + 1/R`, for every split.

    The left side `M D_in + M' D_out` of B2 at T5's bits `D_in = R^f log2 N`, `D_out = R^w log2 N`, over its right side by Stirling,
    for trees that fill a constant part of the entities: `p = f - 1`, `q = w`, `M' = M R^(p - q)`, all leaves used.

    Examples
    --------
    >>> limit_of_meet_in_middle(3, 4, 2)
    4/3
    """
    r, f = sp.Integer(relations), forward
    w = hops - f
    part = sp.Rational(1, 4) / (relations**hops * hops)
    behind = part * N * r ** max(0, f - 1 - w)
    ahead = behind * r ** (w - f + 1)
    left = (ahead * r**f + behind * r**w) * sp.log(N) / sp.log(2)
    right = stirling(lower_side("B2").subs({R: r, q: w, p: f - 1, M: ahead, M_out: behind}).subs(sp.loggamma(1), 0))
    return sp.limit(sp.simplify(left / sp.expand_log(right, force=True)), N, sp.oo)
