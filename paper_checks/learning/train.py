"""Gradient descent on the facts: batches of seeds, early stop, checkpoints from which a killed run goes on unchanged."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from geotheory.decoding import Decoding
from geotheory.devices import ensure_device
from geotheory.errors import GeotheoryError, InvalidArgument, NotAModel, positive_integer
from geotheory.facts import FactTable
from geotheory.files import replacing
from geotheory.transformer import Transformer
from geotheory.verification import verify
from geotheory.words import numbered_words
from paper_checks.learning.setting import Setting
from paper_checks.learning.stack import Stack

__all__ = ["Diverged", "Point", "Trained", "train"]

FORMAT = 1
# Seconds between two checkpoints; each is also written at the end and on Ctrl-C.
CHECKPOINT_SECONDS = 60.0


class Diverged(GeotheoryError, ArithmeticError):
    """The loss of every seed became infinite or NaN."""


@dataclass(frozen=True)
class Point:
    """One evaluation of the whole table: after so many steps, mean loss since the one before (nats), accuracy, smallest margin."""

    step: int
    loss: float
    accuracy: float
    margin: float


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model with its facts; `verify` takes it like a construction.

    Attributes
    ----------
    setting, seed, facts, transformer
        What was trained, on what, and the result: the weights of the last evaluation.
    curve
        Every evaluation, the last one last.
    seconds
        Wall-clock time of the batch that it was trained in, up to its end.
    diverged_at
        The step at which the loss was no longer finite; the weights are those of the last evaluation before. None: it never was.
    """

    setting: Setting
    seed: int
    facts: FactTable
    transformer: Transformer
    curve: tuple[Point, ...]
    seconds: float
    diverged_at: int | None = None

    @property
    def decoding(self) -> Decoding:
        """How the model is asked."""
        return self.setting.decoding

    @property
    def steps(self) -> int:
        """Optimizer steps taken."""
        return self.curve[-1].step

    @property
    def accuracy(self) -> float:
        """Share of all queries answered rightly."""
        return self.curve[-1].accuracy

    @property
    def margin(self) -> float:
        """Smallest lead of a right answer."""
        return self.curve[-1].margin

    @property
    def learned(self) -> bool:
        """Whether every query is answered rightly, with a positive margin."""
        return self.accuracy == 1 and self.margin > 0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values, without the weights."""
        return {
            "setting": self.setting.to_dict(),
            "seed": self.seed,
            "steps": self.steps,
            "accuracy": self.accuracy,
            "margin": self.margin if isfinite(self.margin) else str(self.margin),
            "diverged at": self.diverged_at,
            "seconds": round(self.seconds, 3),
            "curve": [
                vars(point) | {"margin": _plain(point.margin), "loss": _plain(point.loss)} for point in self.curve
            ],
        }

    def __str__(self) -> str:
        s = self.setting
        trained = "nothing" if s.frozen == "none" else s.frozen
        lost = f", diverged at step {self.diverged_at:,}" if self.diverged_at is not None else ""
        return (
            f"N={s.entities:,} R={s.relations} k={s.hops} d={s.d} width={s.neurons} frozen: {trained}, seed {self.seed}: "
            f"{self.accuracy:.2%} right, smallest margin {self.margin:.3g}, {self.steps:,} steps, {self.seconds:.1f} s{lost}"
        )


def _plain(figure: float) -> float | str:
    return figure if isfinite(figure) else str(figure)


def train(
    setting: Setting,
    seeds: Sequence[int] = (0,),
    *,
    facts: Sequence[FactTable] | None = None,
    initial: Sequence[Transformer] | None = None,
    device: str | torch.device = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int, list[Point]], object] | None = None,
) -> list[Trained]:
    """Train a one-layer transformer on a random world, once for each seed; all seeds as one batch of models.

    Parameters
    ----------
    setting
        See :class:`Setting`.
    seeds
        Each decides its world (unless `facts` are given), its initial weights (unless `initial`) and the order of its queries.
    facts, initial
        One for each seed: the facts to learn, and the models to start from.
    device
        Where to train.
    checkpoint
        File that is written every minute, on Ctrl-C and at the end. If it exists, training goes on from it, with the result, bit
        for bit on the CPU, of a run that was never interrupted.
    progress
        Called after each evaluation with the step, the number of runs still going, and the latest evaluation of each seed.

    Returns
    -------
    list of Trained
        In the order of `seeds`.

    Raises
    ------
    InvalidArgument
        The checkpoint is of another setting, other seeds or other facts (the difference is named); facts or models that do not fit.
    Diverged
        The loss of every seed became NaN or infinite. A seed that diverges alone is returned with its last good weights.

    Examples
    --------
    >>> from paper_checks.learning import Setting, train
    >>> found = train(Setting(entities=16, relations=2, d=8), seeds=[0, 1])
    >>> [run.accuracy for run in found]
    [1.0, 1.0]
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise InvalidArgument(f"seeds must be different, and at least one: {list(seeds)}")
    for seed in seeds:
        if positive_integer("seed", seed, least=0) >= 2**63:
            raise InvalidArgument(f"seed must be below 2^63, not {seed}")
    ensure_device(device)
    worlds = list(facts) if facts is not None else [_world(setting, seed) for seed in seeds]
    for name, given in (("facts", worlds), ("initial", initial if initial is not None else seeds)):
        if len(given) != len(seeds):
            raise InvalidArgument(f"{len(given)} {name} for {len(seeds)} seeds: give one for each")
    for world in worlds:
        if (world.num_subjects, world.num_relations, world.num_attributes) != (
            setting.entities,
            setting.relations,
            setting.entities,
        ) or bool((world.table < 0).any()):
            raise InvalidArgument(
                f"{world!r} does not fit N={setting.entities}, R={setting.relations}, or has missing facts"
            )
    path = Path(checkpoint) if checkpoint is not None else None
    training = _Training(setting, list(seeds), worlds, device)
    if path is not None and path.exists():
        training.resume(path)
    else:
        training.begin(
            Stack.of(setting, initial, device) if initial is not None else Stack.initialized(setting, seeds, device)
        )
    training.run(path, progress)
    results = [training.finished[place] for place in range(len(seeds))]
    if all(run.diverged_at is not None for run in results):
        raise Diverged(
            f"the loss of every seed is infinite or NaN, first at step {min(run.diverged_at or 0 for run in results):,}: take a "
            f"smaller learning_rate than {setting.learning_rate:g}"
        )
    return results


def _world(setting: Setting, seed: int) -> FactTable:
    return FactTable.random_bijections(entities=setting.entities, relations=setting.relations, seed=seed)


class _Training:
    """The state of a batch of runs between two steps."""

    def __init__(self, setting: Setting, seeds: list[int], worlds: list[FactTable], device: str | torch.device) -> None:
        self.setting, self.seeds, self.device = setting, seeds, torch.device(device)
        self.worlds = worlds
        self.tables = torch.stack([world.table for world in worlds]).to(self.device)
        self.step = 0
        self.seconds = 0.0
        self.active = list(range(len(seeds)))  # places of the seeds that still train, in the order of the stack
        self.curves: list[list[Point]] = [[] for _ in seeds]
        self.finished: dict[int, Trained] = {}
        self.stack: Stack
        self.good: Stack  # the weights of the last evaluation
        self.optimizer: torch.optim.Optimizer
        self.loss: Tensor  # sum over the steps since the last evaluation
        self._orders: tuple[int, list[int], Tensor] | None = None
        self._whole: tuple[list[int], Tensor, Tensor] | None = None

    def begin(self, stack: Stack) -> None:
        self.stack = stack
        self.optimizer = self._new_optimizer()
        self.loss = torch.zeros(len(stack), dtype=torch.float64, device=self.device)
        self.good = stack.keep(range(len(stack)))

    def _new_optimizer(self) -> torch.optim.Optimizer:
        trainable = self.stack.trainable.values()
        return torch.optim.AdamW(
            trainable, lr=self.setting.learning_rate, weight_decay=self.setting.weight_decay, fused=True
        )

    # Queries

    def _order(self, epoch: int) -> Tensor:
        """`[S, Q]`: the queries of each active seed in the order of this epoch."""
        if self._orders is None or self._orders[:2] != (epoch, self.active):
            orders = []
            for place in self.active:
                generator = torch.Generator().manual_seed((self.seeds[place] * 1_000_003 + epoch) % 2**63)
                orders.append(torch.randperm(self.setting.queries, generator=generator))
            self._orders = (epoch, list(self.active), torch.stack(orders).to(self.device))
        return self._orders[2]

    def _questions(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens `[S, n, length]` and answers `[S, n, steps]` of queries `[S, n]`, numbered `word * N + subject`."""
        N, R, k = self.setting.entities, self.setting.relations, self.setting.hops
        tokens, chain = [queries % N], [queries % N]
        tables = self.tables[self.active].flatten(1)
        for r in numbered_words(queries // N, R, k).unbind(2):
            tokens.append(N + r)
            chain.append(tables.gather(1, r * N + chain[-1]))
        if self.setting.chain_of_thought:
            return torch.stack(tokens + chain[1:-1], 2), torch.stack(chain[1:], 2)
        return torch.stack(tokens, 2), chain[-1][..., None]

    def batch(self) -> tuple[Tensor, Tensor]:
        """Tokens and answers of the step in hand."""
        size, Q = self.setting.batch, self.setting.queries
        if size is None or size >= Q:
            if self._whole is None or self._whole[0] != self.active:
                every = torch.arange(Q, device=self.device).expand(len(self.active), Q)
                self._whole = (list(self.active), *self._questions(every))
            return self._whole[1:]
        epoch, part = divmod(self.step, -(-Q // size))
        return self._questions(self._order(epoch)[:, part * size : (part + 1) * size])

    # Steps

    def run(self, path: Path | None, progress: Callable[[int, int, list[Point]], object] | None) -> None:
        started, saved = time.perf_counter() - self.seconds, time.perf_counter()
        try:
            while self.active:
                self._advance()
                self.seconds = time.perf_counter() - started
                if self.step % self.setting.evaluate_every == 0 or self.step == self.setting.steps:
                    self._evaluate()
                    if progress is not None:
                        progress(self.step, len(self.active), [curve[-1] for curve in self.curves if curve])
                if path is not None and (not self.active or time.perf_counter() - saved > CHECKPOINT_SECONDS):
                    self.save(path)
                    saved = time.perf_counter()
        except KeyboardInterrupt:
            if path is not None:
                self.save(path)
            raise

    def _advance(self) -> None:
        tokens, answers = self.batch()
        self.optimizer.param_groups[0]["lr"] = self.setting.rate(self.step)
        self.optimizer.zero_grad(set_to_none=True)
        losses = self.stack.losses(tokens, answers)
        losses.sum().backward()
        found = losses.detach().to(torch.float64)
        if not bool(found.isfinite().all()):
            self._give_up((~found.isfinite()).nonzero()[:, 0].tolist())
            return  # the others take this step again, without them
        self.optimizer.step()
        self.loss += found
        self.step += 1

    def _give_up(self, places: list[int]) -> None:
        """End the runs in these places of the stack, with their last good weights."""
        for i in places:
            place = self.active[i]
            if not self.curves[place]:
                self.curves[place].append(self._measured(self.good.model(i), place, float("nan"), 0))
            self._finish(place, self.good.model(i), diverged_at=self.step)
        self._keep([i for i in range(len(self.active)) if i not in places])

    def _measured(self, model: Transformer, place: int, loss: float, step: int) -> Point:
        found = verify(_Asked(model, self.worlds[place], self.setting.decoding))
        return Point(step, loss, found.accuracy, found.margin)

    def _evaluate(self) -> None:
        since = self.step % self.setting.evaluate_every or self.setting.evaluate_every
        done = []
        for i, place in enumerate(self.active):
            model = self.stack.model(i)
            point = self._measured(model, place, float(self.loss[i]) / since, self.step)
            self.curves[place].append(point)
            learned = point.accuracy == 1 and point.margin > 0
            if self.step == self.setting.steps or (learned and self.setting.stop):
                self._finish(place, model)
                done.append(i)
        self.loss.zero_()
        if done:
            self._keep([i for i in range(len(self.active)) if i not in done])
        self.good = self.stack.keep(range(len(self.stack))) if self.active else self.stack

    def _finish(self, place: int, model: Transformer, diverged_at: int | None = None) -> None:
        self.finished[place] = Trained(
            self.setting,
            self.seeds[place],
            self.worlds[place],
            model,
            tuple(self.curves[place]),
            self.seconds,
            diverged_at,
        )

    def _keep(self, places: list[int]) -> None:
        """Go on with the runs in these places of the stack only."""
        self.active = [self.active[i] for i in places]
        moments = [self.optimizer.state[weight] for weight in self.stack.trainable.values()]
        self.stack, self.good, self.loss = self.stack.keep(places), self.good.keep(places), self.loss[places]
        if not places:
            return
        self.optimizer = self._new_optimizer()
        for weight, moment in zip(self.stack.trainable.values(), moments):
            if moment:
                self.optimizer.state[weight] = {
                    name: value[places] if value.ndim else value.clone() for name, value in moment.items()
                }

    # Checkpoints

    def save(self, path: Path) -> None:
        """Write the state; the file is whole or as it was before."""
        state = {
            "format": FORMAT,
            "setting": self.setting.to_dict(),
            "seeds": self.seeds,
            "tables": self.tables.cpu(),
            "step": self.step,
            "seconds": self.seconds,
            "active": self.active,
            "curves": [[vars(point) for point in curve] for curve in self.curves],
            "loss": self.loss,
            "weights": {name: weight.detach() for name, weight in self.stack.weights.items()},
            "good": {name: weight.detach() for name, weight in self.good.weights.items()},
            "optimizer": self.optimizer.state_dict() if self.active else None,
            "finished": {
                place: {"weights": run.transformer.state_dict(), "seconds": run.seconds, "diverged_at": run.diverged_at}
                for place, run in self.finished.items()
            },
        }
        with replacing(path) as partial, partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())

    def resume(self, path: Path) -> None:
        try:
            state = torch.load(path, map_location=self.device, weights_only=True)
            known = state["format"]
        except Exception as error:  # whatever unpickling finds wrong with a file that is none of ours
            raise NotAModel(
                f"{path} is no checkpoint of a training: {error}; remove it, or name another file"
            ) from error
        if known != FORMAT:
            raise NotAModel(f"{path} has the format {known}, and this version reads {FORMAT}; remove it to train anew")
        differences = Setting(**state["setting"]).differences(self.setting)
        if state["seeds"] != self.seeds:
            differences.append(f"seeds: {state['seeds']}, {self.seeds}")
        if not differences and not torch.equal(state["tables"].cpu(), self.tables.cpu()):
            differences.append("the facts")
        if differences:
            raise InvalidArgument(
                f"{path} is the checkpoint of another training (there, here): {'; '.join(differences)}; name another file"
            )
        self.step, self.seconds, self.active = state["step"], state["seconds"], state["active"]
        self.curves = [[Point(**point) for point in curve] for curve in state["curves"]]
        self.stack, self.good = Stack(self.setting, state["weights"]), Stack(self.setting, state["good"])
        self.loss = state["loss"]
        self.optimizer = self._new_optimizer()
        if state["optimizer"] is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        for place, run in state["finished"].items():
            model = Transformer(self.setting.shape, dtype=self.setting.torch_dtype, device=self.device)
            model.load_state_dict(run["weights"])
            self._finish(place, model, run["diverged_at"])
            self.finished[place] = Trained(**{**vars(self.finished[place]), "seconds": run["seconds"]})


@dataclass(frozen=True)
class _Asked:
    """A model on its way, as `verify` takes it."""

    transformer: Transformer
    facts: FactTable
    decoding: Decoding
