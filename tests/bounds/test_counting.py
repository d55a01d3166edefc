"""Counts against listing, against networkx, and against the values that are known."""

from itertools import product
from math import factorial

import networkx as nx
import pytest
from sympy.utilities.iterables import partitions

import bounds
from bounds import counting
from bounds.kinds import KINDS
from geotheory.errors import InvalidArgument, TooLarge, UnknownName


def sequence(kind, relations, most, **options):
    return [bounds.count(kind, entities=n, relations=relations, **options) for n in range(1, most + 1)]


@pytest.mark.parametrize(
    ("kind", "relations", "options", "values"),
    [
        ("derangement", 1, {}, [0, 1, 2, 9, 44, 265]),
        ("involution", 1, {}, [1, 2, 4, 10, 26, 76, 232, 764]),
        ("matching", 1, {}, [0, 1, 0, 3, 0, 15]),
        ("simple", 2, {}, [0, 0, 2, 24, 552]),
        ("simple", 3, {}, [0, 0, 0, 24, 1344]),
        ("permutation", 2, {"labelled": False}, [1, 4, 11, 43, 161, 901, 5579, 43206]),
        ("permutation", 3, {"labelled": False}, [1, 8, 49, 681, 14721, 524137]),
        ("permutation", 2, {"labelled": False, "connected": True}, [1, 3, 7, 26, 97, 624, 4163, 34470]),
        ("permutation", 3, {"labelled": False, "connected": True}, [1, 7, 41, 604, 13753]),
    ],
)
def test_known_values(kind, relations, options, values):
    assert sequence(kind, relations, len(values), **options) == values


def test_known_values_of_proper_edge_colourings():
    assert [bounds.count("simple_matching", entities=4, relations=R) for R in (1, 2, 3)] == [3, 6, 6]
    assert [bounds.count("simple_matching", entities=6, relations=R) for R in range(1, 6)] == [15, 120, 480, 720, 720]


def test_subgroups_of_the_free_group():
    connected = sequence("permutation", 2, 7, connected=True)
    assert [t // factorial(n) for n, t in enumerate(connected)] == [1, 3, 13, 71, 461, 3447, 29093]


def classes_by_networkx(kind, N, R):
    """Isomorphism classes with colours kept, told apart by networkx and not by our canonical form."""
    buckets = {}
    match = nx.isomorphism.categorical_multiedge_match("relation", None)
    for graph in bounds.graphs(kind, entities=N, relations=R):
        # Any invariant will do to make the buckets smaller.
        key = tuple(sorted(map(len, nx.weakly_connected_components(graph))))
        others = buckets.setdefault(key, [])
        if not any(nx.is_isomorphic(graph, other, edge_match=match) for other in others):
            others.append(graph)
    return [graph for others in buckets.values() for graph in others]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("N", "R"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2)])
def test_listing_agrees(kind, N, R):
    every = list(bounds.graphs(kind, entities=N, relations=R))
    assert len(every) == bounds.count(kind, entities=N, relations=R)
    assert len({tuple(sorted(g.edges(data="relation"))) for g in every}) == len(every)
    connected = [g for g in every if nx.is_weakly_connected(g)]
    assert len(connected) == bounds.count(kind, entities=N, relations=R, connected=True)
    classes = classes_by_networkx(kind, N, R)
    assert len(classes) == bounds.count(kind, entities=N, relations=R, labelled=False)
    assert len(classes) == sum(1 for _ in bounds.graphs(kind, entities=N, relations=R, up_to_isomorphism=True))
    hang_together = sum(nx.is_weakly_connected(g) for g in classes)
    assert hang_together == bounds.count(kind, entities=N, relations=R, labelled=False, connected=True)


@pytest.mark.parametrize(("N", "R"), [(9, 1), (9, 2), (12, 3), (20, 4)])
def test_burnside_over_partitions(N, R):
    total = 0
    for parts in partitions(N):
        z = 1
        for length, times in parts.items():
            z *= length**times * factorial(times)
        total += z ** (R - 1)
    assert bounds.count("permutation", entities=N, relations=R, labelled=False) == total


@pytest.mark.parametrize("kind", ["derangement", "involution", "matching"])
def test_burnside_over_all_permutations(kind):
    from itertools import permutations

    from bounds.colours import listed

    for N, R in ((4, 1), (4, 2), (5, 2), (6, 1)):
        colours = list(listed(KINDS[kind], N))
        fixed = 0
        for pi in permutations(range(N)):
            commuting = sum(all(c[pi[x]] == pi[c[x]] for x in range(N)) for c in colours)
            fixed += commuting**R
        assert bounds.count(kind, entities=N, relations=R, labelled=False) == fixed // factorial(N)


def test_latin_squares():
    # With R = N - 1 colours a simple graph is a Latin square with its first row in order; and one-factorizations, ordered.
    latin = {2: 2, 3: 12, 4: 576, 5: 161280, 6: 812851200}
    for N, squares in latin.items():
        assert bounds.count("simple", entities=N, relations=N - 1) == squares // factorial(N)
    # The complete graph on six entities has 6 one-factorizations, and colours come in 5! orders.
    assert bounds.count("simple_matching", entities=6, relations=5) == 6 * factorial(5)


def test_none_are_zero_not_an_error():
    assert bounds.count("simple", entities=3, relations=3) == 0
    assert bounds.count("matching", entities=7, relations=2) == 0
    assert bounds.count("simple_matching", entities=5, relations=2) == 0


def test_beyond_reach(monkeypatch):
    monkeypatch.setattr(counting, "MOST_STATES", 50)
    with pytest.raises(TooLarge, match="more than 50 states"):
        bounds.count("simple", entities=25, relations=3)


def test_bad_input():
    with pytest.raises(UnknownName, match="did you mean permutation"):
        bounds.count("permutations", entities=3, relations=1)
    for arguments in ({"entities": 0, "relations": 1}, {"entities": 1, "relations": 0}):
        with pytest.raises(InvalidArgument):
            bounds.count("simple", **arguments)
    assert bounds.count("simple matching", entities=4, relations=2) == bounds.count(
        "simple-matching", entities=4, relations=2
    )


def test_a_power_where_colours_are_independent():
    for kind, R in product(("permutation", "derangement", "involution", "matching"), (1, 2, 5)):
        one = bounds.count(kind, entities=8, relations=1)
        assert bounds.count(kind, entities=8, relations=R) == one**R
