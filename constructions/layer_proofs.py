"""Proofs of the layers: what each of the MLPs of :mod:`constructions.gate` does, from its actual weights.

Every function takes a :class:`~constructions.certificates.Stage` (a layer's pre-activations as a function of the query), states the
inequalities that make the layer right, and returns the :class:`State` after it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from constructions.certificates import Proof, Stage, exact, product
from geotheory.codes import Code
from geotheory.transformer import MLP

__all__ = ["State", "finish", "looked_up", "next_stage", "placed", "selected"]


@dataclass
class State:
    """The hidden state after a layer, on the coordinates that are read later, as a function of the query.

    Attributes
    ----------
    images
        `[words, m, need]`: the answer so far enters the state as `code @ images[word]`, for each word that the layer tells apart
        (or one for all).
    slots
        `[R, need]` tables of the relations that are handed on.
    const, error
        `[need]`: what else is there, and a bound on the error, in units of `2 delta`.
    """

    images: Tensor
    slots: list[Tensor]
    const: Tensor
    error: Tensor


def next_stage(proof: Proof, state: State, layer: int) -> Stage:
    """The pre-activations of block `layer`, an MLP alone, from the state before it (one image for all words)."""
    weight = exact(proof.construction.transformer.blocks[layer].mlp.weight_in)
    bias = exact(proof.construction.transformer.blocks[layer].mlp.bias_in)
    read = proof.needed(layer - 1)
    target = weight[read]
    if proof.construction.transformer.shape.residual:
        carried = (read[:, None] == proof.needed(layer)[None]).to(target)
        target = torch.cat([target, carried], 1)
        bias = torch.nn.functional.pad(bias, (0, carried.shape[1]))
    return Stage(
        entity=product(state.images[0], target),
        slots=[product(slot, target) for slot in state.slots],
        const=product(state.const[None], target)[0] + bias,
        error=product(state.error[None], target.abs())[0],
    )


def opened(proof: Proof, stage: Stage, words: Tensor, slots: list[int], reach: int, level: int) -> None:
    """The gate inequality, position by position: neuron `n` is open on its own word `words[n]` and shut on every other.

    On its own word relations and constant add up to `level`; on any other the entity part, at most `reach`, does not open it.
    `slots` are those that `words` speaks of; no other may matter.
    """
    share = stage.entity.abs().sum(0).amax() * max(1, proof.construction.code.amplitude)
    parts = [slot.abs().amax() for slot in stage.slots]
    proof.exact_in_dtype("pre-activations", float(share + sum(parts) + stage.const.abs().amax()))
    total, gap = stage.const.clone(), inf
    for i, slot in enumerate(stage.slots):
        if i in slots:
            letters = words[:, slots.index(i)]
            own = slot.gather(0, letters[None])[0]
            total += own
            if len(slot) > 1:
                gap = min(gap, float((own - slot.scatter(0, letters[None], -inf).amax(0)).amin()))
        else:
            proof.require("no other relation matters", (slot == slot[0]).all(), f"slot {i + 1}")
            total += slot[0]
    proof.require("a block is open on its own word", (total == level).all(), f"level {level} at {len(total)} neurons")
    slack = gap - level - reach
    figure = f"pre-activations at most {-slack:g}" if slack < inf else "there is no other"
    proof.require("every other block is shut", slack >= 0, figure)
    proof.shut.append((slack, float(stage.error.amax())))


def _handed_on(proof: Proof, mlp: MLP, stage: Stage, neurons: slice, need: Tensor) -> State:
    """Slots that go past the layer: through neurons of their own and through the residual stream."""
    width = mlp.weight_in.shape[1]
    part, stream = stage.columns(neurons), stage.columns(slice(width, None))
    out = exact(mlp.weight_out[neurons][:, need])
    tables = [torch.zeros(len(slot), len(need), dtype=torch.float64) for slot in stage.slots]
    const, error = exact(mlp.bias_out[need]), product(part.error[None], out.abs())[0]
    if len(out):
        varies = torch.stack([(slot != slot[0]).any(0) for slot in part.slots])
        alone = not bool(part.entity.any()) and bool((varies.sum(0) <= 1).all())
        proof.require("relation codes are handed on one by one", alone, f"{len(out)} neurons")
        base = part.const + torch.stack([slot[0] for slot in part.slots]).sum(0)
        for table, slot, mine in zip(tables, part.slots, varies):
            table += product(torch.relu(base - slot[0] + slot) * mine, out)
        const = const + product((torch.relu(base) * ~varies.any(0))[None], out)[0]
    if stream.const.numel():
        for table, slot in zip(tables, stream.slots):
            table += slot
        const, error = const + stream.const, error + stream.error
    return State(torch.empty(0), tables, const, error)


def selected(proof: Proof, layer: int, stage: Stage, words: Tensor, slots: list[int], block: Code) -> State:
    """The layer returns the block of the queried word, for every content of the blocks (:func:`~constructions.gate.select`)."""
    mlp, need = proof.construction.transformer.blocks[layer].mlp, proof.needed(layer)
    m, s = block.length, block.amplitude
    neurons = slice(0, len(words) * m)
    part, stream = stage.columns(neurons), stage.columns(slice(mlp.weight_in.shape[1], None))
    identity = torch.eye(len(words) * m, dtype=torch.float64)
    proof.require(
        "each neuron reads its own coordinate", torch.equal(part.entity, identity), f"{len(identity)} neurons"
    )
    opened(proof, part, words.repeat_interleave(m, 0), slots, reach=s, level=s)
    out = exact(mlp.weight_out[neurons][:, need]).unflatten(0, (len(words), m))
    proof.require("all blocks are returned alike", (out == out[0]).all(), f"{len(words)} blocks of {m} coordinates")
    proof.require("blocks end here", not stream.entity.any(), "nothing of them goes past the layer")
    after = _handed_on(proof, mlp, stage, slice(neurons.stop, mlp.weight_in.shape[1]), need)
    return State(
        images=out[:1],
        slots=after.slots,
        # An open neuron says x + s.
        const=after.const + s * out[0].sum(0),
        error=after.error + (part.error.unflatten(0, (len(words), m, 1)) * out.abs()).sum(1).amax(0),
    )


def looked_up(proof: Proof, layer: int, stage: Stage, slot: int, entity: slice) -> State:
    """The layer answers with the attribute of the fact that it is asked for (:func:`~constructions.gate.look_up`)."""
    facts, transformer = proof.construction.facts, proof.construction.transformer
    N, R = facts.num_subjects, facts.num_relations
    mlp, need = transformer.blocks[layer].mlp, proof.needed(layer)
    keys, values = Code(N), Code(facts.num_attributes)
    n = keys.length
    neurons = slice(0, N * R)
    part, stream = stage.columns(neurons), stage.columns(slice(mlp.weight_in.shape[1], None))
    # An entity part is a codeword of the subjects, or zero after a missing fact.
    key = part.entity[:n]
    subject = keys.read(key.T)
    relation = part.slots[slot].argmax(0)
    once = (subject >= 0).all() and len((relation * N + subject).unique()) == N * R
    proof.require("one neuron a fact", once, f"{N * R} neurons")
    # <u_x, mu> is n if mu = u_x, at most n - 2 for any other codeword, and 0 after a missing fact.
    opened(proof, part, relation[:, None], [slot], reach=n, level=1 - n)
    proof.shut.append((1, float(part.error.amax())))
    out = exact(mlp.weight_out[neurons][:, need])
    image = (torch.arange(entity.start, entity.start + values.length)[:, None] == need[None]).to(torch.float64)
    wanted = product(values.words(facts.table[relation, subject], dtype=torch.float64), image)
    if stream.const.numel():
        out = out + product(key.T, stream.entity[:n])
    proof.require(
        "its output row is the attribute", torch.equal(out, wanted), f"{int((out != wanted).any(1).sum())} wrong rows"
    )
    after = _handed_on(proof, mlp, stage, slice(neurons.stop, mlp.weight_in.shape[1]), need)
    row = exact(mlp.weight_out[neurons][:, need]).abs().amax(0)
    # One neuron is open; with one-digit codes and no entity, the (at most two) neurons of the relation are on the brink.
    return State(
        image[None], after.slots, after.const, after.error + min(N, 2 if n == 1 else 1) * float(part.error.amax()) * row
    )


def placed(proof: Proof, layer: int, stage: Stage, before: Tensor, after: Tensor, slots: list[int], m: int) -> State:
    """The layer puts the entity of block `before` into the place of the word `after` (:func:`~constructions.gate.place`).

    The queried words are all of `before` followed by all of `after`; the image depends on `after` alone.
    """
    mlp, need = proof.construction.transformer.blocks[layer].mlp, proof.needed(layer)
    blocks, targets = len(before), len(after)
    words = torch.cat([before.repeat_interleave(targets, 0), after.repeat(blocks, 1)], 1)
    part, stream = stage.columns(slice(0, 2 * m * len(words))), stage.columns(slice(mlp.weight_in.shape[1], None))
    identity = torch.eye(m * blocks, dtype=torch.float64).unflatten(1, (blocks, 1, m)).expand(-1, -1, targets, -1)
    signed = torch.stack([identity, -identity], 3).flatten(1)
    proof.require(
        "neurons read coordinates in pairs", torch.equal(part.entity, signed), f"{signed.shape[1] // 2} pairs"
    )
    opened(proof, part, words.repeat_interleave(2 * m, 0), slots, reach=1, level=0)
    out = exact(mlp.weight_out[: 2 * m * len(words)][:, need]).unflatten(0, (blocks, targets, 2, m))
    proof.require(
        "pairs add up to the coordinate, wherever it came from",
        (out[:, :, 0] == -out[:, :, 1]).all() and (out == out[0]).all(),
        f"{targets} places",
    )
    proof.require("the entity ends here", not stream.entity.any(), "nothing of it goes past the layer")
    state = _handed_on(proof, mlp, stage, slice(2 * m * len(words), mlp.weight_in.shape[1]), need)
    # Of a pair one neuron is open; where the coordinate is near zero the two errors together are no larger.
    error = (part.error.unflatten(0, (blocks, targets, 2, m)).amax(2)[..., None] * out[:, :, 0].abs()).sum(2)
    return State(out[0, :, 0], state.slots, state.const, state.error + error.amax((0, 1)))


def finish(proof: Proof, layer: int, state: State, codes: Iterable[Tensor], code: Code) -> None:
    """Logits are products of codes, with margin 2: the last statements of every proof.

    `codes` gives, for each image, the `[attributes, m]` codes whose products with the answer's code the logits must be.
    """
    transformer, need = proof.construction.transformer, proof.needed(layer)
    for slot in state.slots:
        proof.require("the answer alone is left", (slot == slot[0]).all(), "no relation code reaches the unembedding")
        state.const = state.const + slot[0]
    images = state.images
    as_it_is = ((images == 0) | (images == 1)).all() and (images.sum(2) == 1).all() and (images.sum(1) <= 1).all()
    proof.require(
        "the open block is returned as it is", as_it_is and not state.const.any(), f"{images.shape[1]} coordinates"
    )
    unembedding = exact(transformer.unembedding[need])
    largest = code.amplitude * images.sum(1).amax(0) @ unembedding.abs() + exact(transformer.unembedding_bias).abs()
    proof.exact_in_dtype("logits", float(largest.amax()))
    wrong = int((exact(transformer.unembedding_bias) != code.bias(dtype=torch.float64)).sum())
    for image, wanted in zip(images, codes):
        wrong += int((image @ unembedding != wanted.T).any(0).sum())
        # Different attributes must have different codewords, and nothing else.
        items = code.read(wanted)
        wrong += len(items) - len(items[items >= 0].unique())
    proof.require(
        "the unembedding is the code", wrong == 0, f"{wrong} wrong columns; minimum distance {code.minimum_distance}"
    )
    unit = 2 * proof.delta * (1 + 2.0**-40)  # covers the rounding of the few products below
    proof.epsilon = max(proof.epsilon, unit * float(state.error.amax()))
    if proof.delta:
        for slack, error in proof.shut:
            proof.require("leakage opens nothing", unit * error <= slack, f"{unit * error:.3g} <= {slack:g}")
        proof.require("leakage leaves a margin", proof.epsilon < 0.5, f"epsilon = {proof.epsilon:.3g} < 1/2")
