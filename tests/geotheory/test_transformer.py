"""The transformer against its formulas, written out once more token by token."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from geotheory.errors import InvalidArgument
from geotheory.transformer import BlockShape, HeadShape, Transformer, TransformerShape

heads = st.builds(HeadShape, st.integers(0, 3), st.integers(1, 4))


@st.composite
def models(draw, folding=False):
    first = draw(st.lists(heads, min_size=1, max_size=3))
    blocks = [BlockShape(draw(st.integers(1, 6)), tuple(first), draw(st.booleans()))]
    for _ in range(draw(st.integers(0, 2))):
        later = [] if folding else draw(st.lists(heads, max_size=2))
        blocks.append(BlockShape(draw(st.integers(1, 6)), tuple(later)))
    shape = TransformerShape(
        9, draw(st.integers(1, 7)), draw(st.integers(1, 6)), draw(st.sampled_from((0, 4))), tuple(blocks)
    )
    shape = TransformerShape(**(vars(shape) | {"residual": draw(st.booleans())}))
    return Transformer(shape, dtype=torch.float64).randomize(draw(st.integers(0, 99)))


def by_the_book(model, tokens):
    """THEORY 2, sum by sum."""
    h = [model.embedding[t] + (0 if model.position is None else model.position[i]) for i, t in enumerate(tokens)]
    for block in model.blocks:
        out = []
        for i in range(len(h)):
            u = h[i] if block.attention is None else torch.zeros_like(h[i])
            for head in block.attention.heads if block.attention else ():
                scores = [
                    float((h[i] @ head.query) @ (h[j] @ head.key)) if head.query is not None else 0.0
                    for j in range(i + 1)
                ]
                top = max(scores)
                weights = [float(s == top) if block.attention.hard else 2.718281828459045 ** (s - top) for s in scores]
                for j, weight in enumerate(weights):
                    u = u + weight / sum(weights) * (h[j] @ head.value) @ head.output
            if block.residual and block.attention is not None:
                u = u + h[i]
            hidden = (u @ block.mlp.weight_in + block.mlp.bias_in).clamp(min=0)
            v = hidden @ block.mlp.weight_out + block.mlp.bias_out
            out.append(v + u if block.residual else v)
        h = out
    return h[-1] @ model.unembedding + model.unembedding_bias


@given(models(), st.lists(st.integers(0, 8), min_size=1, max_size=4))
@settings(max_examples=80)
def test_forward(model, tokens):
    with torch.no_grad():
        logits = model(torch.tensor([tokens, tokens]))
        torch.testing.assert_close(logits[0], by_the_book(model, tokens), rtol=1e-9, atol=1e-9)
    assert torch.equal(logits[0], logits[1])


@given(models())
def test_shapes_and_states_round_trip(model):
    shape = TransformerShape.from_dict(model.shape.to_dict())
    assert shape == model.shape
    other = Transformer(shape, dtype=torch.float64)
    other.load_state_dict(model.state_dict())
    tokens = torch.tensor([[1, 2, 3]])
    assert torch.equal(other(tokens), model(tokens))
    assert model.num_parameters == sum(p.numel() for p in model.parameters())


def test_uniform_attention_averages():
    model = Transformer(TransformerShape(4, 2, 2, 0, (BlockShape(2, (HeadShape(0, 2),)),)))
    h = torch.tensor([[1.0, 0.0], [3.0, 4.0], [5.0, 2.0]])
    head = model.blocks[0].attention.heads[0]
    with torch.no_grad():
        head.value.fill_diagonal_(1)
        head.output.fill_diagonal_(1)
        torch.testing.assert_close(model.blocks[0].attention(h), h.cumsum(0) / torch.tensor([[1.0], [2.0], [3.0]]))


def test_sequences_have_a_limit():
    model = Transformer(TransformerShape(4, 2, 2, 3, (BlockShape(2, (HeadShape(1, 2),)),)))
    with pytest.raises(InvalidArgument, match="takes 1 to 3"):
        model(torch.zeros(1, 4, dtype=torch.int64))
    with pytest.raises(InvalidArgument, match="a sequence of 0 tokens"):
        model(torch.zeros(1, 0, dtype=torch.int64))


def test_same_seed_same_weights():
    shape = TransformerShape(4, 2, 3, 3, (BlockShape(2, (HeadShape(1, 2),)),))
    one, same, other = (Transformer(shape).randomize(seed) for seed in (1, 1, 2))
    assert torch.equal(one.embedding, same.embedding)
    assert not torch.equal(one.embedding, other.embedding)
