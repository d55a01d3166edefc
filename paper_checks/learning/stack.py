"""Several models of one shape as one batch: every weight with a leading axis of seeds."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap

from geotheory.transformer import Transformer
from paper_checks.learning.setting import Setting

__all__ = ["Stack"]

# Logits in one tile: small enough for a core's cache, where the passes over them cost least.
TILE = 1 << 18


class Stack:
    """Weights `[S, ...]` of `S` models, the subjects' rows of W_E apart from those of the relations.

    Attributes
    ----------
    weights
        By the transformer's names, with `embedding` parted into `subjects` `[S, N, d]` and `others` `[S, R, d]`.
    """

    def __init__(self, setting: Setting, weights: Mapping[str, Tensor]) -> None:
        self.setting = setting
        self.weights = dict(weights)
        self._body = _States(setting.shape, dtype=setting.torch_dtype, device="meta")
        fixed = {
            "none": set(),
            "subjects": {"subjects"},
            "unembedding": {"unembedding", "unembedding_bias"},
            "embeddings": {"subjects", "unembedding", "unembedding_bias"},
            "decoder": set(self.weights) - {"subjects"},
        }[setting.frozen]
        for name, weight in self.weights.items():
            weight.requires_grad_(name not in fixed)

    @classmethod
    def initialized(cls, setting: Setting, seeds: Sequence[int], device: str | torch.device = "cpu") -> "Stack":
        """Random weights, each seed's from its own generator; they do not depend on the other seeds."""
        return cls.of(setting, [_initialized(setting, seed) for seed in seeds], device)

    @classmethod
    def of(cls, setting: Setting, models: Sequence[Transformer], device: str | torch.device = "cpu") -> "Stack":
        """The weights of these models, copied."""
        N = setting.entities
        parted = []
        for model in models:
            state = {name: weight.detach().to(device) for name, weight in model.named_parameters()}
            embedding = state.pop("embedding")
            parted.append({"subjects": embedding[:N], "others": embedding[N:], **state})
        return cls(setting, {name: torch.stack([weights[name] for weights in parted]) for name in parted[0]})

    def __len__(self) -> int:
        return len(self.weights["subjects"])

    @property
    def trainable(self) -> dict[str, Tensor]:
        """The weights that the optimizer may change."""
        return {name: weight for name, weight in self.weights.items() if weight.requires_grad}

    def keep(self, places: Sequence[int]) -> "Stack":
        """The models in these places only."""
        return Stack(
            self.setting, {name: weight.detach()[list(places)].clone() for name, weight in self.weights.items()}
        )

    def model(self, place: int) -> Transformer:
        """One of the models, copied."""
        state = {name: weight.detach()[place] for name, weight in self.weights.items()}
        state["embedding"] = torch.cat([state.pop("subjects"), state.pop("others")])
        model = Transformer(self.setting.shape, dtype=self.setting.torch_dtype, device=state["embedding"].device)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.copy_(state[name])
        return model

    def losses(
        self, tokens: Int[Tensor, "S batch length"], answers: Int[Tensor, "S batch steps"]
    ) -> Float[Tensor, "S"]:
        """Mean cross-entropy in nats of each model over its own queries, at the last `steps` positions."""
        inner = {name: weight for name, weight in self.weights.items() if name not in _OUTSIDE}
        inner["embedding"] = torch.cat([self.weights["subjects"], self.weights["others"]], 1)
        steps = answers.shape[2]
        states = vmap(lambda weights, asked: functional_call(self._body, weights, (asked, steps > 1)))(inner, tokens)
        states = states[:, :, -steps:].flatten(1, 2)
        return cross_entropy(states, self.weights["unembedding"], self.weights["unembedding_bias"], answers.flatten(1))


_OUTSIDE = ("subjects", "others", "unembedding", "unembedding_bias")


class _States(Transformer):
    """`functional_call` calls `forward`, and here that is all but the unembedding."""

    def forward(self, tokens: Tensor, every: bool = False) -> Tensor:
        return self.states(tokens, every)


def _initialized(setting: Setting, seed: int) -> Transformer:
    model = Transformer(setting.shape, dtype=setting.torch_dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            kind = name.rpartition(".")[2]
            if kind in ("embedding", "position"):
                weight.normal_(generator=generator)
            elif kind in ("value", "output"):
                # What attention moves arrives as long as it was.
                nn.init.orthogonal_(weight, generator=generator)
            elif kind == "unembedding":
                scale = setting.unembedding_scale
                weight.normal_(std=setting.d**-0.5 if scale is None else scale, generator=generator)
            elif kind in ("query", "key"):
                # Scores of order 1: a softmax that begins at one token alone does not learn.
                weight.normal_(std=weight.shape[0] ** -0.75, generator=generator)
            elif weight.ndim == 2:
                # He's gain 2 for weights into ReLU, 1 for the others.
                weight.normal_(
                    std=((2.0 if kind == "weight_in" else 1.0) / weight.shape[0]) ** 0.5, generator=generator
                )
        model.embedding[: setting.entities] *= setting.subject_scale
    return model


def cross_entropy(
    states: Float[Tensor, "S n d"],
    unembedding: Float[Tensor, "S d attributes"],
    bias: Float[Tensor, "S attributes"],
    answers: Int[Tensor, "S n"],
) -> Float[Tensor, "S"]:
    """Mean cross-entropy of each model's logits `states @ unembedding + bias`, which never exist all at once.

    The gradients are taken tile by tile in the forward pass: each tile of logits is used up while it lies in the cache.
    """
    loss: Tensor = _TiledCrossEntropy.apply(states, unembedding, bias, answers)
    return loss


class _TiledCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, unembedding: Tensor, bias: Tensor, answers: Tensor) -> Tensor:
        S, n, _ = states.shape
        loss = states.new_zeros(S)
        of_states = torch.empty_like(states)
        of_unembedding, of_bias = torch.zeros_like(unembedding), torch.zeros_like(bias)
        rows = max(1, TILE // (S * unembedding.shape[2]))
        for start in range(0, n, rows):
            tile = slice(start, start + rows)
            h, wanted = states[:, tile], answers[:, tile, None]
            p = torch.baddbmm(bias.unsqueeze(1), h, unembedding)
            p -= p.amax(2, keepdim=True)
            right = p.gather(2, wanted)
            p.exp_()
            total = p.sum(2, keepdim=True)
            loss += (total.log() - right).sum((1, 2))
            # d loss / d logits = softmax - one-hot.
            p /= total
            p.scatter_add_(2, wanted, p.new_full((), -1.0).expand(wanted.shape))
            of_states[:, tile] = p @ unembedding.transpose(1, 2)
            if ctx.needs_input_grad[1]:
                of_unembedding.baddbmm_(h.transpose(1, 2), p)
                of_bias += p.sum(1)
        ctx.save_for_backward(of_states, of_unembedding, of_bias)
        ctx.n = n
        return loss / n

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        of_states, of_unembedding, of_bias = ctx.saved_tensors
        each = gradients[0] / ctx.n
        return each[:, None, None] * of_states, each[:, None, None] * of_unembedding, each[:, None] * of_bias, None
