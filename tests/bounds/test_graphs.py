"""Graphs: built, drawn at random, told apart."""

from collections import Counter
from random import Random

import hypothesis.strategies as st
import networkx as nx
import pytest
from hypothesis import given

import bounds
from bounds.kinds import KINDS
from geotheory.errors import InvalidArgument, TooLarge

small_worlds = st.integers(1, 7).flatmap(
    lambda n: st.lists(st.permutations(range(n)).map(tuple), min_size=1, max_size=3)
)


@given(small_worlds)
def test_round_trip_and_predicates(world):
    graph = bounds.from_permutations(world)
    assert bounds.to_permutations(graph) == tuple(world)
    assert bounds.is_regular(graph)
    assert bounds.is_properly_coloured(graph)
    assert bounds.is_connected(graph) == (nx.number_weakly_connected_components(graph) == 1)


@given(small_worlds, st.integers(0, 99))
def test_canonical_form_is_an_invariant_and_complete(world, seed):
    N = len(world[0])
    names = list(range(N))
    Random(seed).shuffle(names)
    renamed = [[0] * N for _ in world]
    for r, row in enumerate(world):
        for x, y in enumerate(row):
            renamed[r][names[x]] = names[y]
    assert bounds.canonical_form(world) == bounds.canonical_form(renamed)
    # And different where networkx sees a difference: two colours exchanged.
    other = world[1:] + world[:1]
    match = nx.isomorphism.categorical_multiedge_match("relation", None)
    same = nx.is_isomorphic(bounds.from_permutations(world), bounds.from_permutations(other), edge_match=match)
    assert (bounds.canonical_form(world) == bounds.canonical_form(other)) == same


@pytest.mark.parametrize("kind", KINDS)
def test_random_graphs_are_of_their_kind(kind):
    for seed in range(5):
        graph = bounds.random_graph(kind, entities=8, relations=3, seed=seed)
        assert bounds.is_regular(graph)
        assert graph.number_of_edges() == 24
        if not KINDS[kind].loops:
            assert nx.number_of_selfloops(graph) == 0
        if KINDS[kind].undirected:
            assert all(graph.has_edge(y, x, r) for x, y, r in graph.edges(keys=True))
        if KINDS[kind].simple:
            assert max(Counter((x, y) for x, y, _ in graph.edges(keys=True)).values()) == 1
    one, same = (bounds.random_graph(kind, entities=8, relations=2, seed=3) for _ in range(2))
    assert nx.utils.graphs_equal(one, same)


@pytest.mark.parametrize(
    ("kind", "N", "R"), [("involution", 4, 1), ("matching", 6, 1), ("derangement", 4, 1), ("simple", 4, 2)]
)
def test_random_graphs_are_uniform(kind, N, R):
    every = bounds.count(kind, entities=N, relations=R)
    draws = 200 * every
    seen = Counter(
        bounds.to_permutations(bounds.random_graph(kind, entities=N, relations=R, seed=seed)) for seed in range(draws)
    )
    assert len(seen) == every
    # Chi-squared with `every - 1` degrees of freedom; six standard deviations.
    statistic = sum((n - 200) ** 2 / 200 for n in seen.values())
    assert abs(statistic - (every - 1)) < 6 * (2 * (every - 1)) ** 0.5


@pytest.mark.parametrize(
    ("hops", "values"), [(2, [425, 8624, 13208, 13234, 13234])]
)  # fmt: skip
def test_tables_of_five_entities(hops, values):
    found = [bounds.tables("permutation", entities=5, relations=2, hops=hops, roots=M) for M in range(1, 6)]
    assert found == values


def test_tables_of_small_worlds():
    assert [bounds.tables("permutation", entities=4, relations=2, hops=3, roots=M) for M in range(1, 5)] == [
        430,
        514,
        534,
        534,
    ]
    assert [bounds.tables("permutation", entities=3, relations=3, hops=2, roots=M) for M in range(1, 4)] == [
        185,
        188,
        188,
    ]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bounds.random_graph("matching", entities=5, relations=1), InvalidArgument, "must be even"),
        (lambda: bounds.random_graph("simple", entities=4, relations=4), InvalidArgument, "at least 5 entities"),
        (lambda: bounds.random_graph("derangement", entities=1, relations=1), InvalidArgument, "without loops"),
        (lambda: bounds.random_graph("simple", entities=99, relations=9), TooLarge, "fewer relations"),
        (lambda: list(bounds.graphs("permutation", entities=9, relations=3)), TooLarge, "bounds.count counts them"),
        (lambda: bounds.tables("permutation", entities=3, relations=1, hops=1, roots=4), InvalidArgument, "exceeds"),
        (lambda: bounds.from_permutations([(0, 0)]), InvalidArgument, "colour 0 is no permutation"),
        (lambda: bounds.to_permutations(nx.MultiDiGraph([(0, 1)])), InvalidArgument, "not regular"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_predicates_can_be_false():
    graph = bounds.from_permutations([(1, 0)])
    graph.add_edge(0, 0, relation=0)
    assert not bounds.is_regular(graph)
    assert not bounds.is_properly_coloured(graph)
    assert not bounds.is_connected(bounds.from_permutations([(0, 1)]))


@pytest.mark.parametrize("kind", ["simple", "involution"])
def test_pictures(tmp_path, kind):
    graph = bounds.random_graph(kind, entities=12, relations=3, seed=2)
    file = bounds.draw(graph, tmp_path / "graph.svg", title="a graph")
    text = file.read_text()
    # One colour a relation, and every edge that is no loop an arrow of its colour or half of a line.
    for colour in ("#0072b2", "#d55e00", "#009e73"):
        assert text.lower().count(colour) > 4
    with pytest.raises(InvalidArgument, match="at most 8"):
        bounds.draw(bounds.random_graph("permutation", entities=3, relations=9), tmp_path / "no.png")
