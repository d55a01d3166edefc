"""Training against its rivals, in one run: seeds as one batch against one after another, tiles against whole logits."""

import time
from statistics import median

import pytest
import torch
from torch.nn import functional

from paper_checks.learning import Setting, train
from paper_checks.learning.stack import cross_entropy


def timed(work, rounds=3):
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return median(seconds)


def report(benchmark, rival, rival_seconds):
    ratio = rival_seconds / benchmark.stats.stats.median
    benchmark.extra_info.update(rival=rival, rival_seconds=round(rival_seconds, 4), ratio=round(ratio, 2))
    print(f"\n{benchmark.name}: {benchmark.stats.stats.median:.4f} s, {benchmark.extra_info}")
    return ratio


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_seeds_in_one_batch_against_one_after_another(benchmark, device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    setting = Setting(256, 4, 16, steps=100, stop=False, learning_rate=1e-2)
    train(setting.but(steps=5), range(8), device=device)
    benchmark.pedantic(lambda: train(setting, range(8), device=device), rounds=3)
    alone = timed(lambda: [train(setting, [seed], device=device) for seed in range(8)])
    assert report(benchmark, "one after another", alone) > 1.5


def test_tiles_against_whole_logits(benchmark):
    """The loss and its gradients at N = 1024, 2048 facts, 3 seeds."""
    generator = torch.Generator().manual_seed(0)
    states, unembedding, bias = (
        torch.randn(shape, generator=generator).requires_grad_() for shape in ((3, 2048, 16), (3, 16, 1024), (3, 1024))
    )
    answers = torch.randint(1024, (3, 2048), generator=generator)

    def whole():
        logits = torch.baddbmm(bias[:, None], states, unembedding)
        functional.cross_entropy(logits.flatten(0, 1), answers.flatten()).backward()

    def tiled():
        cross_entropy(states, unembedding, bias, answers).mean().backward()

    whole()
    benchmark(tiled)
    assert report(benchmark, "torch.nn.functional.cross_entropy", timed(whole, 10)) > 1
