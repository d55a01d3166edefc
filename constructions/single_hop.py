"""T1: a single hop with embeddings of dimension `R m + L` (THEORY 4). [paper: d = O(R log N); sharper]

Row of subject `x`: the codes of its `R` attributes, one block a relation; the superposition of its attributes. Uniform attention
over `(x, r)` brings the blocks of `x` and the code of `r` together; the MLP returns the block of relation `r` and the unembedding
names the attribute. Only the subjects' rows depend on the facts.
"""

import torch

from constructions.blocks import subject_blocks
from constructions.certificates import Certificate, Proof
from constructions.construction import Construction, plan
from constructions.fetch import average
from constructions.gate import select
from constructions.layer_proofs import finish, selected
from geotheory.facts import FactTable
from geotheory.transformer import BlockShape, HeadShape
from geotheory.words import all_words

__all__ = ["prove", "single_hop"]


@torch.no_grad()
def single_hop(
    facts: FactTable,
    *,
    bits: int = 1,
    residual: bool = False,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Construction:
    """One-layer transformer that recalls every fact `(x, r) -> g_r(x)` (THEORY T1).

    For any function table, bijective or not: `d = R m_b + L` (with a residual stream `+ m_b` for the output), width `R m_b`,
    margin 2, where `m_b = ceil(log2(A) / b)` and `L = ceil(log2 R)`, both at least 1. A missing fact is a zero block, on which the
    model abstains. The decoder (everything but the subjects' rows) does not depend on the facts.

    Parameters
    ----------
    facts
        The table; attributes need not be subjects.
    bits
        Bits a coordinate of the attributes' code.
    residual
        Whether the block has a residual stream.
    dtype, device
        Of the weights, which are integers. All of float64, float32, bfloat16 and float16 recall exactly for `bits = 1`.

    Raises
    ------
    InvalidArgument, TooLarge
        `bits < 1`; or the weights would not fit into memory, before anything is allocated.

    Source: Ravfogel et al. 2026 for `d = O(R log N)`; the constants are sharper than the paper's summary.

    Examples
    --------
    >>> c = single_hop(FactTable.random_bijections(entities=4096, relations=16))
    >>> c.size.d, c.size.width
    (196, 192)
    """
    p = plan("single_hop", facts, bits=bits, residual=residual, dtype=dtype, device=device)
    blocks, slot, N = p.space["subject blocks"], p.space["relation codes"], facts.num_subjects
    # Without a residual stream the output overwrites the first block.
    output = p.space["output"] if residual else slice(0, p.attributes.length)
    moved = blocks if residual else slice(0, p.size.d)
    transformer = p.transformer(BlockShape(p.size.width, (HeadShape(0, moved.stop),)))
    words = all_words(facts.num_relations, 1)
    p.write_subjects(transformer, words)
    transformer.embedding[N:, slot] = p.words(p.relations, torch.arange(facts.num_relations))
    block = transformer.blocks[0]
    assert block.attention is not None
    average(block.attention.heads[0], moved, moved, tokens=2)
    select(block.mlp, slice(0, p.size.width), words, p.relations, [slot], p.attributes, blocks, output)
    p.write_unembedding(transformer, output)
    return p.construction(transformer)


def prove(c: Construction) -> Certificate:
    """From the weights: every fact is answered with margin 2, every missing fact with silence."""
    facts, code, words = c.facts, c.code, all_words(c.facts.num_relations, 1)
    blocks = c.space["subject blocks"]
    with Proof.of(c) as proof:
        proof.integers()
        proof.rows(blocks, subject_blocks(facts, code, words))
        stage = proof.attend(1, None, blocks, code.amplitude, entities=[0])
        state = selected(proof, 0, stage, words, [0], code)
        finish(proof, 0, state, [code.words(dtype=torch.float64)], code)
    return proof.certificate()
