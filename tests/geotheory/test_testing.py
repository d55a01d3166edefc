"""check_construction finds what is wrong with other people's constructions."""

import dataclasses
from types import SimpleNamespace

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import find, given
from torch import nn

import bounds
import constructions
from geotheory import FactTable, testing, verify
from geotheory.codes import Code
from geotheory.decoding import Decoding
from geotheory.transformer import BlockShape, HeadShape, Transformer, TransformerShape

FACTS = FactTable.random_bijections(entities=16, relations=3)


def test_good_constructions_pass():
    assert testing.check_construction(constructions.single_hop(FACTS)).holds
    assert testing.check_construction(constructions.chain_of_thought(FACTS, 4)).margin == 2.0
    assert testing.check_construction(constructions.direct(FACTS, 2).transformer, FACTS, 2).queries == 16 * 9


def test_a_wrong_answer_is_named():
    built = constructions.single_hop(FACTS)
    built.transformer.embedding[4] = 0
    with pytest.raises(AssertionError, match=r"\(x4, r0\): no answer, not x"):
        testing.check_construction(built)


class Forgets(nn.Module):
    """Knows every fact but those about subject 2."""

    def __init__(self, facts):
        super().__init__()
        self.model = constructions.single_hop(facts).transformer

    def forward(self, tokens):
        return self.model(tokens) * (tokens[:, :1] != 2)


def test_a_failure_shrinks_to_the_smallest_world():
    def fails(facts):
        try:
            testing.check_construction(Forgets(facts), facts)
        except AssertionError:
            return True
        return False

    smallest = find(testing.fact_tables(9, 3), fails)
    assert (smallest.num_subjects, smallest.num_relations) == (3, 1)


def claim(built, **fields):
    object.__setattr__(built, "size", dataclasses.replace(built.size, **fields))
    return built


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"d": 13}, "claims d = 13, and its weights have 14"),
        ({"width": 11}, "claims width = 11"),
        ({"parameters": 7}, "claims parameters = 7"),
        ({"bits_in": 11}, r"at least 12 are needed at N=16, R=3, k=1 \(theorem B1\)"),
    ],
)
def test_false_claims(fields, message):
    with pytest.raises(AssertionError, match=message):
        testing.check_construction(claim(constructions.single_hop(FACTS), **fields))


def test_too_few_neurons_contradict_a_theorem():
    built = constructions.single_hop(FACTS)
    narrow = dataclasses.replace(built.size, width=11)

    class Claimed:
        """The same model; of its weights nothing is known but the claim."""

        transformer = nn.Sequential(built.transformer)
        facts, decoding, options, size = built.facts, built.decoding, built.options, narrow

    with pytest.raises(AssertionError, match=r"theorem B5"):
        testing.check_construction(Claimed())


def test_a_residual_stream_needs_no_neurons():
    # One relation: the stream carries the code of g(x) to the unembedding, and the only neuron is dead. B5 does not apply.
    facts = FactTable.random_bijections(entities=16, relations=1)
    shape = TransformerShape(17, 16, 4, 0, (BlockShape(1, (HeadShape(0, 4),)),), residual=True)
    model, code = Transformer(shape), Code(16)
    with torch.no_grad():
        model.embedding[:16] = code.words(facts.table[0])
        model.blocks[0].attention.heads[0].value.fill_diagonal_(2)
        model.blocks[0].attention.heads[0].output.fill_diagonal_(1)
        model.unembedding[:] = code.words().T
    assert verify(model, facts).margin == 2
    assert bounds.width(16, 1).value == 4 > 1
    assert "no residual stream" in bounds.width(16, 1).statement

    class Claimed:
        transformer, options = model, {"bits": 1, "residual": True}
        size = SimpleNamespace(depth=1, width=1, bits_in=4, bits_out=0, bits_shared=0)
        decoding = Decoding(16, 1, 1)

    Claimed.facts = facts
    testing.check_construction(Claimed())


def test_a_margin_can_be_asked_for():
    with pytest.raises(AssertionError, match="margin 2 is not above 2"):
        testing.check_construction(constructions.single_hop(FACTS), margin=2.0)


def test_a_certificate_that_promises_too_much():
    built = constructions.single_hop(FACTS)
    object.__setattr__(built, "certificate", lambda: dataclasses.replace(type(built).certificate(built), margin=3.0))
    with pytest.raises(AssertionError, match=r"promises margin 3.0"):
        testing.check_construction(built)


@given(testing.fact_tables(6, 3, bijective=None, missing=None, named=None, composable=None))
def test_worlds_are_what_they_say(facts):
    assert 1 <= facts.num_subjects <= 6
    assert 1 <= facts.num_relations <= 3
    assert int(facts.table.max()) < facts.num_attributes


@given(testing.fact_tables(6, 3))
def test_bijective_by_default(facts):
    assert facts.is_bijective


def test_every_kind_of_world_comes_up():
    worlds = testing.fact_tables(4, 2, bijective=None, missing=None, named=None, composable=None)
    for wanted in (
        lambda f: f.is_bijective and f.num_subjects > 2,
        lambda f: not f.is_bijective and f.is_complete and f.is_composable,
        lambda f: not f.is_complete,
        lambda f: not f.is_composable,
        lambda f: not f.subjects[0].isascii(),
    ):
        find(worlds, wanted)


@given(st.data())
def test_words(data):
    words = data.draw(testing.words(3, 2))
    assert words.shape[1] == 2
    assert bool(((words >= 0) & (words < 3)).all())
    assert words.dtype == torch.int64
