"""Searches over integers by halving, where what is searched rises and then falls."""

from collections.abc import Callable

from bounds.rigorous import Real, above, scaled

__all__ = ["last", "peak"]


def last(first: int, last: int, holds: Callable[[int], bool]) -> int:
    """The last integer up to which `holds`, by halving; at `first` it does."""
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if holds(middle) else (first, middle - 1)
    return first


def peak(value: Callable[[int], Real], divisor: Callable[[int], int], first: int, last: int) -> int:
    """Where `value / divisor`, which rises and then falls, is largest: the first integer whose successor is no better.

    Balls are compared, not floats: near 10^18 neighbours differ by less than a float can show, and a rise looks flat.
    """
    while first < last:
        middle = (first + last) // 2
        here, there = value(middle), value(middle + 1)
        if above(scaled(there, divisor(middle)), scaled(here, divisor(middle + 1))):
            first = middle + 1
        else:
            last = middle
    return first
