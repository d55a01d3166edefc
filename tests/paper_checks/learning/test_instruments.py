"""Readouts, interventions and freeze and swap, held against models whose mechanism is known."""

import pytest
import torch

import constructions
from geotheory import FactTable
from geotheory.errors import InvalidArgument
from paper_checks.learning import Setting, train
from paper_checks.learning.interventions import intervene
from paper_checks.learning.readouts import fit_readout, fit_superposition, shuffled
from paper_checks.learning.transfer import relearn, swap, transfer

FACTS = FactTable.random_bijections(entities=64, relations=3)
SUPERPOSED = {
    "plain": constructions.single_hop(FACTS),
    "residual": constructions.single_hop(FACTS, residual=True),
    "amplitude codes": constructions.single_hop(FACTS, bits=3),
    "positions": constructions.direct(FACTS, 1),
}
KEY_VALUE = constructions.key_value(FACTS)


@pytest.mark.parametrize("name", SUPERPOSED)
def test_a_superposition_is_seen_as_one(name):
    model = SUPERPOSED[name].transformer
    fit, read = fit_superposition(model, FACTS), fit_readout(model, FACTS)
    assert fit.r2 == pytest.approx(1, abs=1e-6)
    assert min(read.r2) == pytest.approx(1, abs=1e-6)
    assert min(read.accuracy) == 1
    found = intervene(model, FACTS, fit)
    for measured, control in (found.relation_swapped, found.gates_swapped, found.component_replaced):
        assert measured == 1
        assert control < 0.1
    assert found.others_kept[0] == 1
    # A removed component leaves one attribute for everybody, which is right for one subject.
    assert found.component_removed == (pytest.approx(1 - 1 / 64, abs=0.02), 0.0)
    assert found.selective == pytest.approx(1, abs=0.02)
    off_diagonal = found.selectivity - torch.diag(found.selectivity.diagonal())
    assert float(off_diagonal.abs().max()) == 0
    moved = transfer(model, FACTS, fit)
    assert moved.zero_shot == (1.0, 1.0, 1.0)
    assert moved.own == 1
    assert moved.to_dict()["chance"] == 1 / 64


def test_a_key_value_memory_is_not():
    model = KEY_VALUE.transformer
    fit, read = fit_superposition(model, FACTS), fit_readout(model, FACTS)
    assert fit.r2 < 0.1
    assert max(read.r2) < 0.1
    assert max(read.accuracy) < 0.1
    found = intervene(model, FACTS, fit)
    assert found.component_replaced[0] < 0.1
    assert transfer(model, FACTS, fit).mean < 0.1


def test_shuffled_facts_are_no_superposition():
    model = SUPERPOSED["plain"].transformer
    other = shuffled(FACTS)
    assert not torch.equal(other.table, FACTS.table)
    assert torch.equal(other.table.sort(1).values, FACTS.table.sort(1).values)
    assert fit_superposition(model, other).r2 < 0.1
    assert max(fit_readout(model, other).accuracy) < 0.1


def test_overfitting_is_not_taken_for_structure():
    # R d + 1 unknowns a coordinate for N = 64 subjects: a fit without held-out subjects would be perfect.
    model = train(Setting(64, 3, 32, frozen="subjects", steps=100, learning_rate=1e-2), [0])[0]
    assert fit_superposition(model.transformer, model.facts).r2 < 0.1


def test_a_control_of_equal_size_changes_what_it_should_not():
    # The instrument sees damage: a random vector of the same length disturbs other relations.
    found = intervene(SUPERPOSED["plain"].transformer, FACTS, fit_superposition(SUPERPOSED["plain"].transformer, FACTS))
    assert found.others_kept[1] < 0.9
    assert float(found.selectivity_control.mean()) > 0.2


def test_a_decoder_that_mixes_relations_is_seen_to():
    model = constructions.single_hop(FACTS).transformer
    with torch.no_grad():
        # The neurons of block 0 now open for relation 1 as well as those of block 1: rows 18 on read the relation.
        mlp = model.blocks[0].mlp
        mlp.weight_in[18:, :6] = mlp.weight_in[18:, 6:12]
    found = intervene(model, FACTS, fit_superposition(model, FACTS))
    assert found.relation_swapped[0] < 1
    assert transfer(model, FACTS).mean < 1


def test_swap_leaves_the_decoder_and_the_model_alone():
    model = SUPERPOSED["plain"].transformer
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    new = FactTable.random_bijections(64, 3, seed=5)
    swapped = swap(model, fit_superposition(model, FACTS), new)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    for name, weight in swapped.state_dict().items():
        assert torch.equal(weight, before[name]) == (name != "embedding")
    assert torch.equal(swapped.embedding[64:], before["embedding"][64:])
    # It is what the construction would have written.
    assert torch.allclose(swapped.embedding, constructions.single_hop(new).transformer.embedding, atol=1e-4)


def test_relearning_behind_a_frozen_decoder():
    runs = train(Setting(32, 2, 16, learning_rate=2e-2, steps=300, subject_scale=0.1, unembedding_scale=1.0), [0, 1])
    found = relearn(runs)
    assert len(found.embeddings_only) == len(found.from_scratch) == 2
    assert all(steps is not None for steps in found.from_scratch)
    with pytest.raises(InvalidArgument, match="one setting"):
        relearn([])


def test_bad_input():
    one = FactTable.random_bijections(8, 1)
    model = constructions.single_hop(one).transformer
    fit = fit_superposition(model, one)
    with pytest.raises(InvalidArgument, match="two at least"):
        intervene(model, one, fit)
    with pytest.raises(InvalidArgument, match="8 subjects cannot be held out in 9 folds"):
        fit_superposition(model, one, folds=9)
    missing = FactTable(torch.tensor([[0, -1, 1, 2, 3]]), attributes=[f"a{i}" for i in range(5)])
    with pytest.raises(InvalidArgument, match="missing"):
        fit_superposition(constructions.single_hop(missing).transformer, missing)
    deep = constructions.key_value(FACTS, hops=2)
    with pytest.raises(InvalidArgument, match="one block"):
        intervene(deep.transformer, FACTS, fit)
