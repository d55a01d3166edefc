"""Closed-form sizes against the weights, and symbols against numbers."""

import hypothesis.strategies as st
import pytest
import sympy as sp
from hypothesis import given, settings

import constructions
from constructions.sizes import KINDS
from geotheory import FactTable, testing
from geotheory.errors import InvalidArgument, UnknownName
from tests.constructions.variants import variants


@given(st.data(), testing.shapes(20, 3, 3))
def test_sizes_are_those_of_the_weights(data, shape):
    N, R, k = shape
    facts = FactTable.random_bijections(entities=N, relations=R)
    _, build = data.draw(st.sampled_from(list(variants(facts, k))))
    built = build(facts)
    transformer, size = built.transformer, built.size
    assert size.d == transformer.shape.d == transformer.embedding.shape[1]
    assert size.parameters == sum(weight.numel() for weight in transformer.parameters())
    assert size.width == max(block.mlp.bias_in.numel() for block in transformer.blocks)
    assert size.depth == len(transformer.blocks)
    assert size.heads == len(transformer.blocks[0].attention.heads)
    assert size.steps == built.decoding.steps
    if built.options["residual"] or built.kind != "meet_in_middle":
        assert sum(size.parts.values()) == size.d


@pytest.mark.parametrize("kind", KINDS)
@given(testing.shapes(10**6, 40, 6), st.integers(1, 4), st.booleans(), st.data())
@settings(max_examples=25)
def test_symbols_give_the_numbers(kind, shape, bits, residual, data):
    N, R, k = shape
    k = 1 if kind == "single_hop" else k
    bits = 1 if kind in ("key_value", "meet_in_middle") else bits
    options = {}
    if kind == "chain_of_thought":
        options["hops_per_step"] = data.draw(st.integers(1, k))
    if kind == "meet_in_middle":
        options = {"forward": data.draw(st.integers(0, k)), "hidden_layers": data.draw(st.sampled_from((1, 2)))}
    numbers = constructions.size(
        kind, entities=N, relations=R, hops=k, bits=bits, residual=residual, **options
    ).to_dict()
    one_hop = {"hops": 1} if kind == "key_value" and k == 1 else {}
    symbols = constructions.expressions(kind, residual=residual, **one_hop, **options)
    values = {sp.Symbol(n, positive=True, integer=True): v for n, v in zip("NRkb", (N, R, k, bits))}

    def evaluated(expression):
        return int(sp.sympify(expression).subs(values))

    parts, expected = symbols.pop("parts"), numbers.pop("parts")
    assert {name: evaluated(value) for name, value in symbols.items()} == numbers
    assert sum(evaluated(value) for value in parts.values()) == sum(expected.values())


def test_the_paper_s_size():
    size = constructions.size("single_hop", entities=4096, relations=16)
    assert (size.d, size.width, size.bits_in, size.bits_out, size.bits_shared) == (196, 192, 192, 0, 0)


def test_chain_of_thought_positions_cost_a_logarithm():
    sizes = [constructions.size("chain_of_thought", entities=4096, relations=16, hops=k) for k in (1, 2, 4, 1024)]
    assert [s.d for s in sizes] == [192 + 4 + 3 * bits for bits in (1, 2, 3, 11)]
    assert {s.width for s in sizes} == {192}


def test_huge_shapes_are_exact():
    size = constructions.size("direct", entities=10**18, relations=10**3, hops=9)
    assert size.bits_in == 10**27 * 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"entities": 0, "relations": 1}, "entities must be at least 1"),
        ({"entities": 3, "relations": -1}, "relations must be at least 1"),
        ({"entities": 3, "relations": 1, "hops": 0}, "hops must be at least 1"),
        ({"entities": 3, "relations": 1, "bits": 0}, "bits must be at least 1"),
        ({"entities": True, "relations": 1}, "whole number"),
    ],
)
def test_bad_numbers_are_named(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        constructions.size("direct", **arguments)


def test_bad_options_are_named():
    shape = {"entities": 5, "relations": 2, "hops": 3}
    with pytest.raises(UnknownName, match="did you mean direct"):
        constructions.size("dirct", **shape)
    with pytest.raises(InvalidArgument, match="direct has no option 'forward'"):
        constructions.size("direct", forward=1, **shape)
    with pytest.raises(InvalidArgument, match="hops_per_step = 4 exceeds hops = 3"):
        constructions.size("chain_of_thought", hops_per_step=4, **shape)
    with pytest.raises(InvalidArgument, match="forward = 4 exceeds"):
        constructions.size("meet_in_middle", forward=4, **shape)
    with pytest.raises(InvalidArgument, match="hidden_layers must be 1 or 2"):
        constructions.size("meet_in_middle", hidden_layers=3, **shape)
    with pytest.raises(InvalidArgument, match="single_hop answers one hop"):
        constructions.size("single_hop", **shape)
    with pytest.raises(InvalidArgument, match="sign codes only"):
        constructions.size("key_value", bits=2, **shape)
    with pytest.raises(InvalidArgument, match="attributes that are the entities"):
        constructions.size("direct", attributes=7, **shape)
