"""Words: sequences of relations, the first of which is applied first."""

import torch
from jaxtyping import Int
from torch import Tensor

__all__ = ["all_words", "numbered_words"]


def all_words(relations: int, hops: int) -> Int[Tensor, "words hops"]:
    """Every word of `[R]^k` in lexicographic order; the single empty word if `hops` is 0.

    Examples
    --------
    >>> all_words(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if hops == 0:
        return torch.empty(1, 0, dtype=torch.int64)
    return torch.cartesian_prod(*[torch.arange(relations)] * hops).reshape(-1, hops)


def numbered_words(numbers: Int[Tensor, "*batch"], relations: int, hops: int) -> Int[Tensor, "*batch hops"]:
    """The words of `[R]^k` with these numbers in lexicographic order, without listing the others.

    Examples
    --------
    >>> import torch
    >>> numbered_words(torch.tensor([1, 2]), relations=2, hops=2).tolist()
    [[0, 1], [1, 0]]
    """
    places = torch.tensor([relations ** (hops - 1 - i) for i in range(hops)], device=numbers.device)
    return numbers[..., None] // places % relations
