"""Proofs for shapes beyond any memory, against proofs from weights where both exist."""

import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import constructions
from constructions import fetch
from geotheory import FactTable, testing


@pytest.mark.parametrize("kind", ["direct", "chain_of_thought", "key_value", "meet_in_middle"])
def test_beyond_memory(kind):
    certificate = constructions.schema(kind, entities=10**9, relations=16, hops=5)
    assert certificate.holds, certificate
    assert 1.9 < certificate.margin < 2
    assert constructions.schema(kind, entities=10**9, relations=16, hops=5, attention="hard").margin == 2.0


@given(testing.shapes(12, 3, 3), st.integers(1, 2), st.booleans(), st.data())
@settings(max_examples=30)
def test_schema_and_weights_agree(shape, bits, residual, data):
    N, R, k = shape
    facts = FactTable.random_bijections(entities=N, relations=R)
    kind = data.draw(st.sampled_from(("direct", "chain_of_thought", "key_value", "meet_in_middle")))
    options = {"bits": bits} if kind in ("direct", "chain_of_thought") else {}
    if kind == "chain_of_thought":
        options["hops_per_step"] = data.draw(st.integers(1, k))
    proved = getattr(constructions, kind)(facts, k, residual=residual, **options).certificate()
    schema = constructions.schema(kind, entities=N, relations=R, hops=k, residual=residual, **options)
    assert schema.holds
    assert proved.holds
    # From the weights the actual leakage is known; the schema bounds it.
    assert proved.epsilon <= schema.epsilon * (1 + 1e-9)


def test_the_schema_can_fail(monkeypatch):
    # The package hands out the function of the same name, so the file is taken from where modules are kept.
    file = sys.modules["constructions.schema"]
    monkeypatch.setattr(file, "sharpness", lambda length, gain: fetch.sharpness(length, gain) // 5)
    certificate = constructions.schema("direct", entities=100, relations=4, hops=2)
    assert not certificate.holds
    assert certificate.margin == 0.0
    assert "leakage" in next(s.name for s in certificate.statements if not s.holds)


@pytest.mark.parametrize(("length", "gain"), [(2, 1), (3, 17), (10, 400), (1000, 10**6)])
def test_sharpness_is_enough_and_not_far_more(length, gain):
    from math import exp

    beta = fetch.sharpness(length, gain)
    leak = 2 * (length - 1) * gain * exp(-2 * beta)
    assert fetch.LEAKAGE * exp(-2) < leak <= fetch.LEAKAGE * (1 + 1e-12)
