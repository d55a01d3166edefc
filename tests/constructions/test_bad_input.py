"""Builders refuse what they cannot build, before anything is allocated."""

import pytest
import torch

import constructions
from constructions import construction
from geotheory import FactTable
from geotheory.errors import InvalidArgument, NotBijective, NotComposable, TooLarge

WORLD = FactTable.random_bijections(entities=5, relations=2)
ELEMENTS = FactTable.random_functions(5, 2, 9)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: constructions.single_hop(WORLD, bits=0), "bits must be at least 1"),
        (lambda: constructions.single_hop(WORLD, bits=13), "float32 is exact up to 16,777,216 only"),
        (lambda: constructions.single_hop(WORLD, bits=6, dtype=torch.float16), "float16 is exact up to 2,048 only"),
        (lambda: constructions.direct(WORLD, 2, bits=5, dtype=torch.bfloat16), "take fewer bits or a wider dtype"),
        (lambda: constructions.direct(WORLD, 0), "hops must be at least 1"),
        (lambda: constructions.direct(WORLD, 2, attention="sharp"), "attention must be 'softmax' or 'hard'"),
        (lambda: constructions.chain_of_thought(WORLD, 2, 3), "hops_per_step = 3 exceeds hops = 2"),
        (lambda: constructions.chain_of_thought(WORLD, 2, 0), "hops_per_step must be at least 1"),
        (lambda: constructions.meet_in_middle(WORLD, 2, 3), "forward = 3 exceeds hops = 2"),
        (lambda: constructions.meet_in_middle(WORLD, 2, 1, 3), "hidden_layers must be 1 or 2"),
        (lambda: constructions.single_hop(WORLD).answer([5], [[0]]), r"subject indices must lie in 0\.\.4"),
        (lambda: constructions.single_hop(WORLD).answer([0], [[2]]), r"relation indices must lie in 0\.\.1"),
        (lambda: constructions.direct(WORLD, 2).answer([0], [[1]]), "answers exactly 2"),
        (lambda: constructions.chain_of_thought(WORLD, 2).answer([0], [[1, 1, 1]]), "answers 1 to 2"),
        (lambda: constructions.chain_of_thought(WORLD, 4, 2).answer([0], [[1]]), "build one with hops=1"),
        (lambda: constructions.associative(WORLD, 0), "d must be at least 1"),
    ],
)
def test_numbers_out_of_range(build, message):
    with pytest.raises(InvalidArgument, match=message):
        build()


@pytest.mark.parametrize("kind", ["direct", "chain_of_thought", "key_value"])
def test_several_hops_need_attributes_that_are_subjects(kind):
    with pytest.raises(NotComposable, match="attributes that are themselves subjects"):
        getattr(constructions, kind)(ELEMENTS, 2)


def test_meet_in_middle_names_who_is_in_the_way():
    table = torch.tensor([[1, 1, 0]])
    with pytest.raises(NotBijective, match="relation 'mother' sends both 'Ann' and 'Bo' to 'Bo'"):
        constructions.meet_in_middle(FactTable(table, ["Ann", "Bo", "Cy"], ["mother"]), 2)


def test_too_large_is_said_before_anything_is_allocated(monkeypatch):
    monkeypatch.setattr(construction, "_available", lambda _: 24 * 10**9)
    facts = FactTable.random_bijections(entities=4096, relations=16)
    with pytest.raises(TooLarge) as caught:
        constructions.direct(facts, 6)
    message = str(caught.value)
    assert "direct with N=4,096, R=16, k=6 needs d = 201,326,619" in message
    assert "chain_of_thought with hops_per_step=2 needs d = 3,096 and width 3,072" in message
    assert "chain_of_thought with hops_per_step=1 needs d = 208 and width 192" in message
    assert "hops_per_step=5" not in message


def test_too_large_for_everything(monkeypatch):
    monkeypatch.setattr(construction, "_available", lambda _: 1000)
    with pytest.raises(TooLarge, match="no other construction would fit"):
        constructions.chain_of_thought(WORLD, 3)
