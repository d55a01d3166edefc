"""Linear read-outs of attributes from hidden states, by relation and layer, beside controls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geotheory.errors import InvalidArgument
from paper_checks.language_models.decoder import BETA, affine_decoder
from paper_checks.language_models.relations import Relation
from paper_checks.language_models.states import LanguageModel
from paper_checks.learning.readouts import ridge_cv

__all__ = ["Probe", "Reading", "best_readings", "probe"]

FOLDS = 5
RIDGES = tuple(10.0**e for e in range(-3, 3))
BOOTSTRAPS = 2000
# Subjects from which the affine decoder is taken.
EXAMPLES = 5


@dataclass(frozen=True)
class Reading:
    """How well one relation is read from one layer, over subjects that were held out (means over the templates).

    Attributes
    ----------
    relation, layer
        Layer 0 is before the first.
    top1, top5
        Shares of subjects whose attribute is the nearest, or among the five nearest, of the relation's attributes.
    low, high
        95% bootstrap interval of `top1` over subjects.
    cosine
        Mean cosine between what is read and the attribute's vector, both less the attributes' mean.
    shuffled
        `top1` with attributes dealt to other subjects: the control.
    untrained
        `top1` of a model of the same shape with random weights; None if it was not asked for.
    affine
        `top1` of the affine decoder of Hernandez et al. on subjects that it was not taken from; None for encoders.
    frequent
        Share of the most frequent attribute: what guessing reaches.
    subjects, candidates
        How many.
    """

    relation: str
    layer: int
    top1: float
    top5: float
    low: float
    high: float
    cosine: float
    shuffled: float
    untrained: float | None
    affine: float | None
    frequent: float
    subjects: int
    candidates: int

    @property
    def control(self) -> float:
        """The best of the controls: shuffled attributes, the most frequent one, the untrained model."""
        return max(self.shuffled, self.frequent, self.untrained or 0.0)

    @property
    def above(self) -> bool:
        """Whether the interval lies above every control."""
        return self.low > self.control

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return vars(self) | {"above": self.above}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Reading":
        """Inverse of :meth:`to_dict`."""
        return cls(**{name: value for name, value in fields.items() if name != "above"})


def best_readings(readings: Iterable[Reading]) -> list[Reading]:
    """For each relation the layer that is read best; chosen among all layers, so that its `top1` is a little too good."""
    found: dict[str, Reading] = {}
    for reading in readings:
        if reading.relation not in found or reading.top1 > found[reading.relation].top1:
            found[reading.relation] = reading
    return list(found.values())


@dataclass(frozen=True)
class Probe:
    """Every reading, and for each layer the share of variance that the superposition of all relations explains.

    Attributes
    ----------
    model
        Its name.
    readings
        One for each relation and layer.
    superposition
        Layer -> held-out `R^2` of `sum_r A_r v(g_r(x))`, over the subjects that have every relation; empty if these are too few.
    superposition_shuffled
        The same with attributes dealt to other subjects.
    """

    model: str
    readings: tuple[Reading, ...]
    superposition: dict[int, float]
    superposition_shuffled: dict[int, float]

    def best(self) -> list[Reading]:
        """:func:`best_readings` of all."""
        return best_readings(self.readings)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {
            "model": self.model,
            "readings": [reading.to_dict() for reading in self.readings],
            "superposition": self.superposition,
            "superposition, shuffled": self.superposition_shuffled,
        }

    def __str__(self) -> str:
        lines = [
            f"{'relation':20}{'layer':>6}{'top 1':>8}{'95% interval':>16}{'top 5':>8}{'shuffled':>10}{'untrained':>11}{'affine':>8}"
            f"{'frequent':>10}"
        ]
        for r in self.best():
            lines.append(
                f"{r.relation:20}{r.layer:6}{r.top1:8.2f}{f'{r.low:.2f} to {r.high:.2f}':>16}{r.top5:8.2f}{r.shuffled:10.2f}"
                f"{_shown(r.untrained):>11}{_shown(r.affine):>8}{r.frequent:10.2f}{'' if r.above else '   not above controls'}"
            )
        if self.superposition:
            layer = max(self.superposition, key=self.superposition.__getitem__)
            lines.append(
                f"superposition: held-out R^2 {self.superposition[layer]:.2f} at layer {layer}, "
                f"{self.superposition_shuffled[layer]:.2f} with attributes shuffled"
            )
        return "\n".join(lines)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def probe(
    model: LanguageModel,
    relations: Sequence[Relation],
    *,
    layers: Sequence[int] | None = None,
    untrained: LanguageModel | None = None,
    affine: bool = False,
    cache: str | None = None,
    batch: int = 64,
    seed: int = 0,
    progress: Callable[[str, int], object] | None = None,
) -> Probe:
    """Read every relation from the states of every layer, by ridge regression and five-fold cross-validation over subjects.

    Parameters
    ----------
    model
        What is probed.
    relations
        What is read.
    layers
        Which layers, from 0 (before the first) on; None: all.
    untrained
        The control with random weights.
    affine
        Also take the affine decoder (causal models; a backward pass for each coordinate of a state).
    cache
        Folder for states.
    batch
        Prompts of one forward pass.
    seed
        Of folds, shuffles and the bootstrap.
    progress
        Called with the relation and the number of prompts as they are done.

    Raises
    ------
    InvalidArgument
        The model has no such layer.
    """
    chosen = list(range(model.layers + 1)) if layers is None else list(layers)
    for layer in chosen:
        if not 0 <= layer <= model.layers:
            raise InvalidArgument(f"layer {layer}: {model.name!r} has layers 0 to {model.layers}")
    readings = []
    pooled: dict[str, dict[str, Tensor]] = {}
    for relation in relations:
        candidates = sorted(set(relation.facts.values()))
        answers = torch.tensor([candidates.index(a) for a in relation.facts.values()])
        vectors = model.attribute_vectors(candidates)
        told = None if progress is None else (lambda n, name=relation.name: progress(name, n))

        def states(of: LanguageModel, relation: Relation = relation, told: Any = told) -> list[Tensor]:
            return [
                of.states(relation.prompts(t), cache=cache, batch=batch, progress=told).double()
                for t in relation.templates
            ]

        mine = states(model)
        # The control's states and its own attribute vectors.
        other = None if untrained is None else (states(untrained), untrained.attribute_vectors(candidates))
        pooled[relation.name] = dict(zip(relation.subjects, torch.stack(mine).mean(0)))
        for layer in chosen:
            readings.append(
                _read(relation, layer, [s[:, layer] for s in mine], vectors, answers, len(candidates), seed)
                | {
                    "untrained": _top1([s[:, layer] for s in other[0]], other[1], answers, seed) if other else None,
                    "affine": _affine(model, relation, layer, mine, vectors, answers)
                    if affine and model.causal and layer >= 1
                    else None,
                }
            )
    found = tuple(Reading(**reading) for reading in readings)
    whole, control = _superposition(model, relations, pooled, chosen, seed)
    return Probe(model.name, found, whole, control)


def _read(
    relation: Relation, layer: int, states: list[Tensor], vectors: Tensor, answers: Tensor, candidates: int, seed: int
) -> dict[str, Any]:
    hits, five, cosines = [], [], []
    centre = vectors.mean(0)
    for X in states:
        predicted = _held_out(X, vectors[answers], seed)
        order = torch.cdist(predicted, vectors).argsort(1)
        hits.append(order[:, 0] == answers)
        five.append((order[:, :5] == answers[:, None]).any(1))
        cosines.append(torch.cosine_similarity(predicted - centre, vectors[answers] - centre))
    right = torch.stack(hits).double().mean(0)
    low, high = _bootstrap(right, seed)
    generator = torch.Generator().manual_seed(seed)
    dealt = [_top1(states, vectors, answers[torch.randperm(len(answers), generator=generator)], seed) for _ in range(3)]
    return {
        "relation": relation.name,
        "layer": layer,
        "top1": float(right.mean()),
        "top5": float(torch.stack(five).double().mean()),
        "low": low,
        "high": high,
        "cosine": float(torch.stack(cosines).mean()),
        "shuffled": sum(dealt) / len(dealt),
        "frequent": float(torch.bincount(answers).max()) / len(answers),
        "subjects": len(answers),
        "candidates": candidates,
    }


def _held_out(X: Float[Tensor, "n d"], Y: Float[Tensor, "n v"], seed: int) -> Float[Tensor, "n v"]:
    """Predictions for each subject from a fit without it."""
    return ridge_cv(X, Y, min(FOLDS, len(X)), RIDGES, seed).predicted


def _top1(states: list[Tensor], vectors: Tensor, answers: Int[Tensor, " n"], seed: int) -> float:
    hits = [torch.cdist(_held_out(X, vectors[answers], seed), vectors).argmin(1) == answers for X in states]
    return float(torch.stack(hits).double().mean())


def _bootstrap(right: Float[Tensor, " n"], seed: int) -> tuple[float, float]:
    """95% interval of the mean over subjects drawn again."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(right), (BOOTSTRAPS, len(right)), generator=generator)
    low, high = right[drawn].mean(1).quantile(torch.tensor([0.025, 0.975], dtype=right.dtype)).tolist()
    return low, high


def _affine(
    model: LanguageModel, relation: Relation, layer: int, states: list[Tensor], vectors: Tensor, answers: Tensor
) -> float:
    shares = []
    for template, X in zip(relation.templates, states):
        W, b = affine_decoder(model, relation.prompts(template)[:EXAMPLES], layer)
        logits = (BETA * X[EXAMPLES:, layer] @ W.T + b) @ vectors.T
        hits: Bool[Tensor, " n"] = logits.argmax(1) == answers[EXAMPLES:]
        shares.append(float(hits.double().mean()))
    return sum(shares) / len(shares)


def _superposition(
    model: LanguageModel,
    relations: Sequence[Relation],
    states: dict[str, dict[str, Tensor]],
    layers: Sequence[int],
    seed: int,
) -> tuple[dict[int, float], dict[int, float]]:
    shared = [s for s in relations[0].facts if all(s in relation.facts for relation in relations)] if relations else []
    if len(shared) < 8 or len(relations) < 2:
        return {}, {}
    generator = torch.Generator().manual_seed(seed)
    features = [model.attribute_vectors([relation.facts[s] for s in shared]) for relation in relations]
    dealt = [block[torch.randperm(len(shared), generator=generator)] for block in features]
    whole: dict[int, float] = {}
    control: dict[int, float] = {}
    for layer in layers:
        E = torch.stack([torch.stack([states[r.name][s][layer] for r in relations]).mean(0) for s in shared])
        for blocks, into in ((features, whole), (dealt, control)):
            into[layer] = ridge_cv(torch.cat(blocks, 1), E, min(FOLDS, len(shared)), RIDGES, seed).r2
    return whole, control
