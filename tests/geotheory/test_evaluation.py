"""Fast evaluation against the dense forward pass, on models that were not made to be easy."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import nn

from geotheory import evaluation
from geotheory.evaluation import Answers, Evaluator, Readout
from geotheory.transformer import BlockShape, HeadShape, Transformer, TransformerShape


@st.composite
def positional(draw, dtype=torch.float64):
    """Random models whose heads attend by position only: tokens and positions have coordinates of their own."""
    N, R, k = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    d, q = 5, 2
    heads = tuple(
        HeadShape(draw(st.sampled_from((0, q))), draw(st.integers(1, 3))) for _ in range(draw(st.integers(1, 3)))
    )
    later = tuple(BlockShape(draw(st.integers(1, 9))) for _ in range(draw(st.integers(0, 2))))
    blocks = (BlockShape(draw(st.integers(1, 9)), heads, draw(st.booleans())), *later)
    shape = TransformerShape(N + R, draw(st.integers(1, 7)), d, k + 1, blocks, draw(st.booleans()))
    model = Transformer(shape, dtype=dtype).randomize(draw(st.integers(0, 999)), scale=2.0)
    with torch.no_grad():
        model.embedding[:, :q] = 0
        for head in model.blocks[0].attention.heads:
            if head.query is not None:
                head.query[q:] = 0
                head.key[q:] = 0
    return model, N, R, k


def all_queries(N, R, k):
    words = torch.cartesian_prod(*[torch.arange(R)] * k).reshape(-1, k)
    xs = torch.arange(N).repeat(len(words))
    return torch.cat([xs[:, None], N + words.repeat_interleave(N, 0)], 1), words


def agree(fast: Answers, dense: Answers):
    torch.testing.assert_close(fast.logit, dense.logit, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(fast.runner_up, dense.runner_up, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(fast.lead, dense.lead, rtol=1e-9, atol=1e-9)
    distinct = dense.logit - dense.runner_up > 1e-9
    assert torch.equal(fast.best[distinct], dense.best[distinct])


@given(positional(), st.sampled_from((1, 40, 1 << 20)), st.data())
@settings(max_examples=120)
def test_folded_and_dense_agree(world, tile, data):
    model, N, R, k = world
    tokens, words = all_queries(N, R, k)
    A = model.shape.attributes
    expected = torch.tensor(data.draw(st.lists(st.integers(-1, A - 1), min_size=len(tokens), max_size=len(tokens))))
    with pytest.MonkeyPatch.context() as patch:
        # Small tiles make the walk descend, and the logits come in pieces.
        patch.setattr(evaluation, "TILE", tile)
        patch.setattr(evaluation, "TABLE", 50 if tile == 1 else 1 << 20)
        fast, dense = Evaluator(model), Evaluator(model, dense=True)
        assert fast.folds
        assert not dense.folds
        reference = dense(tokens, expected)
        agree(fast(tokens, expected), reference)
        table = expected.reshape(len(words), N)
        index = {tuple(w): i for i, w in enumerate(words.tolist())}

        def wanted(some):
            return table[[index[tuple(w)] for w in some.tolist()]]

        for evaluator in (fast, dense):
            seen = torch.zeros(len(words), N, dtype=torch.int64)
            for xs, some, answers in evaluator.sweep(N, R, k, wanted):
                rows = torch.tensor([index[tuple(w)] for w in some.tolist()])
                seen[rows[:, None], xs] += 1
                pick = (rows[:, None] * N + xs).flatten()
                agree(answers.map(lambda c: c.flatten()), reference.map(lambda c, p=pick: c[p]))
            assert bool((seen == 1).all()), "every query exactly once"


def test_models_that_attend_by_content_are_not_folded():
    shape = TransformerShape(6, 4, 3, 2, (BlockShape(4, (HeadShape(2, 2),)),))
    model = Transformer(shape).randomize(0)
    assert not Evaluator(model).folds
    with torch.no_grad():
        model.embedding.zero_()
    assert Evaluator(model).folds


def test_what_cannot_be_folded():
    head = (HeadShape(0, 2),)
    second = Transformer(TransformerShape(6, 4, 3, 2, (BlockShape(4, head), BlockShape(4, head)))).randomize(0)
    assert not Evaluator(second).folds
    half = Transformer(TransformerShape(6, 4, 3, 2, (BlockShape(4, head),)), dtype=torch.bfloat16)
    assert not Evaluator(half).folds
    assert not Evaluator(nn.Sequential()).folds
    hooked = Transformer(TransformerShape(6, 4, 3, 2, (BlockShape(4, head),))).randomize(0)
    assert Evaluator(hooked).folds
    hooked.blocks[0].mlp.register_forward_hook(lambda *arguments: arguments[-1] * 0)
    assert not Evaluator(hooked).folds


def spoilt(name):
    head = (HeadShape(0, 2),)
    model = Transformer(TransformerShape(6, 4, 3, 2, (BlockShape(4, head),))).randomize(0)
    mlp = model.blocks[0].mlp
    if name == "forward of a part":
        mlp.forward = lambda u: u * 0
    elif name == "forward of the whole":
        model.forward = lambda tokens: torch.zeros(len(tokens), 4)
    elif name == "subclass":

        class Silent(type(mlp)):
            def forward(self, u):
                return u * 0

        mlp.__class__ = Silent
    elif name == "nan":
        with torch.no_grad():
            model.embedding[0, 0] = float("nan")
    return model


@pytest.mark.parametrize("name", ["forward of a part", "forward of the whole", "subclass", "nan"])
def test_models_that_are_not_what_their_weights_say(name):
    assert Evaluator(spoilt("nothing")).folds
    assert not Evaluator(spoilt(name)).folds


def test_global_hooks_are_respected():
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert not Evaluator(spoilt("nothing")).folds
    finally:
        handle.remove()


def test_readout_survives_colliding_keys_and_forgetting(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(3, 6, generator=generator), torch.randn(6, generator=generator)
    states = torch.randint(-3, 4, (400, 3), generator=generator).float()
    reference = (states @ weight + bias).topk(2)
    for salt, remembered in ((None, 1 << 20), (torch.zeros(3, dtype=torch.int64), 1 << 20), (None, 7)):
        monkeypatch.setattr(evaluation, "REMEMBERED", remembered)
        readout = Readout(weight, bias)
        if salt is not None:
            readout.salt = salt  # every state has the same key
        for part in (states, states.flip(0), states[:5]):
            answers = readout(part)
            expected = (part @ weight + bias).topk(2)
            torch.testing.assert_close(answers.logit, expected.values[:, 0])
            torch.testing.assert_close(answers.runner_up, expected.values[:, 1])
            assert torch.equal(answers.best, expected.indices[:, 0])
    assert reference.values.shape == (400, 2)


def test_ties_and_nan_are_no_answer():
    logit = torch.tensor([1.0, 1.0, float("nan"), 0.2])
    answers = Answers(torch.arange(4), logit, torch.tensor([0.0, 1.0, 0.0, 0.1]), logit)
    assert answers.said().tolist() == [0, -1, -1, 3]
    assert answers.said(silence=0.5).tolist() == [0, -1, -1, -1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_cuda_gives_the_same_answers():
    import constructions
    from geotheory import FactTable, verify

    facts = FactTable.random_bijections(entities=500, relations=4)
    on_cpu = verify(constructions.direct(facts, 2))
    on_cuda = verify(constructions.direct(facts, 2, device="cuda"))
    assert on_cuda.holds
    assert (on_cuda.queries, on_cuda.margin) == (on_cpu.queries, on_cpu.margin)
