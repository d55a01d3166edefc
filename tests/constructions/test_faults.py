"""Planted faults: verification and certificate must both notice them, and the certificate is never fooled."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import constructions
from geotheory import FactTable, verify
from tests.constructions.variants import variants

FACTS = FactTable.random_bijections(entities=11, relations=3, seed=5)
GAPS = FactTable.random_functions(7, 2, missing=0.3, seed=1)


def noticed(built):
    found, certificate = verify(built), built.certificate()
    assert not found.holds, f"verify overlooked it: {found}"
    assert not certificate.holds, f"the certificate overlooked it: {certificate}"
    assert found.counterexamples
    assert certificate.margin == 0.0
    return found, certificate


def multi_hop():
    return {
        "direct": constructions.direct(FACTS, 2),
        "direct, residual": constructions.direct(FACTS, 2, residual=True),
        "chain_of_thought": constructions.chain_of_thought(FACTS, 3),
        "chain_of_thought, residual": constructions.chain_of_thought(FACTS, 3, residual=True),
        "chain_of_thought, 2 hops per step": constructions.chain_of_thought(FACTS, 3, 2),
        "key_value": constructions.key_value(FACTS, 2),
        "key_value, residual": constructions.key_value(FACTS, 2, residual=True),
        "meet_in_middle": constructions.meet_in_middle(FACTS, 2),
        "meet_in_middle, 1 layer": constructions.meet_in_middle(FACTS, 2, hidden_layers=1),
        "meet_in_middle, residual": constructions.meet_in_middle(FACTS, 2, residual=True),
    }


NAMES = list(multi_hop())


@pytest.fixture(params=NAMES)
def built(request):
    return multi_hop()[request.param]


def test_without_a_fault_nothing_is_noticed(built):
    assert verify(built).holds
    assert built.certificate().holds


def test_shifted_position_code(built):
    position = built.transformer.position
    position.copy_(position.roll(1, 0))
    noticed(built)


def test_swapped_heads(built):
    heads = built.transformer.blocks[0].attention.heads
    if built.options["residual"] and built.kind != "chain_of_thought":
        heads[0].query.copy_(heads[1].query)  # two heads in all: the relation's head reads the subject
    else:
        one, other = heads[0].query.clone(), heads[1].query.clone()
        heads[0].query.copy_(other)
        heads[1].query.copy_(one)
    noticed(built)


def test_dropped_head(built):
    built.transformer.blocks[0].attention.heads[0].query.zero_()
    noticed(built)


def test_beta_too_low(built):
    for head in built.transformer.blocks[0].attention.heads:
        head.query.div_(40)
    noticed(built)


def test_beta_that_is_lower_but_high_enough_is_no_fault(built):
    for head in built.transformer.blocks[0].attention.heads:
        head.query.mul_(0.75)
    found, certificate = verify(built), built.certificate()
    assert found.holds
    assert certificate.holds
    # The certificate speaks of exact arithmetic; float32 rounds.
    assert certificate.margin - 1e-6 <= found.margin <= 2


def test_one_wrong_row(built):
    rows = built.transformer.embedding
    rows[3] = rows[4]
    found, _ = noticed(built)
    assert {c.subject for c in found.counterexamples} >= {"x3"}


def test_one_wrong_coordinate_of_a_block(built):
    coordinate = built.transformer.embedding[5].nonzero()[0, 0]
    built.transformer.embedding[5, coordinate] *= -1
    noticed(built)


def test_one_wrong_unembedding_column(built):
    column = built.transformer.unembedding
    column[:, 2] = -column[:, 2]
    noticed(built)


def test_equal_unembedding_columns_are_a_tie(built):
    column = built.transformer.unembedding
    column[:, 2] = column[:, 6]
    noticed(built)


def test_swapped_relation_codes(built):
    relations = built.transformer.embedding[11:14]
    relations[[0, 1]] = relations[[1, 0]]
    noticed(built)


def test_gate_that_overlooks_a_digit(built):
    # Relations 0 and 1 differ in the first digit of their codes alone: without it both their blocks are open.
    mlp = built.transformer.blocks[0].mlp
    digit = built.space["relation codes"].start
    mlp.bias_in += mlp.weight_in[digit].abs()
    mlp.weight_in[digit] = 0
    noticed(built)


def test_a_gate_without_slack_is_right_but_not_proved():
    # With strength s instead of s + 1 a shut neuron stands at 0 at most: right, but any leakage of the softmax opens it.
    built = constructions.direct(FACTS, 2)
    mlp, slots = built.transformer.blocks[0].mlp, built.space["relation codes"]
    mlp.bias_in += mlp.weight_in[slots].abs().sum(0) / 2
    mlp.weight_in[slots] /= 2
    assert verify(built).holds
    failed = [s for s in built.certificate().statements if not s.holds]
    assert [s.name for s in failed] == ["leakage opens nothing"]
    built.transformer.blocks[0].attention.hard = True
    assert built.certificate().holds


@pytest.mark.parametrize("seed", range(3))
def test_two_swapped_facts(seed):
    facts = FactTable.random_bijections(entities=11, relations=3, seed=seed)
    other = facts.table.clone()
    other[1, [2, 3]] = other[1, [3, 2]]
    for name, build in variants(FactTable(other), 2):
        built = build(FactTable(other))
        # The model is right about its own world and wrong about this one.
        object.__setattr__(built, "facts", facts)
        found = verify(built)
        assert not found.holds, name
        assert not built.certificate().holds, name


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("factor", [1e9, 1e-9])
def test_scores_that_float32_cannot_hold(attention, factor):
    built = constructions.direct(FACTS, 2, attention=attention)
    query = built.transformer.blocks[0].attention.heads[0].query
    place = query.nonzero()[-1]
    query[place[0], place[1]] *= factor
    found, certificate = verify(built), built.certificate()
    assert not certificate.holds or found.holds
    if not found.holds:
        assert not certificate.holds


def test_positions_that_float32_cannot_hold():
    built = constructions.direct(FACTS, 2, attention="hard")
    built.transformer.position[:, built.space["positions"].start] *= 2.0**13
    assert not built.certificate().holds


SMALL = [(facts, *variant) for facts in (FACTS, GAPS) for hops in (1, 2) for variant in variants(facts, hops)]


@given(st.data())
@settings(max_examples=300)
def test_certificates_are_sound(data):
    """Whatever is done to one weight: if the certificate still holds, every query is still answered rightly."""
    facts, name, build = data.draw(st.sampled_from(SMALL))
    built = build(facts)
    parameters = dict(built.transformer.named_parameters())
    weight = parameters[data.draw(st.sampled_from(sorted(parameters)), label="parameter")]
    place = data.draw(st.integers(0, weight.numel() - 1), label="place")
    change = data.draw(
        st.sampled_from(("negate", "zero", "+1", "-1", "+2", "-3", "+0.25", "x4", "x1e9", "nan")), label="change"
    )
    flat = weight.view(-1)
    value = float(flat[place])
    flat[place] = {"negate": -value, "zero": 0.0, "x4": 4 * value, "x1e9": 1e9 * value, "nan": float("nan")}.get(
        change, value
    )
    if change[0] in "+-":
        flat[place] += float(change)
    certificate, found = built.certificate(), verify(built)
    if certificate.holds:
        assert found.holds, (name, certificate, found)
        assert found.margin >= certificate.margin * (1 - 1e-5)
    # Folding must not hide the fault either.
    dense = verify(built, dense=True)
    assert (dense.correct, dense.queries) == (found.correct, found.queries), name


def test_single_flips_are_mostly_noticed_by_both():
    """Not every weight matters, but a certificate that never failed, or always did, would be no certificate."""
    failed = wrong = 0
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        built = constructions.direct(FACTS, 2)
        weights = [w for w in built.transformer.parameters() if w.count_nonzero()]
        weight = weights[int(torch.randint(len(weights), (1,), generator=generator))]
        places = weight.view(-1).nonzero()[:, 0]
        weight.view(-1)[places[int(torch.randint(len(places), (1,), generator=generator))]] *= -1
        failed += not built.certificate().holds
        wrong += not verify(built).holds
    assert failed >= wrong > 40
