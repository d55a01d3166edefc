"""The same transformer with states of one known length, so that layer norm is the identity on them.

A state `v` is stored as `[v, -v]`, whose mean is 0. Its length is made constant by coordinates that nothing else reads:

- *complements*: a head copies a part `S` of the token that it reads. Each token carries `sqrt(B - |row[S]|^2)` with
  `B = max over tokens |row[S]|^2`, and the head copies that too: what it adds has squared length `B`, whichever token it reads;
- *pads*: one coordinate brings the rows of W_E to one length, another the rows of W_pos, whose supports are disjoint;
- a coordinate that is 1 at every position, for the unembedding's biases.

So the state has squared length `C_1 = T + P` before attention at every position, and `C_2 = C_1 + sum of B` after it wherever an
answer is read. The MLP of T1 to T3 and T5 writes a sign code of `m` coordinates where zeros were, that of T4 exchanges one sign
code for another: after it the squared length is `C_2 + m`, or `C_2`, for every query that has an answer. The variance of
`[v, -v]` and zeros is `2 C / D`, `D` the hidden size, and layer norm with the gain `sqrt(2 C / D + eps)` and no bias is then the
identity, exactly in real arithmetic, `eps` included. (The last state of a query without
an answer is shorter; the final norm then stretches all logits alike, and with them the threshold of silence.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from constructions.construction import Construction
from geotheory.errors import InvalidArgument
from geotheory.transformer import Transformer
from geotheory.words import numbered_words

__all__ = ["Equalized", "Move", "equalize", "queries"]

# Queries on which the lengths are measured.
MEASURED = 4096


@dataclass(frozen=True)
class Move:
    """What one head copies: query and key maps `[d, q]` (None: uniform), and `(source, target, gain)` for each coordinate."""

    query: Tensor | None
    key: Tensor | None
    coordinates: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class Equalized:
    """Rows with the additional coordinates, and the squared length of the state at each layer norm.

    Attributes
    ----------
    embedding, position : `[tokens + 1, d']`, `[length, d']`
        The last row of `embedding` is a token without facts.
    moves
        Of every head of the first block.
    before, within
        Squared lengths before attention and before the MLP of each block.
    final
        The largest squared length before the unembedding.
    one
        The coordinate that is always 1.
    """

    embedding: Tensor
    position: Tensor
    moves: tuple[Move, ...]
    before: tuple[float, ...]
    within: tuple[float, ...]
    final: float
    one: int


@torch.no_grad()
def equalize(construction: Construction) -> Equalized:
    """Add the coordinates, and measure the lengths on queries to be sure.

    Raises
    ------
    InvalidArgument
        The state before some MLP has no constant length: the construction is none of ours, or was changed.
    """
    model = construction.transformer
    N, d, tokens = construction.facts.num_subjects, model.shape.d, model.shape.tokens
    attention = model.blocks[0].attention
    assert attention is not None
    heads = len(attention.heads)
    one, token_pad, position_pad = d + 2 * heads, d + 2 * heads + 1, d + 2 * heads + 2
    length = model.shape.length or construction.hops + 1
    E = torch.zeros(tokens + 1, position_pad + 1, dtype=torch.float64)
    E[:tokens, :d] = model.embedding.double()
    P = torch.zeros(length, position_pad + 1, dtype=torch.float64)
    if model.position is not None:
        P[:, :d] = model.position.double()
    P[:, one] = 1

    moves = []
    for i, head in enumerate(attention.heads):
        passage = (head.value @ head.output).double()
        coordinates = [(int(s), int(t), float(passage[s, t])) for s, t in passage.nonzero().tolist()]
        carried = E[:, [s for s, *_ in coordinates]].square().sum(1)
        complement = (carried.max() - carried).clamp(min=0).sqrt()
        if head.query is None:
            # Uniform attention adds all tokens up: the complement is the subject's alone.
            complement[N:] = 0
        E[:, d + i] = complement
        gain = max((g for *_, g in coordinates), default=1.0)
        maps = [None if w is None else w.double() for w in (head.query, head.key)]
        moves.append(Move(maps[0], maps[1], (*coordinates, (d + i, d + heads + i, gain))))
    for rows, pad in ((E, token_pad), (P, position_pad)):
        squares = rows.square().sum(1)
        rows[:, pad] = (squares.max() - squares).clamp(min=0).sqrt()

    before, within, final = _lengths(construction, E, P, moves)
    return Equalized(E, P, tuple(moves), before, within, final, one)


def queries(construction: Construction, most: int) -> tuple[Int[Tensor, "n"], Int[Tensor, "n hops"]]:
    """Subjects and words of every query, or of `most` drawn at random if there are more."""
    N, R, k = construction.facts.num_subjects, construction.facts.num_relations, construction.hops
    count = N * R**k
    generator = torch.Generator().manual_seed(0)
    index = torch.arange(count) if count <= most else torch.randint(count, (most,), generator=generator)
    return index % N, numbered_words(index // N, R, k)


def _steps(construction: Construction) -> Iterator[tuple[Tensor, Tensor]]:
    """Token sequences, one for each step, and which of them have an answer."""
    decoding = construction.decoding
    subjects, words = queries(construction, MEASURED)
    chain = construction.facts.follow(subjects, words)
    tokens = decoding.tokens(subjects, words)
    for hop in decoding.emitted_hops(construction.hops):
        answered = chain[:, hop] >= 0
        yield tokens, answered
        tokens = torch.cat([tokens, chain[:, hop, None].clamp(min=0)], 1)[answered]
        chain = chain[answered]


def _lengths(
    construction: Construction, E: Tensor, P: Tensor, moves: Sequence[Move]
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    model = construction.transformer
    double = Transformer(model.shape, dtype=torch.float64)
    double.load_state_dict({name: weight.double() for name, weight in model.state_dict().items()})
    d = model.shape.d
    seen: list[tuple[list[Tensor], Tensor]] = []
    for tokens, answered in _steps(construction):
        h = E[tokens] + P[: tokens.shape[1]]
        squares = [h.square().sum(2).flatten()]
        attention = double.blocks[0].attention
        assert attention is not None
        state = h[:, -1].clone()
        for move, pattern in zip(moves, attention.patterns(h[..., :d], last=True)):
            read = (pattern @ h)[:, 0]
            for source, target, gain in move.coordinates:
                state[:, target] += gain * read[:, source]
        for block in double.blocks:
            squares.append(state.square().sum(1)[answered])
            state[:, :d] += block.mlp(state[:, :d])
        seen.append((squares, state.square().sum(1)[answered]))
    points = len(double.blocks) + 1
    constants = []
    for i in range(points):
        each = torch.cat([squares[i] for squares, _ in seen if len(squares[i])])
        if each.max() - each.min() > 1e-4 * each.max():
            raise InvalidArgument(
                f"the state has no constant length before layer norm {i}: {float(each.min()):g} to {float(each.max()):g}; "
                "only constructions as they are built can be exported"
            )
        constants.append(float(each.max()))
    final = max(float(last.max()) for _, last in seen if len(last))
    within = tuple(constants[1:])
    return (constants[0], *within[1:]), within, final
