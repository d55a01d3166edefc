"""How many digits a code needs: exact integers, no torch."""

__all__ = ["code_length"]


def code_length(count: int, bits: int = 1) -> int:
    """Least number of base-`2**bits` digits that tell `count` things apart, and at least one digit.

    This is `max(1, ceil(log_q count))` with `q = 2**bits`, without rounding: `m` and `L` of the theory are
    `code_length(N)` and `code_length(R)`.

    Examples
    --------
    >>> [code_length(n) for n in (1, 2, 3, 4096, 4097)]
    [1, 1, 2, 12, 13]
    >>> code_length(4096, bits=5)
    3
    """
    return max(1, -(-(count - 1).bit_length() // bits))
