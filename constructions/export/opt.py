"""A construction as an `OPTForCausalLM` of transformers: a checkpoint with a vocabulary, an unembedding and a known circuit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import constructions
from constructions.construction import Construction
from constructions.export.circuit import FILE, ground_truth
from constructions.export.equalized import Equalized, equalize, queries
from constructions.export.vocabulary import UNKNOWN, attribute_tokens, tokenizer, vocabulary
from geotheory.errors import GeotheoryError, InvalidArgument
from geotheory.files import write_whole

__all__ = ["Export", "to_opt"]

# Of torch.nn.LayerNorm, which OPT does not set otherwise.
EPSILON = 1e-5
# Queries that are asked of the exported model before it is handed out.
ASKED = 20_000


@dataclass(frozen=True, eq=False)
class Export:
    """An exported model.

    Attributes
    ----------
    model
        `transformers.OPTForCausalLM`, float32.
    tokenizer
        One token a name.
    circuit
        What every head, neuron and direction is for.
    margin
        Smallest lead of a right token's logit over every other, over the queries that were asked.
    """

    model: Any
    tokenizer: Any
    circuit: Mapping[str, Any]
    margin: float

    def save(self, directory: str | Path) -> Path:
        """Write `config.json`, `model.safetensors`, the tokenizer, `generation_config.json` and `circuit.json`."""
        directory = Path(directory)
        self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)
        write_whole(directory / FILE, json.dumps(self.circuit, ensure_ascii=False, indent=1) + "\n")
        return directory


@torch.no_grad()
def to_opt(construction: Construction) -> Export:
    """The construction as an OPT checkpoint that answers every query as it does.

    The next token after `x r_1 ... r_k` is the answer, after a chain of thought every emitted entity in turn; `<unknown>` where the
    construction abstains. A construction without a residual stream is built again with one.

    Layer norm is the identity on every state that is reached: states are stored as `[v, -v]` and brought to one length
    (:mod:`constructions.export.equalized` has the proof), and its gain is `sqrt(2 C / D + eps)`, where `C` is the squared length of
    `v` and `D` the hidden size. In float32 its rounding moves a logit by some 1e-5 of its size. A head that copies more coordinates
    than OPT's equal heads hold is split into several.

    Raises
    ------
    InvalidArgument
        A relation has the name of an entity; the construction has hard attention, or is none of those that recall exactly; or the
        exported model, which is asked up to 20,000 queries, errs or has a margin below 1.
    GeotheoryError
        The extra `models` (transformers) is not installed.

    Source: **new** here; the aim is that of Tracr (Lindner et al. 2023), models whose mechanism is known exactly.
    """
    try:
        from transformers import GenerationConfig, OPTConfig, OPTForCausalLM
    except ImportError as missing:
        raise GeotheoryError(f"{missing.name} is not installed: pip install 'geotheory[models]'") from missing
    if construction.kind == "associative":
        raise InvalidArgument("associative has no guarantee and no circuit: export another construction")
    if construction.options.get("attention", "softmax") == "hard":
        raise InvalidArgument("OPT has softmax attention: build with attention='softmax'")
    c = construction if construction.options.get("residual") else _with_residual(construction)
    even = equalize(c)
    head, heads = _head_dimension(even)
    half = even.embedding.shape[1]
    dimension = head * max(len(heads), -(-2 * half // head))
    tokens = vocabulary(c.facts, c.transformer.shape.tokens - c.facts.num_subjects - c.facts.num_relations)
    width = max(block.width for block in c.transformer.shape.blocks)
    config = OPTConfig(
        vocab_size=len(tokens),
        hidden_size=dimension,
        word_embed_proj_dim=dimension,
        ffn_dim=width,
        num_hidden_layers=len(c.transformer.blocks),
        num_attention_heads=dimension // head,
        max_position_embeddings=len(even.position),
        do_layer_norm_before=True,
        activation_function="relu",
        dropout=0.0,
        attention_dropout=0.0,
        layerdrop=0.0,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=len(tokens) - 1,
    )
    model = OPTForCausalLM(config).eval()
    _write(model, c, even, heads, head, tokens)
    steps = c.decoding.steps
    model.generation_config = GenerationConfig(
        max_new_tokens=steps, do_sample=False, pad_token_id=config.pad_token_id, bos_token_id=None, eos_token_id=None
    )
    truth = ground_truth(c, even, [(whole, [(s, t) for s, t, _ in part]) for whole, part in heads], dimension)
    margin = _ask(model, c, tokens)
    return Export(model, tokenizer(tokens), {**truth, "margin": margin}, margin)


def _with_residual(c: Construction) -> Construction:
    options = {name: value for name, value in c.options.items() if name not in ("residual", "hops")}
    hops = () if c.kind == "single_hop" else (c.hops,)
    build: Any = getattr(constructions, c.kind)
    again: Construction = build(c.facts, *hops, **options, residual=True)
    return again


def _head_dimension(even: Equalized) -> tuple[int, list[tuple[int, tuple[tuple[int, int, float], ...]]]]:
    """The dimension of OPT's equal heads, and each one's share of a construction's head: few heads, hidden size near the least."""
    half = even.embedding.shape[1]
    least = max([1, *(move.query.shape[1] for move in even.moves if move.query is not None)])
    most = max(least, *(len(move.coordinates) for move in even.moves))

    def cost(e: int) -> tuple[int, int]:
        """Heads that are needed, and the hidden size."""
        pieces = sum(-(-len(move.coordinates) // e) for move in even.moves)
        return pieces, e * max(pieces, -(-2 * half // e))

    costs = {e: cost(e) for e in range(least, most + 1)}
    smallest = min(hidden for _, hidden in costs.values())
    best = min((e for e in costs if costs[e][1] <= 1.25 * smallest), key=costs.__getitem__)
    heads = [
        (i, move.coordinates[start : start + best])
        for i, move in enumerate(even.moves)
        for start in range(0, len(move.coordinates), best)
    ]
    return best, heads


def _write(
    model: Any,
    c: Construction,
    even: Equalized,
    heads: list[tuple[int, tuple[tuple[int, int, float], ...]]],
    e: int,
    tokens: list[str],
) -> None:
    decoder, half, d = model.model.decoder, even.embedding.shape[1], c.transformer.shape.d
    for weight in model.parameters():
        weight.zero_()

    def mirrored(into: Tensor, values: Tensor) -> None:
        into[..., :half] = values.to(into)
        into[..., half : 2 * half] = -values.to(into)

    # Attributes that are no subjects, `<unknown>` and `<pad>` are tokens without facts.
    rows = torch.cat([even.embedding[:-1], even.embedding[-1:].expand(len(tokens) - len(even.embedding) + 1, -1)])
    mirrored(decoder.embed_tokens.weight, rows)
    mirrored(decoder.embed_positions.weight[decoder.embed_positions.offset :], even.position)

    def norm(layer: Any, square: float) -> None:
        # The variance of [v, -v, 0]: its mean is 0.
        layer.weight.fill_((2 * square / layer.weight.numel() + EPSILON) ** 0.5)

    attention = decoder.layers[0].self_attn
    for i, (whole, part) in enumerate(heads):
        move, run = even.moves[whole], slice(i * e, (i + 1) * e)
        if move.query is not None and move.key is not None:
            q = move.query.shape[1]
            attention.q_proj.weight[run][:q, :d] = (move.query.T * e**0.5).to(attention.q_proj.weight)
            attention.k_proj.weight[run][:q, :d] = move.key.T.to(attention.k_proj.weight)
        for j, (source, target, gain) in enumerate(part):
            attention.v_proj.weight[i * e + j, source] = gain
            attention.out_proj.weight[target, i * e + j] = 1
            attention.out_proj.weight[half + target, i * e + j] = -1
    for layer, block, before, within in zip(decoder.layers, c.transformer.blocks, even.before, even.within):
        norm(layer.self_attn_layer_norm, before)
        norm(layer.final_layer_norm, within)
        mlp, width = block.mlp, block.mlp.weight_in.shape[1]
        layer.fc1.weight[:width, :d] = mlp.weight_in.T.to(layer.fc1.weight)
        layer.fc1.bias[:width] = mlp.bias_in.to(layer.fc1.bias)
        for start, sign in ((0, 1), (half, -1)):
            layer.fc2.weight[start : start + d, :width] = sign * mlp.weight_out.T.to(layer.fc2.weight)
            layer.fc2.bias[start : start + d] = sign * mlp.bias_out.to(layer.fc2.bias)
    norm(decoder.final_layer_norm, even.final)

    head = model.lm_head.weight
    columns, biases = c.transformer.unembedding.double(), c.transformer.unembedding_bias.double()
    # Below whatever a logit can be: no coordinate of a state exceeds the code's amplitude.
    lowest = -8 * float(columns.abs().sum(0).max() * c.code.amplitude + biases.abs().max() + 1)
    head[:, even.one] = lowest
    # A right logit is m and silence m / 2: short codes are scaled up, for a lead of 2.
    scale = max(1.0, 4 / c.code.length)
    places = torch.tensor(attribute_tokens(c.facts, tokens))
    head[places, :d] = scale * columns.T.to(head)
    head[places, even.one] = scale * biases.to(head)
    head[tokens.index(UNKNOWN), even.one] = max(scale * c.decoding.silence, lowest)


def _ask(model: Any, c: Construction, tokens: list[str]) -> float:
    """Ask the exported model, all queries or a sample; the smallest lead."""
    facts, decoding = c.facts, c.decoding
    places = torch.tensor([*attribute_tokens(facts, tokens), tokens.index(UNKNOWN)])
    margin = float("inf")
    for subjects, words in zip(*(part.split(512) for part in queries(c, ASKED))):
        chain = facts.follow(subjects, words)
        prompt = decoding.tokens(subjects, words)
        for hop in decoding.emitted_hops(c.hops):
            logits = model(prompt).logits[:, -1]
            wanted = places[chain[:, hop]]  # -1, a missing fact, is the last: unknown
            lead = logits.gather(1, wanted[:, None])[:, 0]
            others = logits.scatter(1, wanted[:, None], float("-inf")).amax(1)
            margin = min(margin, float((lead - others).min()))
            prompt = torch.cat([prompt, wanted[:, None]], 1)
    if margin < 1:
        raise InvalidArgument(
            f"the exported model leads by {margin:g} where it should by 1 at least: the weights are not as built, or too large for "
            "float32"
        )
    return margin
