"""Sign and amplitude codes: entities and relations as short vectors of small odd integers (THEORY 3)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geotheory.digits import code_length
from geotheory.errors import InvalidArgument, positive_integer

__all__ = ["Code", "exact_range"]


def exact_range(dtype: torch.dtype) -> float:
    """Integers up to here are exact in a floating-point type: `2^24` in float32, 2048 in float16, 256 in bfloat16."""
    return min(2 / torch.finfo(dtype).eps, torch.finfo(dtype).max)


@dataclass(frozen=True)
class Code:
    """Base-`2**bits` digits of `0, ..., count - 1`, each digit an odd integer in `{-s, -s + 2, ..., s}`, `s = 2**bits - 1`.

    `bits = 1` is the *sign code*, larger `bits` an *amplitude code*. Two different codewords differ by at least 2 in some
    coordinate, so with the bias of :meth:`bias` the logits `<u_a, y> + bias_a` of a noiseless `y = u_a` separate `a` from
    every other `c` by `|u_a - u_c|^2 / 2 >= 2`.

    Silence is a codeword too: the origin, with logit 0. Every coordinate of a codeword is odd, so `u_a` has logit at least
    `m` (the length) at `y = u_a` and at most 0 at `y = 0`: a model whose largest logit is not above `m / 2` abstains. No spare
    codeword is needed for "missing".

    Parameters
    ----------
    count
        How many things the code names, at least 1.
    bits
        Bits a coordinate, at least 1.

    Source: THEORY 3; the silent origin is **[new]**.

    Examples
    --------
    >>> Code(5).words()
    tensor([[-1., -1., -1.],
            [ 1., -1., -1.],
            [-1.,  1., -1.],
            [ 1.,  1., -1.],
            [-1., -1.,  1.]])
    >>> Code(5, bits=2).words(torch.tensor([4]))
    tensor([[-3., -1.]])
    """

    count: int
    bits: int = 1

    def __post_init__(self) -> None:
        positive_integer("the number of codewords", self.count)
        positive_integer("bits", self.bits)
        if self.bits > 24:
            raise InvalidArgument(
                f"bits = {self.bits}: amplitudes above 2**24 are not exact in float32; use bits <= 24"
            )

    @property
    def length(self) -> int:
        """Coordinates of a codeword."""
        return code_length(self.count, self.bits)

    @property
    def amplitude(self) -> int:
        """`s = 2**bits - 1`, the largest coordinate."""
        return (1 << self.bits) - 1

    @property
    def silence(self) -> float:
        """Logits not above this level mean "no answer": halfway between the origin (0) and a codeword (`length`)."""
        return self.length / 2

    @property
    def minimum_distance(self) -> int:
        """Least Euclidean distance of two different codewords: 2, since `0` and `1` differ in their lowest digit alone.

        With a single codeword there is no other: the distance to the silent origin is meant, of which 1 is sure.
        """
        return 2 if self.count > 1 else 1

    def words(
        self,
        items: Int[Tensor, "..."] | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> Float[Tensor, "... length"]:
        """Codewords of `items` (default: all); the item -1 ("missing") is the origin."""
        if items is None:
            items = torch.arange(self.count, device=device)
        items = items.to(device)
        shifts = self.bits * torch.arange(self.length, device=device)
        digits = (items.clamp(min=0).unsqueeze(-1) >> shifts) & self.amplitude
        return (2 * digits - self.amplitude).masked_fill_(items.unsqueeze(-1) < 0, 0).to(dtype)

    def bias(self, *, dtype: torch.dtype = torch.float32, device: str | torch.device = "cpu") -> Float[Tensor, "count"]:
        """Unembedding bias `-(|u_a|^2 - m) / 2`: an integer, since a sum of `m` odd squares is `m` modulo 8; 0 for sign codes."""
        words = self.words(device=device, dtype=torch.float64)
        return ((self.length - words.square().sum(-1)) / 2).to(dtype)

    def read(self, words: Tensor) -> Int[Tensor, "..."]:
        """The items whose codewords are `words` (shape `[..., length]`); -1 for the origin, -2 for anything else."""
        digits = (words.to(torch.float64) + self.amplitude) / 2
        whole = digits.round().clamp(0, self.amplitude).to(torch.int64)
        items = (whole << (self.bits * torch.arange(self.length, device=words.device))).sum(-1)
        exact = (whole == digits).all(-1) & (items < self.count)
        return items.masked_fill(~exact, -2).masked_fill((words == 0).all(-1), -1)
