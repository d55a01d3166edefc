"""The symbols of the theory, and the terms that its bounds share, in sympy."""

from collections.abc import Mapping
from typing import Any

import sympy as sp

__all__ = ["SYMBOLS", "levels", "log2_factorial", "log2_falling"]

N, R, k, M, P, d, W, b, c = sp.symbols("N R k M P d W b c", positive=True)
p, q = sp.symbols("p q", nonnegative=True)
rho = sp.Symbol("rho", positive=True)
M_out, D_in, D_out = sp.symbols("M' D_in D_out", positive=True)

SYMBOLS: Mapping[str, sp.Symbol] = {
    symbol.name: symbol for symbol in (N, R, k, M, P, d, W, b, c, p, q, rho, M_out, D_in, D_out)
}


def levels(base: Any, count: Any) -> Any:
    """`1 + base + ... + base^(count-1)`."""
    return (base**count - 1) / (base - 1)


def log2_falling(n: Any, length: Any) -> Any:
    """`log2 n (n-1) ... (n-length+1)`."""
    return (sp.loggamma(n + 1) - sp.loggamma(n - length + 1)) / sp.log(2)


def log2_factorial(n: Any) -> Any:
    """`log2 n!`."""
    return sp.loggamma(n + 1) / sp.log(2)
