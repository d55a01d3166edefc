"""T3: chain of thought with embeddings of dimension `R m + L + 3 ceil(log2 2k)` (THEORY 4).

[paper: d = O~(R + k), width O~(R); sharper: the positions cost `log k` instead of `k`. hops_per_step: new]

The model emits `y_1 = g_{r_1}(x)`, `y_2 = g_{r_2}(y_1)`, ...; each emitted entity is embedded again, with its own row of blocks.
Step `t = 0, 1, ...` answers at position `k + t`. There a subject head reads position 0 at `t = 0`, and the newest entity's own
position later; a relation head reads position `t + 1`. Each position carries three sign codes: its key, its subject query and its
relation query. With `hops_per_step = j` there are blocks for words of length `j` and `j` relation heads.
"""

import torch

from constructions.blocks import subject_blocks
from constructions.certificates import Certificate, Proof
from constructions.construction import Construction, plan
from constructions.direct import attention_is_hard
from constructions.fetch import fetch, sharpness
from constructions.gate import select
from constructions.layer_proofs import finish, selected
from geotheory.codes import Code
from geotheory.facts import FactTable
from geotheory.transformer import Attention, BlockShape, HeadShape
from geotheory.words import all_words

__all__ = ["chain_of_thought", "filled_up", "prove", "reading", "step_words"]


@torch.no_grad()
def chain_of_thought(
    facts: FactTable,
    hops: int,
    hops_per_step: int = 1,
    *,
    bits: int = 1,
    residual: bool = False,
    attention: str = "softmax",
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Construction:
    """One-layer transformer that answers up to `hops` hops by emitting every `hops_per_step`-th entity (THEORY T3).

    At one hop a step `d = R m_b + L + 3 l` with `l = ceil(log2 2k)`, and width `R m_b`, whatever `k`. At `j` hops a step `d` is
    about `R^j m_b`, in `ceil(k / j)` steps: from chain of thought (`j = 1`) to direct (`j = k`). Where `j` does not divide `k`,
    blank tokens after `r_k` fill the last step; the blank relation maps every entity to itself, and only the
    `R^j + R^(k mod j)` words that occur get a block. The chain is the model's own argmax. A missing link is met with silence at
    its own step. The decoder does not depend on the facts.

    Parameters
    ----------
    facts
        The table; for `hops > 1` attributes must be subjects.
    hops
        `k`, the most hops of a query. Shorter queries of `h` hops are answered too, if `h mod j` is 0 or `k mod j`.
    hops_per_step
        `j`, from 1 to `hops`.
    bits, residual, attention, dtype, device
        As for :func:`~constructions.direct.direct`.

    Raises
    ------
    NotComposable, InvalidArgument, TooLarge
        The facts do not compose; a number is out of range; the weights would not fit (before anything is allocated).

    Source: Ravfogel et al. 2026 for `d = O~(R + k)` and width `O~(R)`; `log k` is sharper; `hops_per_step > 1` is **new** here.

    Examples
    --------
    >>> c = chain_of_thought(FactTable.random_bijections(entities=100, relations=3), hops=8)
    >>> c.size.d, c.size.width, c.size.steps
    (35, 21, 8)
    >>> c.answer([5], [[0, 1, 2]], steps=True).shape
    torch.Size([1, 3])
    """
    hard = attention_is_hard(attention)
    j = hops_per_step
    p = plan(
        "chain_of_thought",
        facts,
        hops=hops,
        bits=bits,
        residual=residual,
        dtype=dtype,
        device=device,
        hops_per_step=j,
        attention=attention,
    )
    N, R, steps = facts.num_subjects, facts.num_relations, p.decoding.steps
    length = steps * (j + 1)
    positions = Code(length)
    blocks, slots = p.space["subject blocks"], p.space.split("relation codes", j)
    carried = p.space["own relation code"] if residual else slots[-1]
    output = p.space["output"] if residual else slice(0, p.attributes.length)
    key, subject_query, *relation_queries = p.space.split("positions", 2 + j)

    relation, whole = HeadShape(positions.length, p.relations.length), HeadShape(positions.length, blocks.stop)
    transformer = p.transformer(BlockShape(p.size.width, (*[relation] * j, whole), hard), length=length, blanks=1)
    words = step_words(R, hops, j)
    p.write_subjects(transformer, *words)
    transformer.embedding[N : N + p.relations.count, carried] = p.words(p.relations, torch.arange(p.relations.count))

    assert transformer.position is not None
    transformer.position[:, key] = p.words(positions, torch.arange(length))
    for step in range(steps):
        reader, subject, fetched = reading(step, steps, j, residual)
        for query, position in zip((subject_query, *relation_queries), (subject, *fetched)):
            transformer.position[reader, query] = p.words(positions, torch.tensor(position))
    block = transformer.blocks[0]
    assert isinstance(block.attention, Attention)
    *relation_heads, subject_head = block.attention.heads
    s, L = p.attributes.amplitude, p.relations.length
    beta = sharpness(length, gain=s + (s + 1) * j * L)
    for head, query, slot in zip(relation_heads, relation_queries, slots):
        fetch(head, query, key, beta, carried, slot)
    fetch(subject_head, subject_query, key, beta, blocks, blocks)

    select(block.mlp, slice(0, p.size.width), filled_up(words, R), p.relations, slots, p.attributes, blocks, output)
    p.write_unembedding(transformer, output)
    return p.construction(transformer)


def step_words(relations: int, hops: int, hops_per_step: int) -> list[torch.Tensor]:
    """The words that a step can meet: all of `[R]^j`, and those of a last step of fewer hops, if there is one."""
    lengths = [hops_per_step, hops % hops_per_step]
    return [all_words(relations, length) for length in lengths if length]


def filled_up(words: list[torch.Tensor], relations: int) -> torch.Tensor:
    """The same words in one tensor, the shorter ones filled up with the blank relation `R`."""
    longest = words[0].shape[1]
    return torch.cat([torch.nn.functional.pad(w, (0, longest - w.shape[1]), value=relations) for w in words])


def reading(step: int, steps: int, hops_per_step: int, residual: bool) -> tuple[int, int, list[int]]:
    """Where step `step` answers, and the positions that its subject head and its relation heads read there."""
    prompt = steps * hops_per_step
    reader = prompt + step
    # The newest entity stands at the reading position itself from the second step on. With a residual stream its blocks are there
    # already, and the subject head reads a relation token, whose subject blocks are zero.
    subject = 0 if step == 0 else 1 if residual else reader
    return reader, subject, [step * hops_per_step + i for i in range(1, hops_per_step + 1)]


def prove(c: Construction) -> Certificate:
    """From the weights: at every step the model emits the right entity, with margin `2 (1 - epsilon)`, or is silent."""
    facts, code, k, j, steps = c.facts, c.code, c.hops, c.decoding.hops_per_step, c.decoding.steps
    words, blocks = step_words(facts.num_relations, k, j), c.space["subject blocks"]
    queried = filled_up(words, facts.num_relations)
    with Proof.of(c) as proof:
        proof.integers()
        proof.rows(blocks, subject_blocks(facts, code, *words))
        for step in range(steps):
            reader, subject, fetched = reading(step, steps, j, c.options["residual"])
            entities = [0, *range(steps * j + 1, reader + 1)]
            stage = proof.attend(reader, [*fetched, subject], blocks, code.amplitude, entities)
            state = selected(proof, 0, stage, queried, [position - 1 for position in fetched], code)
            finish(proof, 0, state, [code.words(dtype=torch.float64)], code)
    return proof.certificate()
