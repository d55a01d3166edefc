"""The affine relation decoder of Hernandez et al. (Linearity of Relation Decoding in Transformer Language Models, 2023).

For a causal model and a relation, the map from the subject's state `s` at a layer to the last state `o` of the prompt is taken to
first order: `o = W s + b`, `W` the mean Jacobian and `b` the mean of `o - W s` over a few subjects. The attribute is the one whose
output embedding has the largest product with `beta W s + b`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geotheory.errors import InvalidArgument
from paper_checks.language_models.states import LanguageModel

__all__ = ["BETA", "affine_decoder"]

# The paper's scale for most relations: a mean Jacobian is too short where attributes differ.
BETA = 2.25


def affine_decoder(
    model: LanguageModel, prompts: Sequence[tuple[str, int, int]], layer: int
) -> tuple[Float[Tensor, "d d"], Float[Tensor, " d"]]:
    """`W` and `b` from these prompts, for the state after `layer` layers; one backward pass a coordinate.

    Raises
    ------
    InvalidArgument
        The model is no causal one, or has no such layer.
    """
    if not model.causal:
        raise InvalidArgument(f"{model.name!r} predicts no next token: the affine decoder is for causal models")
    if not 1 <= layer <= model.layers:
        raise InvalidArgument(f"layer {layer}: {model.name!r} has layers 1 to {model.layers}")
    block = _blocks(model.model)[layer - 1]
    jacobians, offsets = [], []
    for prompt in prompts:
        encoded, places = model.locate([prompt])
        place = int(places[0])
        held: list[Tensor] = []

        def inject(_: Any, __: Any, output: Any, place: int = place, held: list[Tensor] = held) -> Any:
            state = output[0] if isinstance(output, tuple) else output
            s = state[0, place].detach().clone().requires_grad_(True)
            held.append(s)
            changed = torch.cat([state[:, :place].detach(), s[None, None], state[:, place + 1 :].detach()], 1)
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        handle = block.register_forward_hook(inject)
        try:
            last = model.model(**encoded, output_hidden_states=True).hidden_states[-1][0, -1]
        finally:
            handle.remove()
        s = held[0]
        rows = [torch.autograd.grad(last[i], s, retain_graph=True)[0] for i in range(len(last))]
        W = torch.stack(rows).double()
        jacobians.append(W)
        offsets.append(last.detach().double() - W @ s.detach().double())
    return torch.stack(jacobians).mean(0), torch.stack(offsets).mean(0)


def _blocks(model: Any) -> Any:
    """The list of layers, wherever this architecture keeps it."""
    count = model.config.num_hidden_layers
    found = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == count]
    if not found:
        raise InvalidArgument(f"{type(model).__name__}: no list of {count} layers is found in it")
    return found[0]
