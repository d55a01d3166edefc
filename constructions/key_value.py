"""T4: the MLP as a key-value memory, one neuron a fact (THEORY 4). [paper: MLP width O(N R)]

A subject carries only its own code. `ReLU(<u_x, h> + <c_r, h'> - (m + L) + 1)` is 1 on the fact `(x, r)` and 0 on every other; its
output row is the attribute's code. `k` hops take `k` such layers. The facts lie in the MLP: nothing geometric is stored.
"""

import torch

from constructions.certificates import Certificate, Proof
from constructions.construction import Construction, plan
from constructions.direct import attention_is_hard, fetch_query, query_targets
from constructions.fetch import average
from constructions.gate import hand_on, look_up
from constructions.layer_proofs import finish, looked_up, next_stage
from geotheory.codes import Code
from geotheory.facts import FactTable
from geotheory.transformer import BlockShape, HeadShape

__all__ = ["error_gain", "key_value", "prove"]


@torch.no_grad()
def key_value(
    facts: FactTable,
    hops: int = 1,
    *,
    residual: bool = False,
    attention: str = "softmax",
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Construction:
    """Transformer of `hops` layers that looks every fact up in its MLPs (THEORY T4).

    `d = m + k L` and positions (none for one hop), width `N R` (without a residual stream also one neuron for each coordinate of
    the relation codes that later layers need), depth `k`, margin `2 (1 - epsilon)`. For any composable function table; a missing
    fact has no neuron that answers, and the model abstains. The decoder is the memory: `P = k N R m` bits.

    With a residual stream the output needs no coordinates of its own: the neuron of `(x, r)` adds the difference of the
    attribute's code and the subject's.

    Parameters
    ----------
    facts
        The table; for `hops > 1` attributes must be subjects.
    hops
        `k`, at least 1.
    residual, attention, dtype, device
        As for :func:`~constructions.direct.direct`.

    Raises
    ------
    NotComposable, InvalidArgument, TooLarge
        The facts do not compose; a number is out of range; the weights would not fit (before anything is allocated).

    Source: Ravfogel et al. 2026 for the width `O(N R)`.

    Examples
    --------
    >>> key_value(FactTable.random_bijections(entities=100, relations=3)).size.width
    300
    """
    hard = attention_is_hard(attention)
    p = plan("key_value", facts, hops=hops, residual=residual, dtype=dtype, device=device, attention=attention)
    N, R = facts.num_subjects, facts.num_relations
    keys, facts_held = Code(N), N * R
    entity = p.space["entity code"]
    widths = [facts_held + (0 if residual else (hops - 1 - i) * p.relations.length) for i in range(hops)]
    if hops == 1:
        slots = [p.space["relation codes"]]
        moved = entity if residual else slice(0, p.size.d)
        transformer = p.transformer(BlockShape(facts_held, (HeadShape(0, moved.stop),), hard))
        transformer.embedding[N:, slots[0]] = p.words(p.relations, torch.arange(R))
        assert transformer.blocks[0].attention is not None
        average(transformer.blocks[0].attention.heads[0], moved, moved, tokens=2)
    else:
        gain = error_gain(keys.length, p.relations.length, hops, residual)
        transformer, slots = fetch_query(p, widths, entity, gain=gain, hard=hard)
    transformer.embedding[:N, : keys.length] = p.words(keys, torch.arange(N))

    def padded(code: Code, items: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(p.words(code, items), (0, entity.stop - code.length))

    values = padded(p.attributes, facts.table.flatten())
    if residual:
        values -= padded(keys, torch.arange(N)).repeat(R, 1)
    subjects = p.words(keys, torch.arange(N)).repeat(R, 1)
    words = torch.arange(R).repeat_interleave(N)[:, None]
    for i, (block, slot) in enumerate(zip(transformer.blocks, slots)):
        look_up(block.mlp, slice(0, facts_held), subjects, words, values, p.relations, slot, entity)
        if not residual and i + 1 < hops:
            hand_on(block.mlp, slice(facts_held, widths[i]), slice(slots[i + 1].start, slots[-1].stop))
    p.write_unembedding(transformer, slice(0, p.attributes.length))
    return p.construction(transformer)


def error_gain(m: int, L: int, hops: int, residual: bool) -> int:
    """How much an error of 1 in every fetched coordinate can grow on its way through the layers.

    An active neuron is off by at most `m e + L` if the entity's coordinates are off by `e`. Its output row has entries of size 1,
    or at most 2 with a residual stream, which adds the old error to it. With codes of one digit the (at most two) neurons of a
    relation stand at 0 when no entity is there, so that both may open by their error.
    """
    error = 1
    for _ in range(hops):
        neuron = (m * error + L) * (2 if m == 1 else 1)
        error = error + 2 * neuron if residual else neuron
    return error


def prove(c: Construction) -> Certificate:
    """From the weights: every layer finds the fact that it is asked for, and the last the answer, or nothing."""
    k, keys = c.hops, Code(c.facts.num_subjects)
    entity = slice(0, keys.length)
    with Proof.of(c) as proof:
        proof.integers()
        proof.rows(entity, [(slice(0, keys.count), keys.words())])
        stage = proof.attend(k, None if k == 1 else query_targets(c), entity, 1, entities=[0])
        state = looked_up(proof, 0, stage, 0, c.space["entity code"])
        for layer in range(1, k):
            stage = next_stage(proof, state, layer)
            state = looked_up(proof, layer, stage, layer, c.space["entity code"])
        finish(proof, k - 1, state, [c.code.words(dtype=torch.float64)], c.code)
    return proof.certificate()
