"""Freeze and swap: a trained decoder, frozen, is given embeddings of facts that it has never seen."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from geotheory.errors import InvalidArgument, positive_integer
from geotheory.facts import FactTable
from geotheory.transformer import Transformer
from geotheory.verification import verify
from paper_checks.learning.readouts import Superposition, attribute_vectors, fit_superposition
from paper_checks.learning.train import Trained, train

__all__ = ["Relearning", "Transfer", "relearn", "swap", "transfer"]


@dataclass(frozen=True)
class Transfer:
    """Zero-shot accuracy on new facts, after no gradient step.

    Attributes
    ----------
    zero_shot
        For each new world, the share of its facts that the frozen decoder answers rightly from superposed embeddings.
    own
        The same for the facts that the model was trained on, with superposed instead of learned embeddings.
    chance
        `1 / N`.
    r2
        Of the fit, on held-out subjects.
    """

    zero_shot: tuple[float, ...]
    own: float
    chance: float
    r2: float

    @property
    def mean(self) -> float:
        """Over the new worlds."""
        return sum(self.zero_shot) / len(self.zero_shot)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {"zero-shot": list(self.zero_shot), "own facts": self.own, "chance": self.chance, "r2": self.r2}


def swap(transformer: Transformer, fit: Superposition, facts: FactTable) -> Transformer:
    """A copy of the model whose subjects' rows are the superpositions, by the fitted maps, of these facts' attribute vectors."""
    copied = copy.deepcopy(transformer)
    rows = fit.embed(facts.table.to(copied.embedding.device), attribute_vectors(copied))
    with torch.no_grad():
        copied.embedding[: facts.num_subjects] = rows.to(copied.embedding)
    return copied


def transfer(
    transformer: Transformer, facts: FactTable, fit: Superposition | None = None, *, worlds: int = 3, seed: int = 10_000
) -> Transfer:
    """Give a frozen decoder the embeddings of new random bijections, set by the linear fit, and ask every fact.

    Parameters
    ----------
    transformer, facts
        The model, and the facts that it has learned.
    fit
        Its embeddings as superpositions; None: :func:`fit_superposition` of them.
    worlds, seed
        How many new worlds, and the first one's seed.

    Examples
    --------
    >>> import constructions
    >>> facts = FactTable.random_bijections(entities=64, relations=2)
    >>> transfer(constructions.single_hop(facts).transformer, facts).zero_shot
    (1.0, 1.0, 1.0)
    """
    fit = fit if fit is not None else fit_superposition(transformer, facts)
    N, R = facts.num_subjects, facts.num_relations
    new = [FactTable.random_bijections(N, R, seed=seed + i) for i in range(positive_integer("worlds", worlds))]
    own, *zero_shot = (verify(swap(transformer, fit, world), world).accuracy for world in (facts, *new))
    return Transfer(tuple(zero_shot), own, 1 / N, fit.r2)


@dataclass(frozen=True)
class Relearning:
    """Steps until a new world was learned: by the subjects' rows alone behind the frozen decoder, and from scratch.

    None where the steps of the setting were not enough.
    """

    embeddings_only: tuple[int | None, ...]
    from_scratch: tuple[int | None, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {"embeddings only": list(self.embeddings_only), "from scratch": list(self.from_scratch)}


def relearn(runs: Sequence[Trained], *, seed: int = 20_000) -> Relearning:
    """Teach new worlds to trained models, the decoder frozen, and count steps; then to new models, from scratch.

    Parameters
    ----------
    runs
        Trained models of one setting.
    seed
        Of the first one's new world.

    Raises
    ------
    InvalidArgument
        The runs differ in their setting.
    """
    if not runs or any(run.setting != runs[0].setting for run in runs):
        raise InvalidArgument("give trained models of one setting, at least one")
    setting = runs[0].setting.but(stop=True, evaluate_every=min(20, runs[0].setting.evaluate_every))
    worlds = [FactTable.random_bijections(setting.entities, setting.relations, seed=seed + i) for i in range(len(runs))]
    seeds = range(seed, seed + len(runs))

    def steps(found: list[Trained]) -> tuple[int | None, ...]:
        return tuple(run.steps if run.learned else None for run in found)

    # New rows start as those of a model that has learned nothing: the old facts must not help.
    fresh = [_with_fresh_rows(run, s) for run, s in zip(runs, seeds)]
    kept = train(setting.but(frozen="decoder"), seeds, facts=worlds, initial=fresh)
    return Relearning(steps(kept), steps(train(setting, seeds, facts=worlds)))


def _with_fresh_rows(run: Trained, seed: int) -> Transformer:
    copied = copy.deepcopy(run.transformer)
    N, d = run.setting.entities, run.setting.d
    rows = torch.randn(N, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with torch.no_grad():
        copied.embedding[:N] = (run.setting.subject_scale * rows).to(copied.embedding)
    return copied
