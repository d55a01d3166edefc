"""One configuration looked at from all sides: trained and frozen, read out, cut into, frozen and swapped."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geotheory.errors import InvalidArgument
from geotheory.facts import FactTable
from geotheory.transformer import Transformer
from paper_checks.learning.interventions import Interventions, intervene
from paper_checks.learning.readouts import Readout, Superposition, fit_readout, fit_superposition, shuffled
from paper_checks.learning.setting import Setting
from paper_checks.learning.train import Point, Trained, train
from paper_checks.learning.transfer import Relearning, Transfer, relearn, transfer

__all__ = ["Anatomy", "Study", "dissect", "study"]


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What is found in one model, whoever made it.

    `shuffled_r2` and `shuffled_readout` are those of the same model and facts dealt to other subjects: the control.
    """

    superposition: Superposition
    readout: Readout
    shuffled_r2: float
    shuffled_readout: Readout
    interventions: Interventions
    transfer: Transfer

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {
            "superposition r2": self.superposition.r2,
            "superposition r2, shuffled facts": self.shuffled_r2,
            "ridge": self.superposition.ridge,
            "readout": self.readout.to_dict(),
            "readout, shuffled facts": self.shuffled_readout.to_dict(),
            "interventions": self.interventions.to_dict(),
            "transfer": self.transfer.to_dict(),
        }


def dissect(transformer: Transformer, facts: FactTable, *, seed: int = 0) -> Anatomy:
    """Read out, intervene, freeze and swap; for a trained model or a construction alike."""
    fit, other = fit_superposition(transformer, facts, seed=seed), shuffled(facts, seed)
    return Anatomy(
        superposition=fit,
        readout=fit_readout(transformer, facts, seed=seed),
        shuffled_r2=fit_superposition(transformer, other, seed=seed).r2,
        shuffled_readout=fit_readout(transformer, other, seed=seed),
        interventions=intervene(transformer, facts, fit, seed=seed),
        transfer=transfer(transformer, facts, fit),
    )


@dataclass(frozen=True, eq=False)
class Study:
    """Trained models and their controls.

    Attributes
    ----------
    trained, frozen
        Runs of the setting, and of the same with the subjects' rows frozen at random, both embeddings initialized by default.
    found, control
        The anatomy of each.
    relearning
        Steps to learn new facts behind the trained decoder, and from scratch; None if it was not asked for.
    device
        Where it was trained.
    """

    trained: tuple[Trained, ...]
    frozen: tuple[Trained, ...]
    found: tuple[Anatomy, ...]
    control: tuple[Anatomy, ...]
    relearning: Relearning | None
    device: str

    @property
    def setting(self) -> Setting:
        """Of the trained models."""
        return self.trained[0].setting

    def mean(self, figure: Callable[[Anatomy], float], frozen: bool = False) -> float:
        """A figure's mean over the seeds."""
        each = [figure(anatomy) for anatomy in (self.control if frozen else self.found)]
        return sum(each) / len(each)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {
            "setting": self.setting.to_dict(),
            "device": self.device,
            "trained": [run.to_dict() | anatomy.to_dict() for run, anatomy in zip(self.trained, self.found)],
            "frozen": [run.to_dict() | anatomy.to_dict() for run, anatomy in zip(self.frozen, self.control)],
            "relearning": self.relearning.to_dict() if self.relearning else None,
        }

    def __str__(self) -> str:
        rows = [
            ("right answers", lambda i, a: self._run(i, a).accuracy),
            ("superposition R^2", lambda i, a: self._one(i, a).superposition.r2),
            ("  facts shuffled", lambda i, a: self._one(i, a).shuffled_r2),
            ("attributes read linearly", lambda i, a: _mean(self._one(i, a).readout.accuracy)),
            ("relation swapped", lambda i, a: self._one(i, a).interventions.relation_swapped[0]),
            ("gates swapped", lambda i, a: self._one(i, a).interventions.gates_swapped[0]),
            ("component replaced", lambda i, a: self._one(i, a).interventions.component_replaced[0]),
            ("  others kept", lambda i, a: self._one(i, a).interventions.others_kept[0]),
            ("neurons selective", lambda i, a: self._one(i, a).interventions.selective),
            ("zero-shot on new facts", lambda i, a: self._one(i, a).transfer.mean),
        ]
        lines = [f"{'':26}{'trained':>9}{'frozen':>9}"]
        for name, value in rows:
            means = [_mean([value(i, frozen) for i in range(len(self.trained))]) for frozen in (False, True)]
            lines.append(f"{name:26}{means[0]:9.3f}{means[1]:9.3f}")
        if self.relearning is not None:
            lines.append(f"steps to learn new facts, rows alone: {_steps(self.relearning.embeddings_only)}")
            lines.append(f"                      from scratch: {_steps(self.relearning.from_scratch)}")
        return "\n".join(lines)

    def _run(self, i: int, frozen: bool) -> Trained:
        return (self.frozen if frozen else self.trained)[i]

    def _one(self, i: int, frozen: bool) -> Anatomy:
        return (self.control if frozen else self.found)[i]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _steps(each: Sequence[int | None]) -> str:
    return ", ".join("not learned" if steps is None else f"{steps:,}" for steps in each)


def study(
    setting: Setting,
    seeds: Sequence[int] = (0,),
    *,
    device: str = "cpu",
    again: bool = False,
    directory: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int, list[Point]], object] | None = None,
) -> Study:
    """Train the setting and its frozen control, and dissect every model.

    Parameters
    ----------
    setting, seeds, device, progress
        As for :func:`train`. One hop, a single relation is not enough.
    again
        Also count the steps in which new facts are learned.
    directory
        Where checkpoints are kept: a study that was killed goes on from them.

    Raises
    ------
    InvalidArgument
        Several hops, one relation, or a setting whose subjects' rows are frozen already.
    """
    if setting.hops > 1 or setting.relations < 2:
        raise InvalidArgument("readouts and interventions are for single hops and two relations at least")
    if setting.frozen in ("subjects", "embeddings"):
        raise InvalidArgument(
            f"frozen = {setting.frozen!r}: the frozen control is trained beside the setting, which is not"
        )
    folder = Path(directory) if directory is not None else None
    kept = [folder / name if folder is not None else None for name in ("checkpoint.pt", "checkpoint-frozen.pt")]
    trained = tuple(train(setting, seeds, device=device, checkpoint=kept[0], progress=progress))
    # Rows that stay as they are drawn are drawn at full size, or nothing could be read from them.
    control = setting.but(
        frozen="embeddings" if setting.frozen == "unembedding" else "subjects",
        subject_scale=1.0,
        unembedding_scale=None,
    )
    frozen = tuple(train(control, seeds, device=device, checkpoint=kept[1], progress=progress))
    found, others = (tuple(dissect(run.transformer, run.facts) for run in runs) for runs in (trained, frozen))
    return Study(trained, frozen, found, others, relearn(trained) if again else None, device)
