"""T2: `k` hops at once with embeddings of dimension `R^k m + k L` and positions (THEORY 4). [paper: d = O~(R^k); sharper]

Row of subject `x`: one block for every word `rho` of `[R]^k`, the code of `T(x, rho)`. One softmax head a relation fetches that
relation's code into a slot of its own, one more fetches the subject's blocks; the MLP returns the block of the queried word. The
word count `R^k` in the dimension is necessary with a fixed unembedding (bound B1).
"""

import torch

from constructions.blocks import subject_blocks
from constructions.certificates import Certificate, Proof
from constructions.construction import Construction, Plan, plan
from constructions.fetch import fetch, read_position, sharpness
from constructions.gate import select
from constructions.layer_proofs import finish, selected
from geotheory.codes import Code
from geotheory.errors import InvalidArgument
from geotheory.facts import FactTable
from geotheory.transformer import Attention, BlockShape, HeadShape, Transformer
from geotheory.words import all_words

__all__ = ["attention_is_hard", "direct", "fetch_query", "prove", "query_targets"]


@torch.no_grad()
def direct(
    facts: FactTable,
    hops: int,
    *,
    bits: int = 1,
    residual: bool = False,
    attention: str = "softmax",
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Construction:
    """One-layer transformer that answers `T(x, r_1 ... r_k)` without emitting anything on the way (THEORY T2).

    `d = R^k m_b + k L + ceil(log2(k + 1))`: subject blocks, relation codes, positions (with a residual stream `+ m_b` for the
    output); width `R^k m_b`; margin `2 (1 - epsilon)` with the softmax's leakage `epsilon` on the certificate, or 2 with hard
    attention. For any composable function table; a chain with a missing link is a zero block, on which the model abstains. The
    decoder does not depend on the facts.

    Parameters
    ----------
    facts
        The table; for `hops > 1` attributes must be subjects.
    hops
        `k`, at least 1.
    bits, residual
        As for :func:`~constructions.single_hop.single_hop`.
    attention
        `"softmax"`, or `"hard"` for saturated attention, whose arithmetic is exact in every dtype.
    dtype, device
        Of the weights, which are integers.

    Raises
    ------
    NotComposable, InvalidArgument, TooLarge
        The facts do not compose; a number is out of range; the weights would not fit (before anything is allocated).

    Source: Ravfogel et al. 2026 for `d = O~(R^k)`; the constants are sharper than the paper's summary.

    Examples
    --------
    >>> direct(FactTable.random_bijections(entities=100, relations=3), hops=3).size.parts
    {'subject blocks': 189, 'relation codes': 6, 'positions': 2}
    """
    hard = attention_is_hard(attention)
    p = plan("direct", facts, hops=hops, bits=bits, residual=residual, dtype=dtype, device=device, attention=attention)
    blocks = p.space["subject blocks"]
    output = p.space["output"] if residual else slice(0, p.attributes.length)
    s, L = p.attributes.amplitude, p.relations.length
    words = all_words(facts.num_relations, hops)

    transformer, slots = fetch_query(p, [p.size.width], blocks, gain=s + (s + 1) * hops * L, hard=hard)
    p.write_subjects(transformer, words)
    mlp = transformer.blocks[0].mlp
    select(mlp, slice(0, p.size.width), words, p.relations, slots, p.attributes, blocks, output)
    p.write_unembedding(transformer, output)
    return p.construction(transformer)


def attention_is_hard(attention: str) -> bool:
    """Whether `attention` is `"hard"`; anything but that and `"softmax"` is refused."""
    if attention not in ("softmax", "hard"):
        raise InvalidArgument(f"attention must be 'softmax' or 'hard', not {attention!r}")
    return attention == "hard"


def fetch_query(p: Plan, widths: list[int], subject: slice, gain: int, hard: bool) -> tuple[Transformer, list[slice]]:
    """A transformer whose first block gathers, at position `k`, the `subject` part of `x` and every relation's code.

    Shared by T2, T4 and T5. A relation token carries its code in the last slot, where the last token has it already if there is a
    residual stream. Returns the transformer, with the other blocks MLPs alone, and the slot of each relation.
    """
    facts, k = p.facts, p.decoding.hops
    positions = Code(k + 1)
    where = p.space["positions"]
    slots = p.space.split("relation codes", k)
    own = slots[-1]
    relation, whole = (
        HeadShape(positions.length, p.relations.length),
        HeadShape(positions.length, subject.stop - subject.start),
    )
    fetched = range(1, k if p.options["residual"] else k + 1)
    first = BlockShape(widths[0], (*[relation] * len(fetched), whole), hard)
    transformer = p.transformer(first, *(BlockShape(width) for width in widths[1:]), length=k + 1)
    assert transformer.position is not None
    transformer.position[:, where] = p.words(positions, torch.arange(k + 1))
    transformer.embedding[facts.num_subjects :, own] = p.words(p.relations, torch.arange(facts.num_relations))
    block = transformer.blocks[0].attention
    assert isinstance(block, Attention)
    *relation_heads, subject_head = block.heads
    beta = sharpness(k + 1, gain)
    for i, head in zip(fetched, relation_heads):
        fetch(head, where, where, beta, own, slots[i - 1], read_position(i, k, positions))
    fetch(subject_head, where, where, beta, subject, subject, read_position(0, k, positions))
    return transformer, slots


def prove(c: Construction) -> Certificate:
    """From the weights: every query of `k` hops is answered with margin `2 (1 - epsilon)`, every broken chain with silence."""
    facts, code, k = c.facts, c.code, c.hops
    words, blocks = all_words(facts.num_relations, k), c.space["subject blocks"]
    with Proof.of(c) as proof:
        proof.integers()
        proof.rows(blocks, subject_blocks(facts, code, words))
        stage = proof.attend(k, query_targets(c), blocks, code.amplitude, entities=[0])
        state = selected(proof, 0, stage, words, list(range(k)), code)
        finish(proof, 0, state, [code.words(dtype=torch.float64)], code)
    return proof.certificate()


def query_targets(c: Construction) -> list[int]:
    """The position that each head of :func:`fetch_query` reads."""
    return [*range(1, c.hops if c.options["residual"] else c.hops + 1), 0]
