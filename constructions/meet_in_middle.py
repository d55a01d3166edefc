"""T5: meet in the middle, `k` hops with embeddings of dimension about `R^(k/2) m` (THEORY 4). [new: not claimed in the paper]

If the unembedding may depend on the facts, a subject need not hold all `R^k` answers. Split `k = f + w`. The row of `x` holds the
codes of `T(x, phi)` for the words `phi` of its first `f` relations; the column of `a` holds, for every word `beta` of the last `w`,
the code of the entity `c` from which `beta` leads to `a`. The MLP finds the middle entity in block `phi` of `x` and places its code
in output block `beta`; the inner product with the column of `a` is largest exactly if `a` is the answer.
"""

import torch

from constructions.blocks import subject_blocks
from constructions.certificates import Certificate, Proof
from constructions.construction import Construction, plan
from constructions.direct import attention_is_hard, fetch_query, query_targets
from constructions.gate import hand_on, place, select
from constructions.layer_proofs import finish, next_stage, placed, selected
from geotheory.facts import FactTable
from geotheory.transformer import Transformer
from geotheory.words import all_words

__all__ = ["inverse_compositions", "meet_in_middle", "prove"]


@torch.no_grad()
def meet_in_middle(
    facts: FactTable,
    hops: int,
    forward: int | None = None,
    hidden_layers: int = 2,
    *,
    residual: bool = False,
    attention: str = "softmax",
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Construction:
    """Transformer that answers `k` hops with dimension about `max(R^f, R^w) m`, `f + w = k` (THEORY T5, **new**).

    What it shows: the lower bound `d = Omega~(R^k)` for direct recall (B1; Theorem 4.2 of the paper) needs an unembedding that does
    not depend on the facts. With `f = ceil(k/2)` the dimension is the square root of the direct construction's, and by bound B2 no
    split does better than the exponent `k/2`. The claim is not the paper's.

    `d = max(R^f m + k L + ceil(log2(k + 1)), R^w m)`; with a residual stream the output (and, with two hidden layers, the middle
    entity) has coordinates of its own instead. Margin `2 (1 - epsilon)`. The MLP and the attention do not depend on the facts.

    Parameters
    ----------
    facts
        A table of bijections: the backward words walk the inverse permutations.
    hops
        `k`, at least 1.
    forward
        `f`, from 0 (every fact in the unembedding) to `k` (a fixed unembedding, as T2); default `ceil(k / 2)`.
    hidden_layers
        2: width `max(R^f, 2 R^w) m` and some; 1: width `2 R^k m`.
    residual, attention, dtype, device
        As for :func:`~constructions.direct.direct`.

    Raises
    ------
    NotBijective
        A relation is not a permutation of the entities; names the entities at fault.
    InvalidArgument, TooLarge
        A number is out of range; the weights would not fit (before anything is allocated).

    Examples
    --------
    >>> c = meet_in_middle(FactTable.random_bijections(entities=100, relations=3), hops=3, forward=2)
    >>> c.size.bits_in, c.size.bits_out
    (63, 21)
    """
    hard = attention_is_hard(attention)
    facts.inverses()  # raises NotBijective
    split = {"forward": (hops + 1) // 2 if forward is None else forward, "hidden_layers": hidden_layers}
    p = plan(
        "meet_in_middle",
        facts,
        hops=hops,
        residual=residual,
        dtype=dtype,
        device=device,
        attention=attention,
        **split,
    )
    R, m, f = facts.num_relations, p.attributes.length, split["forward"]
    before, after = all_words(R, f), all_words(R, hops - f)
    blocks = p.space["subject blocks"]
    # Without a residual stream the output overwrites whatever lies there.
    output = p.space["output blocks"] if residual else slice(0, len(after) * m)
    targets = [slice(output.start + i * m, output.start + (i + 1) * m) for i in range(len(after))]
    handed = 0 if residual else (hops - f) * p.relations.length
    widths = [blocks.stop + handed, 2 * len(after) * m] if hidden_layers == 2 else [p.size.width]

    gain = 1 + 2 * hops * p.relations.length
    transformer, slots = fetch_query(p, widths, blocks, gain=gain, hard=hard)
    p.write_subjects(transformer, before)
    first = transformer.blocks[0].mlp
    if hidden_layers == 2:
        middle = p.space["middle entity"] if residual else slice(0, m)
        select(first, slice(0, blocks.stop), before, p.relations, slots[:f], p.attributes, blocks, middle)
        if handed:
            hand_on(first, slice(blocks.stop, blocks.stop + handed), slice(slots[f].start, slots[-1].stop))
        second = transformer.blocks[1].mlp
        place(second, slice(0, widths[1]), after, p.relations, slots[f:], m, [middle] * len(after), targets)
    else:
        sources = p.space.split("subject blocks", len(before))
        pairs = [(source, target) for source in sources for target in targets]
        place(first, slice(0, widths[0]), all_words(R, hops), p.relations, slots, m, *map(list, zip(*pairs)))
    write_columns(transformer, p.words(p.attributes, inverse_compositions(facts, after)), output)
    return p.construction(transformer)


def inverse_compositions(facts: FactTable, words: torch.Tensor) -> torch.Tensor:
    """`[W, N]`: the entity from which `words[w]` leads to entity `a`, for bijective facts."""
    return facts.compose(words).argsort(1)


def write_columns(transformer: Transformer, codes: torch.Tensor, output: slice) -> None:
    """Column of attribute `a`: the codes `[word, a, m]`, one block a word."""
    transformer.unembedding[output] = codes.transpose(1, 2).flatten(0, 1)


def prove(c: Construction) -> Certificate:
    """From the weights: the middle entity's code meets the answer's column, with margin `2 (1 - epsilon)`."""
    facts, code, k, f = c.facts, c.code, c.hops, c.options["forward"]
    R, blocks = facts.num_relations, c.space["subject blocks"]
    before, after = all_words(R, f), all_words(R, k - f)
    with Proof.of(c) as proof:
        proof.integers()
        proof.rows(blocks, subject_blocks(facts, code, before))
        stage = proof.attend(k, query_targets(c), blocks, 1, entities=[0])
        if c.options["hidden_layers"] == 2:
            state = selected(proof, 0, stage, before, list(range(f)), code)
            stage = next_stage(proof, state, 1)
            state = placed(proof, 1, stage, all_words(R, 0), after, list(range(f, k)), code.length)
        else:
            state = placed(proof, 0, stage, before, after, list(range(k)), code.length)
        columns = (code.words(row, dtype=torch.float64) for row in inverse_compositions(facts, after))
        finish(proof, c.options["hidden_layers"] - 1, state, columns, code)
    return proof.certificate()
