"""The bounds and the sizes as sympy expressions: printed, evaluated, expanded, and taken to the limit.

Numbers in :mod:`bounds.information` are evaluated rigorously; the tests hold them against these formulas at many points.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import sympy as sp

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

N, R, k, M, P, d, W, b, c = sp.symbols("N R k M P d W b c", positive=True)
p, q = sp.symbols("p q", nonnegative=True)
rho = sp.Symbol("rho", positive=True)
M_out, D_in, D_out = sp.symbols("M' D_in D_out", positive=True)

SYMBOLS: Mapping[str, sp.Symbol] = {
    symbol.name: symbol for symbol in (N, R, k, M, P, d, W, b, c, p, q, rho, M_out, D_in, D_out)
}


def _levels(base: Any, count: Any) -> Any:
    """`1 + base + ... + base^(count-1)`."""
    return (base**count - 1) / (base - 1)


def _log2_falling(n: Any, length: Any) -> Any:
    return (sp.loggamma(n + 1) - sp.loggamma(n - length + 1)) / sp.log(2)


@cache
def lower_side(theorem: str, *, narrow: bool = False) -> sp.Expr:
    """What a bound says the bits, neurons or dimensions are at least, for given witnesses.

    B1, B3 and B7: bits per subject with `M` roots. B2: `P + M D_in + M' D_out`. B4: shared bits. B5: width times bits of a
    pre-activation. `narrow`: with trees that branch into `rho < R` relations.
    """
    tree = R * _log2_falling(N - M * _levels(R, k - 1), M * R ** (k - 1))
    if narrow:
        leaves = M * rho ** (k - 1)
        tree = rho * _log2_falling(N - M * _levels(rho, k - 1), leaves) + (R - rho) * _log2_falling(N, leaves)
    sides = {
        "B1": (tree - P) / M,
        "B2": R ** (q + 1) * _log2_falling(M_out, M * R ** (p - q)),
        "B4": R * sp.loggamma(N + 1) / sp.log(2),
        "B5": tree.subs(M, 1),
    }
    sides["B3"] = sides["B7"] = sides["B1"]
    return sides[theorem]


@cache
def inequality(theorem: str, *, narrow: bool = False) -> Any:
    """The bound as a relation between symbols, as it is printed; `narrow` as for :func:`lower_side`.

    Examples
    --------
    >>> inequality("B4")
    b*(2*c*d**2 + c*d + d) >= R*loggamma(N + 1)/log(2)
    """
    if theorem == "B6":
        phi = sp.Function("Phi")
        tables = sp.Function("tables")
        return sp.Ge(phi(d, R**k * W) * phi(d, R**k * N * (N - 1) / 2), tables(N, R, k))
    left = {
        "B2": P + M * D_in + M_out * D_out,
        "B4": b * (2 * c * d**2 + c * d + d),
        "B5": W * c,
    }.get(theorem, D_in)
    return sp.Ge(left, lower_side(theorem, narrow=narrow))


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
        int(_levels(sp.Integer(relations), hops - 1)) if relations > 1 else hops - 1,
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
