"""Checks by experiment: what gradient descent finds, at sizes that take seconds, or hours with `--full`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from geotheory.errors import GeotheoryError
from geotheory.facts import FactTable
from paper_checks.learning.interventions import Selector, selector
from paper_checks.learning.readouts import fit_superposition
from paper_checks.learning.setting import Setting
from paper_checks.learning.stack import Stack
from paper_checks.learning.study import Anatomy, Study, study
from paper_checks.learning.thresholds import Fit, Runs, Threshold, fit_growth, sweep
from paper_checks.scope import NotRun, Scope

__all__ = [
    "freeze_and_swap",
    "frozen_threshold",
    "interventions",
    "measure_study",
    "measure_thresholds",
    "pretrained_models",
    "readouts",
    "same_structure",
    "trained_threshold",
]

Found = tuple[dict[str, Any], str]


# Thresholds


@dataclass(frozen=True)
class Thresholds:
    """What a sweep found, and accuracies of every run: `(N, R, frozen, d, seed, accuracy)`."""

    found: tuple[Threshold, ...]
    runs: tuple[tuple[int, int, str, int, int, float], ...]
    seeds: int
    steps: int

    def of(self, frozen: str) -> list[Threshold]:
        """The thresholds of one regime."""
        return [t for t in self.found if t.setting.frozen == frozen]

    def fit(self, frozen: str) -> Fit:
        """How they grow."""
        return fit_growth([(t.setting.entities, t.setting.relations, t.d) for t in self.of(frozen)])

    def figures(self, frozen: str) -> dict[str, Any]:
        """What the report keeps."""
        return {
            "thresholds": [t.to_dict() for t in self.of(frozen)],
            "fit": self.fit(frozen).to_dict(),
            "runs": [list(run) for run in self.runs if run[2] == frozen],
            "steps at most": self.steps,
        }


def measure_thresholds(scope: Scope) -> Thresholds:
    """Trained and frozen, for every N and R; with `--full` the runs are kept in a file and none is made twice."""
    if scope.full:
        return thresholds((64, 256, 1024, 4096), (2, 4, 8, 16), range(3), 1500, scope)
    return thresholds((16, 64, 256), (2, 4), range(2), 800, scope)


def thresholds(
    entities: Sequence[int], relations: Sequence[int], seeds: Sequence[int], steps: int, scope: Scope
) -> Thresholds:
    """The sweep behind L1 and L2 at any sizes."""
    settings = [
        Setting(
            N, R, _start(N, R, frozen), frozen=frozen, steps=steps, batch=2048, learning_rate=1e-2, evaluate_every=50
        )
        for N in entities
        for R in relations
        for frozen in ("none", "subjects")
    ]
    path = scope.directory / "thresholds.jsonl" if scope.full and scope.directory is not None else None
    rows: list[dict[str, Any]] = []
    found = tuple(
        sweep(
            settings,
            (0.99,),
            seeds=seeds,
            path=path,
            processes=None if scope.full else 1,
            device=scope.device,
            progress=lambda _, more: rows.extend(more),
        )
    )
    if path is not None:
        rows = list(Runs(path))
    runs = sorted(
        (s["entities"], s["relations"], s["frozen"], s["d"], row["seed"], row["accuracy"])
        for row in rows
        for s in [row["setting"]]
    )
    return Thresholds(tuple(sorted(found, key=_shape)), tuple(runs), len(seeds), steps)


def _shape(t: Threshold) -> tuple[int, int, str]:
    return t.setting.entities, t.setting.relations, t.setting.frozen


def _start(N: int, R: int, frozen: str) -> int:
    """Where a search begins: about where earlier ones ended."""
    if frozen == "none":
        return max(2, round(R * (N - 1).bit_length() / 6))
    return max(3, int(1.2 * math.pow(N, 0.4) * math.pow(R, 0.35)))


def trained_threshold(measured: Thresholds) -> Found:
    """L1: an exponent of N that a logarithm has too, and an exponent of R near 1."""
    fit = measured.fit("none")
    figures = measured.figures("none")
    # From N = 16 to 256 a logarithm grows as N^0.25, from 64 to 4096 as N^0.17.
    if fit.exponent_entities > 0.35:
        return figures, f"the threshold of trained embeddings grows as N^{fit.exponent_entities:.2f}"
    if not 0.4 < fit.exponent_relations < 1.6:
        return figures, f"the threshold of trained embeddings grows as R^{fit.exponent_relations:.2f}, not as R"
    return figures, ""


def frozen_threshold(measured: Thresholds) -> Found:
    """L2: a larger exponent of N than trained."""
    frozen, trained = measured.fit("subjects"), measured.fit("none")
    figures = measured.figures("subjects") | {"exponent of N, trained": trained.exponent_entities}
    if frozen.exponent_entities <= trained.exponent_entities:
        return figures, (
            f"frozen thresholds grow as N^{frozen.exponent_entities:.2f}, trained as N^{trained.exponent_entities:.2f}"
        )
    return figures, ""


# One configuration from all sides


@dataclass(frozen=True, eq=False)
class Sides:
    """A study, and what decoders do to components: trained ones, untrained ones beside the same rows, and the construction's."""

    study: Study
    trained: tuple[Selector, ...]
    untrained: tuple[Selector, ...]
    construction: Selector

    @property
    def setting(self) -> dict[str, Any]:
        """What every figure says of itself."""
        s = self.study.setting
        return {
            "N": s.entities,
            "R": s.relations,
            "d": s.d,
            "width": s.neurons,
            "steps": s.steps,
            "seeds": [run.seed for run in self.study.trained],
            "accuracy": [run.accuracy for run in self.study.trained],
            "accuracy, frozen": [run.accuracy for run in self.study.frozen],
        }

    def pair(self, figure: Any) -> dict[str, list[float]]:
        """A figure of every seed, trained and frozen."""
        return {
            "trained": [figure(a) for a in self.study.found],
            "frozen": [figure(a) for a in self.study.control],
        }


def measure_study(scope: Scope) -> Sides:
    """Rows that start small beside a large unembedding, no decay: what transfers best (see the results' README)."""
    N, d, steps = (4096, 256, 6000) if scope.full else (128, 48, 1000)
    setting = Setting(
        N,
        2,
        d,
        subject_scale=0.01,
        unembedding_scale=4.0,
        steps=steps,
        batch=512,
        learning_rate=3e-3 if not scope.full else 1e-3,
        evaluate_every=steps // 4,
        stop=False,
    )
    return sides(setting, (0, 1), scope)


def sides(setting: Setting, seeds: Sequence[int], scope: Scope) -> Sides:
    """The study behind L3 to L6 of any setting."""
    import constructions

    found = study(setting, seeds, device=scope.device)
    fresh = Stack.initialized(setting, seeds, scope.device)
    exact = constructions.single_hop(FactTable.random_bijections(setting.entities, setting.relations, seed=0))
    return Sides(
        found,
        tuple(selector(run.transformer, run.facts, a.superposition) for run, a in zip(found.trained, found.found)),
        # The trained rows' maps behind a decoder that has learned nothing.
        tuple(
            selector(fresh.model(i), run.facts, a.superposition)
            for i, (run, a) in enumerate(zip(found.trained, found.found))
        ),
        selector(exact.transformer, exact.facts, fit_superposition(exact.transformer, exact.facts)),
    )


def _mean(values: Any) -> float:
    return float(torch.tensor(list(values), dtype=torch.float64).mean())


def readouts(of: Sides) -> Found:
    """L3: held-out R^2 far above both controls, and attributes that can be read."""
    r2 = of.pair(lambda a: a.superposition.r2)
    figures: dict[str, Any] = {
        "setting": of.setting,
        "superposition R2": r2,
        "superposition R2, facts shuffled": [a.shuffled_r2 for a in of.study.found],
        "attributes read": of.pair(lambda a: _mean(a.readout.accuracy)),
        "readout R2": of.pair(lambda a: _mean(a.readout.r2)),
    }
    control = max([0.0, *r2["frozen"], *(a.shuffled_r2 for a in of.study.found)])
    worst = min(r2["trained"])
    return figures, "" if worst > control + 0.25 else f"held-out R^2 is {worst:.2f}, and {control:.2f} in a control"


def interventions(of: Sides) -> Found:
    """L4: every intervention well above its control."""
    names = ("relation_swapped", "gates_swapped", "component_replaced", "component_removed")
    figures: dict[str, Any] = {"setting": of.setting}
    failures = []
    for name in names:
        pairs = [getattr(a.interventions, name) for a in of.study.found]
        figures[name.replace("_", " ")] = [list(pair) for pair in pairs]
        if min(measured - control for measured, control in pairs) < 0.3:
            failures.append(f"{name.replace('_', ' ')}: {pairs}, measured and control")
    figures["others kept"] = [list(a.interventions.others_kept) for a in of.study.found]
    matrices = torch.stack([a.interventions.selectivity for a in of.study.found]).mean(0)
    figures["selectivity"] = matrices.tolist()
    figures["selective"] = [a.interventions.selective for a in of.study.found]
    if min(figures["selective"]) < 0.3:
        failures.append(f"neurons shut: {figures['selective']} more is lost of their relation than of others")
    return figures, "; ".join(failures)


def freeze_and_swap(of: Sides) -> Found:
    """L5: zero-shot far above chance, and above frozen embeddings, which transfer too where the unembedding is trained."""
    zero = of.pair(lambda a: a.transfer.mean)
    chance = 1 / of.study.setting.entities

    def own(a: Anatomy) -> float:
        return a.transfer.own

    figures = {"setting": of.setting, "zero-shot": zero, "own facts": of.pair(own), "chance": chance}
    worst, control = min(zero["trained"]), max(zero["frozen"])
    fails = worst < max(0.5, control + 0.05)
    return figures, f"zero-shot {worst:.2f}, chance {chance:.3f}, frozen {control:.2f}" if fails else ""


def same_structure(of: Sides) -> Found:
    """L6: to first order the decoder is a linear map for each relation that reads its own component, the others less."""
    figures = {
        "setting": of.setting,
        "selects": {
            "trained": [s.selects for s in of.trained],
            "untrained": [s.selects for s in of.untrained],
            "construction": of.construction.selects,
        },
        "leaks": {
            "trained": [s.leaks for s in of.trained],
            "untrained": [s.leaks for s in of.untrained],
            "construction": of.construction.leaks,
        },
    }
    less = min(before.leaks - after.leaks for before, after in zip(of.untrained, of.trained))
    fails = min(s.selects for s in of.trained) < 0.9 or less < 0.05
    return figures, f"{figures['selects']}, {figures['leaks']}" if fails else ""


# Pretrained models


def pretrained_models(scope: Scope) -> Found:
    """P1: probe the model that is given, or MiniLM where its package is installed; nothing is downloaded."""
    from paper_checks.language_models.probe import probe
    from paper_checks.language_models.relations import read_relations
    from paper_checks.language_models.states import LanguageModel

    try:
        model = LanguageModel.load(scope.model, device=scope.device)
    except GeotheoryError as missing:
        raise NotRun(f"no model to probe: {missing}") from missing
    untrained = LanguageModel.load(scope.model, device=scope.device, random=0)
    figures: dict[str, Any] = {"model": scope.model, "sets": {}}
    above, gains = 0, []
    for name in ("countries", "elements", "states") if scope.full else ("countries",):
        relations = read_relations(name)
        # Quick: before the first layer, in the middle, and after the last.
        layers = None if scope.full else sorted({0, model.layers // 2, model.layers})
        found = probe(model, relations, layers=layers, untrained=untrained)
        above += sum(reading.above for reading in found.best())
        gains.append(max(found.superposition[i] - found.superposition_shuffled[i] for i in found.superposition))
        figures["sets"][name] = found.to_dict()
    figures["relations above every control"], figures["superposition R2 above shuffled"] = above, gains
    fails = above < 2 or max(gains) < 0.05
    return figures, f"{above} relations are read above every control, superposition R^2 gains {gains}" if fails else ""
