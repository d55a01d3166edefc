"""Threshold searches: the smallest d, files that survive kills, parallel as one after the other, fits that can tell."""

import json

import pytest

from geotheory.errors import InvalidArgument, NotAModel
from paper_checks.learning import Setting
from paper_checks.learning import thresholds as module
from paper_checks.learning.thresholds import Runs, fit_growth, sweep, threshold

TINY = Setting(entities=8, relations=2, d=2, learning_rate=2e-2, steps=200, evaluate_every=20)


@pytest.fixture
def instant(monkeypatch):
    """Runs that learn everything from a dimension on, and count how often they are asked for."""
    asked = []

    def trained(setting, seeds, device):
        asked.append(setting.d)
        needed = 7 if setting.frozen == "none" else 23
        return [
            {"setting": setting.to_dict(), "seed": seed, "accuracy": 1.0 if setting.d >= needed + seed else 0.995}
            for seed in seeds
        ]

    monkeypatch.setattr(module, "_train", trained)
    return asked


@pytest.mark.parametrize("start", [1, 2, 7, 8, 9, 100, None])
def test_bisection_finds_the_smallest(instant, start):
    found = threshold(TINY, 1.0, seeds=[0, 1, 2], start=start)
    assert found.d == 8  # where the median seed learns
    assert found.each == (7, 8, 9)[:1] + found.each[1:] or found.each[1] == 8
    assert len(instant) <= 12
    assert threshold(TINY, 0.99, seeds=[0, 1, 2], start=start).d == 1


def test_a_search_that_is_repeated_tries_no_more_dimensions(instant):
    # As in a parallel sweep: from the start again after each run, from what is known by then.
    runs, start = Runs(), TINY.but(frozen="subjects", d=1)
    whole = threshold(start, 1.0, seeds=[0], start=1)
    tried = list(instant)
    instant.clear()
    search = module._Search(start, (1.0,), (0,), runs)
    while True:
        found, needed = search.next()
        if needed is None:
            break
        runs.add(module._train(needed, [0], "cpu"))
    assert found == [whole]
    assert instant == tried
    assert len(tried) < 14


def test_gives_up_on_what_no_dimension_reaches(monkeypatch):
    def never(setting, seeds, device):
        return [{"setting": setting.to_dict(), "seed": seed, "accuracy": 0.5} for seed in seeds]

    monkeypatch.setattr(module, "_train", never)
    with pytest.raises(InvalidArgument, match="no dimension up to"):
        threshold(TINY)


def test_width_rules(instant):
    assert threshold(TINY, 1.0, seeds=[0]).setting.neurons == 28
    assert threshold(TINY.but(width=5), 1.0, seeds=[0]).setting.neurons == 5
    assert threshold(TINY, 1.0, seeds=[0], width=lambda d: d + 1).setting.neurons == 8


def test_runs_are_kept_and_not_repeated(instant, tmp_path):
    path = tmp_path / "runs.jsonl"
    first = threshold(TINY, 1.0, seeds=[0, 1], runs=Runs(path))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 2 * len(instant)
    before = len(instant)
    assert threshold(TINY, 1.0, seeds=[0, 1], runs=Runs(path)) == first
    assert len(instant) == before
    # A kill in the middle of a line costs that run alone.
    path.write_bytes(path.read_bytes()[:-10])
    assert len(Runs(path)) == len(rows) - 1
    assert threshold(TINY, 1.0, seeds=[0, 1], runs=Runs(path)) == first
    assert len(instant) == before + 1
    assert len(Runs(path)) == len(rows)


def test_a_full_disk_leaves_whole_lines(instant, tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    threshold(TINY, 1.0, seeds=[0], runs=Runs(path))
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        threshold(TINY, 1.0, seeds=[1], runs=Runs(path))
    assert path.read_bytes() == before


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing\n")
    with pytest.raises(NotAModel, match="line 1"):
        Runs(path)
    assert path.read_text() == "nothing\n"


def test_parallel_finds_what_one_process_finds(tmp_path):
    settings = [TINY, TINY.but(frozen="subjects")]
    alone = list(sweep(settings, seeds=[0, 1], processes=1))
    path = tmp_path / "runs.jsonl"
    seen = []

    def note(_, rows):
        seen.append(len(rows))

    together = list(sweep(settings, seeds=[0, 1], processes=2, path=path, progress=note))
    assert {t.setting.frozen: t.d for t in together if t.share == 1} == {
        t.setting.frozen: t.d for t in alone if t.share == 1
    }
    assert len(together) == 4
    assert len(Runs(path)) == sum(seen)
    # All of it is in the file now.
    seen.clear()
    assert list(map(repr, sweep(settings, seeds=[0, 1], processes=2, path=path, progress=note))) == sorted(
        map(repr, together), key=lambda text: ("frozen='subjects'" in text, "share=1.0" in text)
    )
    assert not seen


def test_least_dimension_is_by_counting_bits(instant):
    found = threshold(TINY.but(entities=4096, relations=16), 1.0, seeds=[0])
    parameters = module._trained_parameters(found.setting.but(d=found.least, width=4 * found.least))
    assert 32 * parameters >= found.fact_bits or found.least == found.d
    below = module._trained_parameters(found.setting.but(d=found.least - 1, width=4 * found.least - 4))
    assert 32 * below < found.fact_bits
    assert found.construction == 196
    assert found.bits_per_parameter == found.fact_bits / found.parameters
    assert found.to_dict()["d"] == 7


def test_fits_tell_logarithms_from_powers():
    sizes = [(N, R) for N in (64, 256, 1024, 4096) for R in (2, 4, 8)]
    logarithmic = fit_growth([(N, R, 0.3 * R * (N.bit_length() - 1)) for N, R in sizes])
    assert logarithmic.logarithmic == pytest.approx(0.3)
    assert logarithmic.logarithmic_error == pytest.approx(0, abs=1e-12)
    assert logarithmic.power_error > 0.01
    power = fit_growth([(N, R, 2 * N**0.5 * R**0.25) for N, R in sizes])
    assert (power.exponent_entities, power.exponent_relations) == (pytest.approx(0.5), pytest.approx(0.25))
    assert power.logarithmic_error > 0.3
    assert "N^0.500" in str(power)
    with pytest.raises(InvalidArgument, match="two R"):
        fit_growth([(64, 2, 3), (256, 2, 4), (1024, 2, 5)])


@pytest.mark.parametrize("share", [0, -1, 1.5])
def test_bad_shares(share):
    with pytest.raises(InvalidArgument, match="share"):
        threshold(TINY, share)
