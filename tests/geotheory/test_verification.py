"""What verify counts, and how it stops."""

import json

import pytest
import torch
from torch import nn

import constructions
from geotheory import FactTable, verification, verify
from geotheory.errors import InvalidArgument, TooLarge


class Lookup(nn.Module):
    """A module that knows the facts by heart; `bonus` is added to the logit of the right attribute."""

    def __init__(self, facts, hops=1, bonus=3.0):
        super().__init__()
        self.facts, self.hops, self.bonus = facts, hops, nn.Parameter(torch.tensor(bonus))

    def forward(self, tokens):
        x, words = tokens[:, 0], tokens[:, 1:] - self.facts.num_subjects
        answer = self.facts.follow(x, words)[:, -1]
        return self.bonus * nn.functional.one_hot(answer.clamp(min=0), self.facts.num_attributes).float()


FACTS = FactTable.random_bijections(entities=9, relations=3)


@pytest.mark.parametrize("hops", [1, 2])
def test_any_module(hops):
    found = verify(Lookup(FACTS, hops), FACTS, hops)
    assert (found.queries, found.correct, found.margin, found.accuracy) == (9 * 3**hops, 9 * 3**hops, 3.0, 1.0)
    assert found.holds
    assert found.exhaustive


def test_a_tie_is_wrong():
    found = verify(Lookup(FACTS, bonus=0.0), FACTS)
    assert (found.correct, found.margin) == (0, 0.0)
    assert len(found.counterexamples) == 10


def test_counterexamples_are_named_and_carry_their_lead():
    other = FACTS.table.clone()
    other[1, [2, 5]] = other[1, [5, 2]]
    model = Lookup(FactTable(other))
    found = verify(model, FACTS)
    assert (found.correct, found.margin) == (25, -3.0)
    first = found.counterexamples[0]
    assert (first.subject, first.relations, first.lead) == ("x2", ("r1",), -3.0)
    assert (first.expected, first.answer) == (f"x{FACTS.table[1, 2]}", f"x{FACTS.table[1, 5]}")
    assert str(first) == f"(x2, r1): {first.answer}, not {first.expected} (lead -3)"
    assert "25 of 27 queries right" in str(found)
    assert not found.holds


def test_a_module_is_not_asked_for_what_is_missing():
    facts = FactTable.random_functions(20, 2, missing=0.5)
    found = verify(Lookup(facts), facts)
    assert found.queries == 40 - facts.missing
    assert found.holds
    assert verify(constructions.single_hop(facts)).queries == 40


def test_speaking_where_a_fact_is_missing_is_wrong():
    facts = FactTable.random_functions(20, 2, missing=0.5)
    built = constructions.single_hop(facts)
    x, r = next((x, r) for x in range(20) for r in range(2) if facts.table[r, x] < 0)
    m = built.code.length
    built.transformer.embedding[x, r * m : (r + 1) * m] = 1
    found = verify(built)
    assert found.correct == found.queries - 1
    assert found.counterexamples[0].expected is None
    assert not built.certificate().holds


def test_samples():
    found = verify(Lookup(FACTS, 2), FACTS, 2, sample=50, seed=3)
    assert (found.queries, found.correct, found.exhaustive) == (50, 50, False)
    built = constructions.direct(FACTS, 2)
    built.transformer.embedding[:3] = built.transformer.embedding[3:6]
    one, same, other = (verify(built, sample=200, seed=seed) for seed in (1, 1, 2))
    assert one.counterexamples == same.counterexamples != other.counterexamples
    assert 0.5 < one.accuracy < 0.85  # a third of the subjects answers wrongly


def test_too_many_queries_need_a_sample():
    built = constructions.chain_of_thought(FACTS, 40)
    with pytest.raises(TooLarge, match="give sample="):
        verify(built)
    assert verify(built, sample=300).holds
    assert verify(built, hops=2).queries == 81


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: verify(Lookup(FACTS)), "needs the facts too"),
        (lambda: verify(Lookup(FACTS), FACTS, 0), "hops must be at least 1"),
        (lambda: verify(Lookup(FACTS), FACTS, sample=0), "sample must be at least 1"),
        (lambda: verify(constructions.direct(FACTS, 2), hops=1), "answers exactly 2"),
    ],
)
def test_bad_calls(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()


def test_interruption_keeps_what_was_found(monkeypatch):
    batches = verification._sampled

    def interrupted(*arguments):
        yield next(batches(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(verification, "_sampled", interrupted)
    found = verify(Lookup(FACTS, 2), FACTS, 2, sample=2 * verification.AT_ONCE)
    assert not found.complete
    assert not found.holds
    assert found.queries == found.correct == verification.AT_ONCE
    assert "interrupted" in str(found)


def test_json_has_no_infinity():
    one = verify(constructions.single_hop(FactTable.random_bijections(entities=1, relations=2)))
    assert one.margin == float("inf")
    assert one.to_dict()["margin"] == "inf"
    built = constructions.direct(FACTS, 2)
    built.transformer.unembedding_bias[2] = float("nan")
    found = verify(built).to_dict()
    assert found["margin"] == "-inf"
    assert json.loads(json.dumps(found, allow_nan=False))["counterexamples"]


def test_the_model_must_fit_the_question():
    built = constructions.direct(FACTS, 2)
    with pytest.raises(InvalidArgument, match="cannot be asked 4 hops"):
        verify(built.transformer, FACTS, 4)
    for N in (8, 10):
        other = FactTable.random_bijections(entities=N, relations=3)
        with pytest.raises(InvalidArgument, match="was built for"):
            verify(built, other)
        with pytest.raises(InvalidArgument, match="cannot be asked"):
            verify(built.transformer, other, 2)
    for seed in (-1, 2**64):
        with pytest.raises(InvalidArgument, match="seed must be"):
            verify(built, sample=5, seed=seed)
    with pytest.raises(InvalidArgument, match="device 'abacus' is not available"):
        verify(built, device="abacus")


@pytest.mark.parametrize(
    "spoil", [lambda x: x[0], lambda x: (x, x), lambda x: x[..., None], lambda x: x[:-1], lambda x: x[:, :0]]
)
def test_logits_must_be_a_matrix(spoil):
    class Wrong(Lookup):
        def forward(self, tokens):
            return spoil(super().forward(tokens))

    with pytest.raises(InvalidArgument, match="must turn 9 token sequences into logits"):
        verify(Wrong(FACTS), FACTS)


def test_nan_weights_are_not_overlooked():
    built = constructions.direct(FACTS, 2)
    built.transformer.blocks[0].mlp.weight_in[0, 0] = float("nan")
    found = verify(built)
    assert not found.holds
    assert found.margin == -float("inf")
