"""Counting and telling graphs apart against the obvious rival, in one run: `make bench`."""

import time
from math import factorial

import networkx as nx
from sympy.utilities.iterables import partitions

import bounds


def timed(work):
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def report(benchmark, rival, rival_seconds):
    ratio = rival_seconds / benchmark.stats.stats.median
    benchmark.extra_info.update(rival=rival, rival_seconds=round(rival_seconds, 3), ratio=round(ratio, 1))
    print(f"\n{benchmark.name}: {benchmark.stats.stats.median:.4f} s, {benchmark.extra_info}")
    return ratio


def test_minimum_at_a_million_millions(benchmark):
    rows = benchmark(bounds.minimum, 10**12, 16, 3)
    assert all(row.ratio is None or row.ratio >= 1 for row in rows)
    print(f"\n{benchmark.name}: {benchmark.stats.stats.median:.4f} s")


def test_unlabelled_count_against_listing_partitions(benchmark):
    def by_partitions():
        total = 0
        for parts in partitions(60):
            z = 1
            for length, times in parts.items():
                z *= length**times * factorial(times)
            total += z**3
        return total

    options = {"entities": 60, "relations": 4, "labelled": False}
    found = benchmark.pedantic(bounds.count, args=("permutation",), kwargs=options, rounds=5)
    expected, seconds = timed(by_partitions)
    assert found == expected
    assert report(benchmark, "sum over sympy partitions", seconds) > 20


def test_canonical_form_against_networkx(benchmark):
    """Telling apart all connected permutation graphs of 5 entities and 2 colours, 97 classes of 11,064 graphs."""
    worlds = [
        bounds.to_permutations(g)
        for g in bounds.graphs("permutation", entities=5, relations=2)
        if bounds.is_connected(g)
    ]
    match = nx.isomorphism.categorical_multiedge_match("relation", None)

    def by_networkx(some):
        kept = []
        for graph in map(bounds.from_permutations, some):
            if not any(nx.is_isomorphic(graph, other, edge_match=match) for other in kept):
                kept.append(graph)
        return len(kept)

    classes = benchmark.pedantic(lambda: len({bounds.canonical_form(w) for w in worlds}), rounds=3)
    assert classes == bounds.count("permutation", entities=5, relations=2, connected=True, labelled=False) == 97
    # The rival does a part of the worlds, which favours it: it compares with fewer classes.
    part = worlds[:: max(1, len(worlds) // 300)]
    _, seconds = timed(lambda: by_networkx(part))
    assert report(benchmark, "networkx.is_isomorphic", seconds * len(worlds) / len(part)) > 10
