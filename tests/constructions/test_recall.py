"""The theorems T1 to T5 as properties: for every small world every construction recalls everything."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import constructions
from geotheory import FactTable, testing, verify
from geotheory.evaluation import Evaluator
from tests.constructions.variants import variants


@given(st.data(), st.integers(1, 3))
@settings(max_examples=40)
def test_every_construction_recalls_every_world(data, hops):
    worlds = testing.fact_tables(9, 3 if hops < 3 else 2, bijective=None, missing=None)
    facts = data.draw(worlds)
    name, build = data.draw(st.sampled_from(list(variants(facts, hops))), label="construction")
    built = build(facts)
    found = testing.check_construction(built)
    # A world without an answer at all has no margin.
    assert found.margin == float("inf") or found.margin >= 2 * (1 - 1e-6), name
    # The dense forward pass is the reference: the same answers and margins.
    dense = verify(built, dense=True)
    assert (dense.correct, dense.queries) == (found.correct, found.queries)
    assert dense.margin == pytest.approx(found.margin, rel=1e-6)


@given(testing.fact_tables(12, 4, bijective=None, missing=None, composable=False), st.integers(1, 3), st.booleans())
def test_single_hop_needs_neither_bijections_nor_shared_attributes(facts, bits, residual):
    testing.check_construction(constructions.single_hop(facts, bits=bits, residual=residual))
    testing.check_construction(constructions.key_value(facts, residual=residual))


@pytest.mark.parametrize("shape", [(50, 3, 2), (64, 2, 3), (40, 2, 4), (100, 3, 3), (32, 2, 5)])
def test_grid(shape):
    N, R, k = shape
    facts = FactTable.random_bijections(entities=N, relations=R, seed=k)
    for build in (
        lambda: constructions.direct(facts, k),
        lambda: constructions.chain_of_thought(facts, k),
        lambda: constructions.chain_of_thought(facts, k, 2),
        lambda: constructions.key_value(facts, k),
        lambda: constructions.meet_in_middle(facts, k),
        lambda: constructions.meet_in_middle(facts, k, hidden_layers=1),
    ):
        built = build()
        found = verify(built)
        assert found.holds, found
        assert found.queries == N * R**k
        assert built.certificate().holds, built.certificate()


def test_expected_dimensions_without_relation_and_position_parts():
    shape = {"entities": 100, "relations": 3}
    assert constructions.size("direct", hops=3, **shape).parts["subject blocks"] == 189
    middle = constructions.size("meet_in_middle", hops=3, forward=2, **shape)
    assert (middle.bits_in, middle.bits_out) == (63, 21)
    for k in (1, 3, 50):
        assert constructions.size("chain_of_thought", hops=k, **shape).parts["subject blocks"] == 21


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("entities", [1, 2, 3])
def test_tiny_worlds_and_long_chains(entities, residual):
    for relations in (1, 2):
        facts = FactTable.random_functions(entities, relations, missing=0.2, seed=entities)
        built = constructions.chain_of_thought(facts, 8, residual=residual)
        assert verify(built).holds
        assert built.certificate().holds


def test_words_are_read_from_left_to_right():
    # g_0 is a rotation and g_1 a swap: they do not commute, so every construction must keep the order of the word.
    facts = FactTable(torch.tensor([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]]))
    first, second = facts.compose([[0, 1]])[0], facts.compose([[1, 0]])[0]
    assert not torch.equal(first, second)
    everyone = torch.arange(5)
    for name, build in variants(facts, 2):
        built = build(facts)
        for word, expected in (([0, 1], first), ([1, 0], second)):
            answers = built.answer(everyone, torch.tensor([word]).expand(5, 2))
            assert torch.equal(answers, expected), name


def test_one_hop_constructions_agree_with_single_hop():
    facts = FactTable.random_bijections(entities=13, relations=3)
    subjects, relations = torch.arange(13).repeat(3), torch.arange(3).repeat_interleave(13)[:, None]
    expected = constructions.single_hop(facts).answer(subjects, relations)
    for name, build in variants(facts, 1):
        assert torch.equal(build(facts).answer(subjects, relations), expected), name


@pytest.mark.parametrize("hops_per_step", [1, 2, 3])
def test_shorter_queries_and_emitted_chains(hops_per_step):
    facts = FactTable.random_bijections(entities=17, relations=2)
    built = constructions.chain_of_thought(facts, 6, hops_per_step)
    for hops in range(hops_per_step, 7, hops_per_step):
        words = torch.randint(2, (17, hops), generator=torch.Generator().manual_seed(hops))
        chain = built.answer(torch.arange(17), words, steps=True)
        ends = list(range(hops_per_step - 1, hops, hops_per_step))
        assert torch.equal(chain, facts.follow(torch.arange(17), words)[:, ends])


def test_a_chain_is_not_corrected_from_outside():
    # With one wrong row the model must go astray and stay astray: nothing but its own argmax decides.
    facts = FactTable.random_bijections(entities=8, relations=1, seed=3)
    built = constructions.chain_of_thought(facts, 3)
    x = 0
    chain = facts.follow(torch.tensor([x]), [[0, 0, 0]])[0].tolist()
    rows = built.transformer.embedding
    other = next(y for y in range(8) if y not in (x, *chain[:2]))
    rows[x] = rows[other]
    emitted = built.answer([x], [[0, 0, 0]], steps=True)[0].tolist()
    assert emitted == facts.follow(torch.tensor([other]), [[0, 0, 0]])[0].tolist()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    facts = FactTable.random_bijections(entities=60, relations=3)
    for build in (
        lambda: constructions.single_hop(facts, dtype=dtype),
        lambda: constructions.single_hop(facts, bits=3, residual=True, dtype=dtype),
        lambda: constructions.direct(facts, 2, dtype=dtype),
        lambda: constructions.direct(facts, 2, residual=True, attention="hard", dtype=dtype),
        lambda: constructions.chain_of_thought(facts, 3, dtype=dtype),
        lambda: constructions.key_value(facts, 2, dtype=dtype),
        lambda: constructions.meet_in_middle(facts, 2, dtype=dtype),
    ):
        built = build()
        found = verify(built, dense=True)
        assert found.holds, (built, found)
        assert built.certificate().holds
        # Softmax leakage is below the rounding of float32, so only float64 sees it at all.
        assert found.margin == pytest.approx(2.0, rel=1e-6)


def test_weights_are_small_integers():
    facts = FactTable.random_bijections(entities=20, relations=3)
    for hops in (1, 2):
        for name, build in variants(facts, hops):
            if "bits=2" in name or "bits=3" in name:
                continue
            built = build(facts)
            for weight in built.transformer.parameters():
                weight.copy_(weight.round().to(torch.int8))
            assert verify(built).holds, name


def test_a_missing_link_is_met_with_silence_at_every_hop():
    # 0 -> 1 -> 2 -> 3 -> nothing
    facts = FactTable(torch.tensor([[1, 2, 3, -1]]))
    for hops, expected in ((1, [1, 2, 3, -1]), (2, [2, 3, -1, -1]), (3, [3, -1, -1, -1])):
        for name, build in variants(facts, hops):
            answers = build(facts).answer(torch.arange(4), torch.zeros(4, hops, dtype=torch.int64))
            assert answers.tolist() == expected, name
    steps = constructions.chain_of_thought(facts, 3).answer([1], [[0, 0, 0]], steps=True)
    assert steps.tolist() == [[2, 3, -1]]


def test_a_model_asked_in_training_mode_is_left_in_it():
    built = constructions.single_hop(FactTable.random_bijections(entities=4, relations=1))
    built.transformer.train()
    verify(built)
    assert built.transformer.training


@pytest.mark.large
def test_a_million_entities():
    facts = FactTable.random_bijections(entities=10**6, relations=4)
    built = constructions.direct(facts, 3, dtype=torch.bfloat16)
    assert built.certificate().holds
    assert verify(built, sample=512).holds


def test_evaluators_fold_the_constructions():
    # Else the comparisons with the dense pass above would compare it with itself.
    facts = FactTable.random_bijections(entities=5, relations=2)
    for name, build in variants(facts, 2):
        built = build(facts)
        assert Evaluator(built.transformer).folds, name
