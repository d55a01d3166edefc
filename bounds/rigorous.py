"""Logarithms rounded to the safe side: exact integers where they fit, else Arb balls."""

import sys
from fractions import Fraction
from math import inf, nextafter, perm

from flint import arb, ctx, fmpq

__all__ = [
    "Real",
    "above",
    "log2_factorial",
    "log2_falling",
    "log2_integer",
    "log2_share",
    "lower",
    "plus",
    "scaled",
    "upper",
]

Real = Fraction | arb
"""A number that is known: exactly, or as a ball that contains it."""

# Products of at most so many factors are multiplied out: exact, and faster than the gamma function.
FACTORS = 64
LARGEST = sys.float_info.max
PRECISION = 192
"""Bits of Arb's arithmetic: differences of `log gamma` at 10^18 cancel some 70 of them."""


def log2_integer(n: int) -> Real:
    """`log2 n`, exact for powers of two."""
    if n & (n - 1) == 0:
        return Fraction(n.bit_length() - 1)
    with ctx.workprec(PRECISION):
        return arb(n).log() / arb.const_log2()


def log2_falling(n: int, length: int) -> Real:
    """`log2 n (n-1) ... (n-length+1)`; exact where the product is a power of two.

    Examples
    --------
    >>> log2_falling(4096, 1)
    Fraction(12, 1)
    >>> lower(log2_falling(4096, 2))
    23.999647...
    """
    if length <= FACTORS:
        return log2_integer(perm(n, length))
    with ctx.workprec(PRECISION + 2 * n.bit_length()):
        return (arb(n + 1).lgamma() - arb(n - length + 1).lgamma()) / arb.const_log2()


def log2_factorial(n: int) -> Real:
    """`log2 n!`."""
    return log2_falling(n, n)


def log2_share(share: float) -> Real:
    """`log2` of a share in (0, 1]."""
    exact = Fraction(share)
    return plus(log2_integer(exact.numerator), scaled(log2_integer(exact.denominator), -1))


def _ball(value: Real | int) -> arb:
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def plus(value: Real, other: Real | int) -> Real:
    """The sum, as exactly as both are known."""
    if isinstance(value, Fraction) and isinstance(other, Fraction | int):
        return value + other
    with ctx.workprec(PRECISION):
        return _ball(value) + _ball(other)


def scaled(value: Real, factor: int, divisor: int = 1) -> Real:
    """`factor value / divisor`, as exactly as `value` is known."""
    if isinstance(value, Fraction):
        return value * factor / divisor
    with ctx.workprec(PRECISION):
        return value * factor / divisor


def above(value: Real, other: Real) -> bool:
    """Whether `value` exceeds `other`, as far as is known: for searching, where either answer gives a valid bound."""
    difference = plus(value, scaled(other, -1))
    return difference > 0 if isinstance(difference, Fraction) else bool(difference.mid() > 0)


def lower(value: Real) -> float:
    """The largest float known not to exceed `value`."""
    if isinstance(value, Fraction):
        if abs(value) > LARGEST:
            return LARGEST if value > 0 else -inf
        nearest = value.numerator / value.denominator
        return nearest if Fraction(nearest) <= value else nextafter(nearest, -inf)
    with ctx.workprec(PRECISION):
        end = value.lower()
        nearest = float(end)
        return nearest if arb(nearest) <= end else nextafter(nearest, -inf)


def upper(value: Real) -> float:
    """The smallest float known not to be exceeded by `value`."""
    return -lower(scaled(value, -1))
