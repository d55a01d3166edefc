"""The transformer of the theory (THEORY 2): plain torch modules, small enough to read.

h_i       = W_E[token_i] + W_pos[i]
pattern_h = softmax over j <= i of (h_i W_Q^h) . (h_j W_K^h)          (no 1/sqrt scaling)
a_i       = sum_h sum_j pattern_h[i, j] (h_j W_V^h) W_O^h
u_i       = a_i (+ h_i if residual)
v_i       = ReLU(u_i W_in + b_in) W_out + b_out (+ u_i if residual)
logits    = v_last W_U + b_U
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from geotheory.errors import InvalidArgument

__all__ = ["MLP", "Attention", "Block", "BlockShape", "Head", "HeadShape", "Transformer", "TransformerShape"]


@dataclass(frozen=True)
class HeadShape:
    """Dimensions of a head: of its queries and keys (0: uniform attention, no query or key), and of its values."""

    query: int
    value: int


@dataclass(frozen=True)
class BlockShape:
    """Hidden width of a block's MLP and its heads (none: an MLP alone); `hard` attention goes to the largest score only."""

    width: int
    heads: tuple[HeadShape, ...] = ()
    hard: bool = False


@dataclass(frozen=True)
class TransformerShape:
    """Everything about a transformer but its weights.

    Attributes
    ----------
    tokens
        Size of the vocabulary: subjects, then relations, then perhaps a blank token.
    attributes
        Number of logits.
    d
        Dimension of the hidden state.
    length
        Number of positions with an embedding of their own; 0: no position embedding.
    blocks
        The blocks in order.
    residual
        Whether all blocks have a residual stream.
    """

    tokens: int
    attributes: int
    d: int
    length: int
    blocks: tuple[BlockShape, ...]
    residual: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As nested plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "TransformerShape":
        """Inverse of :meth:`to_dict`."""
        blocks = tuple(
            BlockShape(b["width"], tuple(HeadShape(**h) for h in b["heads"]), b["hard"]) for b in fields["blocks"]
        )
        return cls(**(fields | {"blocks": blocks}))


def _weight(*shape: int, **options: Any) -> nn.Parameter:
    return nn.Parameter(torch.zeros(*shape, **options))


class Head(nn.Module):
    """One attention head: `query`, `key` of shape `[d, q]` (None: uniform), `value` `[d, v]`, `output` `[v, d]`."""

    query: nn.Parameter | None
    key: nn.Parameter | None

    def __init__(self, shape: HeadShape, d: int, **options: Any) -> None:
        super().__init__()
        uniform = shape.query == 0
        self.register_parameter("query", None if uniform else _weight(d, shape.query, **options))
        self.register_parameter("key", None if uniform else _weight(d, shape.query, **options))
        self.value = _weight(d, shape.value, **options)
        self.output = _weight(shape.value, d, **options)

    def scores(self, read: Float[Tensor, "*batch i d"], h: Float[Tensor, "*batch j d"]) -> Float[Tensor, "*batch i j"]:
        """Attention scores before the softmax; all zero for uniform attention."""
        if self.query is None or self.key is None:
            return h.new_zeros(*read.shape[:-1], h.shape[-2])
        return (read @ self.query) @ (h @ self.key).transpose(-1, -2)


class Attention(nn.Module):
    """Causal multi-head attention without scaling; heads may differ in their dimensions."""

    def __init__(self, shape: BlockShape, d: int, **options: Any) -> None:
        super().__init__()
        self.hard = shape.hard
        self.heads = cast("Sequence[Head]", nn.ModuleList(Head(head, d, **options) for head in shape.heads))

    def patterns(self, h: Float[Tensor, "*batch j d"], last: bool = False) -> list[Float[Tensor, "*batch i j"]]:
        """The pattern of every head, for all positions `i` or the `last` alone; each row sums to 1."""
        length = h.shape[-2]
        read = h[..., -1:, :] if last else h
        seen = torch.ones(length, length, dtype=torch.bool, device=h.device).tril()[-read.shape[-2] :]
        patterns = []
        for head in self.heads:
            scores = head.scores(read, h).masked_fill(~seen, float("-inf"))
            if self.hard:
                largest = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
                patterns.append(largest / largest.sum(-1, keepdim=True))
            else:
                patterns.append(scores.softmax(-1))
        return patterns

    def forward(self, h: Float[Tensor, "*batch j d"], last: bool = False) -> Float[Tensor, "*batch i d"]:
        """`a_i` for all positions, or for the `last` alone."""
        return torch.stack(
            [pattern @ (h @ head.value) @ head.output for head, pattern in zip(self.heads, self.patterns(h, last))]
        ).sum(0)


class MLP(nn.Module):
    """One hidden ReLU layer: `weight_in` `[d, width]`, `bias_in`, `weight_out` `[width, d]`, `bias_out`."""

    def __init__(self, d: int, width: int, **options: Any) -> None:
        super().__init__()
        self.weight_in = _weight(d, width, **options)
        self.bias_in = _weight(width, **options)
        self.weight_out = _weight(width, d, **options)
        self.bias_out = _weight(d, **options)

    def forward(self, u: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """`ReLU(u W_in + b_in) W_out + b_out`."""
        return torch.relu(u @ self.weight_in + self.bias_in) @ self.weight_out + self.bias_out


class Block(nn.Module):
    """Attention (perhaps none), then an MLP, with or without a residual stream."""

    def __init__(self, shape: BlockShape, d: int, residual: bool, **options: Any) -> None:
        super().__init__()
        self.residual = residual
        self.attention = Attention(shape, d, **options) if shape.heads else None
        self.mlp = MLP(d, shape.width, **options)

    def forward(self, h: Float[Tensor, "*batch j d"], last: bool = False) -> Float[Tensor, "*batch i d"]:
        """`v_i` for all positions, or for the `last` alone."""
        u = h[..., -1:, :] if last else h
        if self.attention is not None:
            attended: Tensor = self.attention(h, last)
            u = attended + u if self.residual else attended
        v: Tensor = self.mlp(u)
        return v + u if self.residual else v


class Transformer(nn.Module):
    """Token sequences to logits of the answer that follows them (THEORY 2).

    All weights are zero at first: a construction writes them, :meth:`randomize` draws them for training.

    Parameters
    ----------
    shape
        See :class:`TransformerShape`.
    dtype, device
        Of the weights.

    Attributes
    ----------
    embedding : `[tokens, d]`, W_E
    position : `[length, d]`, W_pos, or None
    blocks : list of Block
    unembedding : `[d, attributes]`, W_U
    unembedding_bias : `[attributes]`, b_U
    """

    position: nn.Parameter | None

    def __init__(
        self, shape: TransformerShape, *, dtype: torch.dtype = torch.float32, device: str | torch.device = "cpu"
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"dtype": dtype, "device": device}
        self.shape = shape
        self.embedding = _weight(shape.tokens, shape.d, **options)
        self.register_parameter("position", _weight(shape.length, shape.d, **options) if shape.length else None)
        self.blocks = cast(
            "Sequence[Block]", nn.ModuleList(Block(block, shape.d, shape.residual, **options) for block in shape.blocks)
        )
        self.unembedding = _weight(shape.d, shape.attributes, **options)
        self.unembedding_bias = _weight(shape.attributes, **options)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch attributes"]:
        """Logits of the answer, read at the last position.

        Raises
        ------
        InvalidArgument
            If the sequence is empty or longer than the positions that have an embedding.
        """
        return self.states(tokens)[:, -1] @ self.unembedding + self.unembedding_bias

    def states(self, tokens: Int[Tensor, "batch length"], every: bool = False) -> Float[Tensor, "batch i d"]:
        """What the unembedding reads: `v_i` of the last block, at `every` position or at the last alone.

        Raises
        ------
        InvalidArgument
            As :meth:`forward`.
        """
        length = tokens.shape[1]
        if length == 0 or (self.position is not None and length > self.shape.length):
            raise InvalidArgument(f"a sequence of {length} tokens: this transformer takes 1 to {self.shape.length}")
        h = self.embedding[tokens]
        if self.position is not None:
            h = h + self.position[:length]
        for i, block in enumerate(self.blocks):
            # Once no later block attends, only the last position can reach the logits.
            h = block(h, last=not every and all(later.attention is None for later in self.blocks[i + 1 :]))
        return h if every else h[:, -1:]

    @property
    def num_parameters(self) -> int:
        """Number of weights."""
        return sum(p.numel() for p in self.parameters())

    @torch.no_grad()
    def randomize(self, seed: int = 0, scale: float = 1.0) -> "Transformer":
        """Draw every weight from a normal distribution of variance `scale**2 / fan-in` (embeddings: `scale**2`)."""
        generator = torch.Generator(device=self.embedding.device).manual_seed(seed)
        for name, weight in self.named_parameters():
            fan_in = weight.shape[0] if weight.ndim == 2 and name not in ("embedding", "position") else 1
            weight.normal_(std=scale / fan_in**0.5, generator=generator)
        return self
