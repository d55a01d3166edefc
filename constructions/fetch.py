"""Attention heads that fetch part of a token by its position, and how sharp their softmax must be (THEORY 4)."""

from math import ceil, log

import torch
from jaxtyping import Float
from torch import Tensor

from geotheory.codes import Code
from geotheory.transformer import Head

__all__ = ["LEAKAGE", "average", "fetch", "read_position", "sharpness"]

LEAKAGE = 2.0**-26
"""What `sharpness` leaves of the error of a pre-activation: below the rounding of float32, where evaluation is then exact."""


def sharpness(length: int, gain: int) -> int:
    """Inverse temperature `beta` at which a head's leakage moves no pre-activation by more than `LEAKAGE`.

    Scores `beta <code, code'>` of sign-coded positions leave a gap of at least `2 beta`, so a head puts at most
    `delta = (length - 1) exp(-2 beta)` outside its target, and a pre-activation whose inputs it fetched is off by at most
    `2 delta gain`. Hence `beta >= 1/2 ln(2 (length - 1) gain / LEAKAGE)`, here rounded up to an integer, which is exact in every
    dtype.

    Parameters
    ----------
    length
        Number of positions, at least 2.
    gain
        Largest total share of fetched values in a pre-activation; `s + (s + 1) k L` for the relation gate.
    """
    return ceil(log(2 * (length - 1) * gain / LEAKAGE) / 2)


def fetch(
    head: Head,
    query: slice,
    key: slice,
    beta: int,
    source: slice,
    target: slice,
    signs: Float[Tensor, "l"] | None = None,
) -> None:
    """Copy `source` of the position whose key code equals the query code (times `signs`) to `target` of the reading position."""
    assert head.query is not None
    assert head.key is not None
    head.query[query].diagonal().copy_(beta * (torch.ones(head.query.shape[1]) if signs is None else signs))
    head.key[key].fill_diagonal_(1)
    head.value[source].fill_diagonal_(1)
    head.output[:, target].fill_diagonal_(1)


def read_position(position: int, reader: int, positions: Code) -> Float[Tensor, "l"]:
    """Signs that turn the code of the `reader`'s own position into that of `position`: no query code need be stored."""
    return positions.words(torch.tensor(position)) * positions.words(torch.tensor(reader))


def average(head: Head, source: slice, target: slice, tokens: int) -> None:
    """Uniform attention over `tokens` positions, scaled up so that what a single token carries arrives whole."""
    head.value[source].fill_diagonal_(tokens)
    head.output[:, target].fill_diagonal_(1)
