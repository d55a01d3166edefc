"""Exhaustive verification against the dense forward pass of the same weights, in one run: `make bench`.

Every test prints its figures and keeps them in pytest-benchmark's `extra_info`: queries a second of both, and their ratio.
"""

import resource
import time

import pytest
import torch

import constructions
from geotheory import FactTable, verify
from geotheory.evaluation import Evaluator

SLICE = 768


def dense_rate(built):
    """Queries a second of the dense forward pass, on a slice of random queries."""
    facts, evaluator = built.facts, Evaluator(built.transformer, dense=True)
    generator = torch.Generator().manual_seed(0)
    subjects = torch.randint(facts.num_subjects, (SLICE,), generator=generator)
    words = torch.randint(facts.num_relations, (SLICE, built.hops), generator=generator)
    built.decoding.recall(evaluator, subjects[:64], words[:64])
    started = time.perf_counter()
    built.decoding.recall(evaluator, subjects, words)
    return SLICE / (time.perf_counter() - started)


def report(benchmark, built, found, least_ratio=0.0):
    rate = found.queries / benchmark.stats.stats.median
    rival = dense_rate(built)
    benchmark.extra_info.update(
        queries=found.queries,
        queries_per_second=round(rate),
        dense_queries_per_second=round(rival),
        ratio=round(rate / rival, 1),
        peak_gigabytes=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    )
    print(f"\n{built!r}: {benchmark.extra_info}")
    assert found.holds
    assert rate >= least_ratio * rival


@pytest.fixture(scope="module")
def facts():
    return FactTable.random_bijections(entities=4096, relations=16)


def test_direct_exhaustively(benchmark, facts):
    built = constructions.direct(facts, 2)
    found = benchmark.pedantic(verify, args=(built,), rounds=3, warmup_rounds=1)
    assert found.queries == 1_048_576
    report(benchmark, built, found, least_ratio=20)
    assert benchmark.extra_info["peak_gigabytes"] < 3


def test_chain_of_thought_on_a_million_queries(benchmark, facts):
    built = constructions.chain_of_thought(facts, 4)
    found = benchmark.pedantic(verify, args=(built,), kwargs={"sample": 10**6}, rounds=3)
    report(benchmark, built, found)


@pytest.mark.parametrize(("relations", "hops"), [(4, 2), (8, 2), (16, 2), (4, 3), (4, 4)])
def test_time_per_query_as_words_become_more(benchmark, relations, hops):
    """N and so the block size stay the same while R^k grows from 16 to 256."""
    built = constructions.direct(FactTable.random_bijections(entities=4096, relations=relations), hops)
    found = benchmark.pedantic(verify, args=(built,), rounds=3, warmup_rounds=1)
    report(benchmark, built, found)


def test_key_value_and_meet_in_middle(benchmark):
    facts = FactTable.random_bijections(entities=1024, relations=8)
    models = [constructions.key_value(facts, 2), constructions.meet_in_middle(facts, 3)]
    found = benchmark.pedantic(lambda: [verify(model) for model in models], rounds=2)
    for model, result in zip(models, found):
        print(f"\n{model!r}: {result.queries / result.seconds:,.0f} queries/s, dense {dense_rate(model):,.0f}")
        assert result.holds


@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device here: the same benchmark runs on the CPU above"
)
def test_direct_exhaustively_on_cuda(benchmark, facts):
    built = constructions.direct(facts, 2, device="cuda")
    found = benchmark.pedantic(verify, args=(built,), rounds=3, warmup_rounds=1)
    report(benchmark, built, found, least_ratio=20)
