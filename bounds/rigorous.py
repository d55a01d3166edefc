"""Logarithms rounded to the safe side: exact integers where they fit, else Arb balls."""

from fractions import Fraction
from math import inf, nextafter, perm

from flint import arb, ctx, fmpq

__all__ = ["Real", "log2_falling", "lower", "scaled"]

Real = Fraction | arb
"""A number that is known: exactly, or as a ball that contains it."""

# Products of at most so many factors are multiplied out: exact, and faster than the gamma function.
FACTORS = 64
PRECISION = 192
"""Bits of Arb's arithmetic: differences of `log gamma` at 10^18 cancel some 70 of them."""


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
        product = perm(n, length)
        if product & (product - 1) == 0:
            return Fraction(product.bit_length() - 1)
        with ctx.workprec(PRECISION):
            return arb(product).log() / arb.const_log2()
    with ctx.workprec(PRECISION):
        return (arb(n + 1).lgamma() - arb(n - length + 1).lgamma()) / arb.const_log2()


def scaled(value: Real, factor: int, less: Fraction, divisor: int) -> Real:
    """`(factor value - less) / divisor`, as exactly as `value` is known."""
    if isinstance(value, Fraction):
        return (factor * value - less) / divisor
    with ctx.workprec(PRECISION):
        return (factor * value - arb(fmpq(less.numerator, less.denominator))) / divisor


def lower(value: Real) -> float:
    """The largest float known not to exceed `value`."""
    if isinstance(value, Fraction):
        nearest = value.numerator / value.denominator
        return nearest if Fraction(nearest) <= value else nextafter(nearest, -inf)
    with ctx.workprec(PRECISION):
        end = value.lower()
        nearest = float(end)
        return nearest if arb(nearest) <= end else nextafter(nearest, -inf)
