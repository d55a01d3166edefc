"""The smallest dimension at which training succeeds: bisection over `d`, sweeps over worlds, fits of how it grows."""

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from bounds.rigorous import log2_factorial, lower, scaled
from constructions.sizes import size
from geotheory.errors import InvalidArgument, NotAModel, positive_integer
from geotheory.transformer import Transformer
from paper_checks.learning.setting import Setting
from paper_checks.learning.stack import Stack
from paper_checks.learning.train import Diverged, train

__all__ = ["Fit", "Runs", "Threshold", "fit_growth", "sweep", "threshold"]

# The largest dimension that a search tries before it gives up.
MOST_DIMENSIONS = 1 << 14


@dataclass(frozen=True)
class Threshold:
    """The smallest `d` at which at least half of the seeds reach a share of right answers.

    Attributes
    ----------
    setting
        Of the threshold's runs, at its `d`.
    share
        Of the table that must be recalled.
    d
        The threshold: at `d` the median accuracy of the seeds is at least `share`, at `d - 1` it is not (or `d` is 1).
    seeds
        How many.
    each
        For every seed alone, the smallest of the tried dimensions from which on it reached `share`: the spread.
    parameters
        That were trained, at the threshold.
    fact_bits
        What the table is worth: `log2 (N!)^R`; for several hops `(R - 1) log2 N!`, which is proved (B7).
    """

    setting: Setting
    share: float
    d: int
    seeds: int
    each: tuple[int, ...]
    parameters: int
    fact_bits: float

    @property
    def bits_per_parameter(self) -> float:
        """Bits of facts for each trained parameter."""
        return self.fact_bits / self.parameters

    @property
    def construction(self) -> int:
        """`d` of the closed-form single-hop construction (T1) for the same world."""
        return size("single_hop", entities=self.setting.entities, relations=self.setting.relations).d

    @property
    def least(self) -> int:
        """The least `d` that is proved: below it the trained weights, at all their bits, have fewer bits than the facts.

        `P + N D_in + N D_out >= log2 #tables`: B1 or B2 over all subjects, B4 where embeddings are frozen.
        """
        width = self.setting.neurons / self.d
        weight_bits = {"float32": 32, "float64": 64}[self.setting.dtype]

        def held(d: int) -> int:
            return weight_bits * _trained_parameters(self.setting.but(d=d, width=max(1, round(width * d))))

        return next(d for d in range(1, self.d + 1) if d == self.d or held(d) >= self.fact_bits)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        s = self.setting
        return {
            "N": s.entities,
            "R": s.relations,
            "k": s.hops,
            "frozen": s.frozen,
            "share": self.share,
            "d": self.d,
            "each seed": list(self.each),
            "seeds": self.seeds,
            "parameters": self.parameters,
            "bits per parameter": self.bits_per_parameter,
            "construction d": self.construction,
            "least d": self.least,
        }


class Runs:
    """The file of all runs, one line of JSON each, appended as they end; what it holds is not trained again.

    A line that a kill or a full disk cut short is dropped, and its run is repeated.

    Raises
    ------
    NotAModel
        The file holds something else.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self._known: dict[tuple[Setting, int], dict[str, Any]] = {}
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def _read(self, path: Path) -> None:
        whole = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    row = json.loads(line)
                    self._known[_key(Setting(**row["setting"]), row["seed"])] = row
                except (ValueError, KeyError, TypeError) as error:
                    raise NotAModel(f"{path}, line {number} is no run of a sweep; name another file") from error
                whole += len(line)
        if whole < path.stat().st_size:
            with path.open("rb+") as file:
                file.truncate(whole)

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._known.values())

    def find(self, setting: Setting, seed: int) -> dict[str, Any] | None:
        """The run, if it was made."""
        return self._known.get(_key(setting, seed))

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep these runs: all of them are in the file, or none.

        Raises
        ------
        OSError
            The file cannot be written; it is left as it was.
        """
        if self.path is not None:
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                before = file.tell()
                try:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(self.path, before)
                    raise
        for row in rows:
            self._known[_key(Setting(**row["setting"]), row["seed"])] = row

    def run(self, setting: Setting, seeds: Sequence[int], device: str = "cpu") -> list[dict[str, Any]]:
        """The runs of these seeds, trained together if they are not known yet."""
        missing = [seed for seed in seeds if self.find(setting, seed) is None]
        if missing:
            self.add(_train(setting, missing, device))
        found = [self.find(setting, seed) for seed in seeds]
        return [row for row in found if row is not None]


def _key(setting: Setting, seed: int) -> tuple[Setting, int]:
    # The neurons count, not how they are given.
    return setting.but(width=setting.neurons), seed


def _train(setting: Setting, seeds: Sequence[int], device: str) -> list[dict[str, Any]]:
    try:
        return [{**run.to_dict(), "device": device} for run in train(setting, seeds, device=device)]
    except Diverged:
        # As good as not learned: the threshold lies higher, or the learning rate is too large, as `diverged at` shows.
        lost = {"steps": 0, "accuracy": 0.0, "margin": "-inf", "diverged at": 0, "seconds": 0.0, "curve": []}
        return [{"setting": setting.to_dict(), "seed": seed, **lost, "device": device} for seed in seeds]


def threshold(
    setting: Setting,
    share: float = 0.99,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    width: Callable[[int], int] | None = None,
    start: int | None = None,
    runs: Runs | None = None,
    device: str = "cpu",
    progress: Callable[[Setting, list[dict[str, Any]]], object] | None = None,
) -> Threshold:
    """Find the smallest `d` at which the median accuracy of the seeds reaches `share`.

    Bisection takes for granted that more dimensions do no harm; every run is kept in `runs`, where this can be seen.

    Parameters
    ----------
    setting
        Everything but `d`, which is searched, and `width`, if there is a rule for it.
    share
        Of all queries, above 0 and at most 1.
    seeds
        Trained together at each `d`.
    width
        Neurons for each `d`; None: the setting's `width`, or `4 d` where that is None.
    start
        First dimension to try, where `runs` has none; None: `R log2 N / 4`, about where trained embeddings succeed.
    runs
        Where runs are looked up and kept.
    progress
        Called after the runs of each `d`.

    Raises
    ------
    InvalidArgument
        The share is no share; no dimension up to 16,384 is enough.
    """
    if not 0 < share <= 1:
        raise InvalidArgument(f"share must lie in (0, 1], not {share!r}")
    if not seeds:
        raise InvalidArgument("give at least one seed")
    runs = Runs() if runs is None else runs
    tried: dict[int, list[float]] = {}

    def at(d: int) -> Setting:
        return setting.but(d=d, width=width(d) if width is not None else setting.width)

    def reaches(d: int) -> bool:
        if d not in tried:
            rows = runs.run(at(d), seeds, device)
            tried[d] = [row["accuracy"] for row in rows]
            if progress is not None:
                progress(at(d), rows)
        return median(tried[d]) >= share

    bits = setting.relations * max(1, (setting.entities - 1).bit_length())
    first = positive_integer("start", start) if start is not None else max(2, bits // 4)
    # What was tried before is not forgotten: the search goes on from there.
    for d in {row["setting"]["d"] for row in runs}:
        if all(runs.find(at(d), seed) is not None for seed in seeds):
            tried[d] = [row["accuracy"] for seed in seeds if (row := runs.find(at(d), seed))]
    high = min((d for d in tried if reaches(d)), default=max([first, *map(_larger, tried)]))
    low = max((d for d in tried if d < high), default=0)
    while not reaches(high):
        low, high = high, _larger(high)
        if high > MOST_DIMENSIONS:
            raise InvalidArgument(
                f"no dimension up to {low:,} reaches {share:.0%}: give more steps, or another learning rate"
            )
    while low + 1 < high:
        # Not the middle: just below a success lies more often another than far below it, and small ones cost less.
        middle = max(low + 1, min(high - 1, (2 * low + 3 * high) // 5 if low else high * 2 // 3))
        low, high = (low, middle) if reaches(middle) else (middle, high)
    found = at(high)
    each = tuple(
        min([d for d in tried if all(tried[e][i] >= share for e in tried if e >= d)], default=high)
        for i in range(len(seeds))
    )
    bits_of_facts = lower(scaled(log2_factorial(found.entities), found.relations - (found.hops > 1)))
    return Threshold(found, share, high, len(seeds), each, _trained_parameters(found), bits_of_facts)


def _larger(d: int) -> int:
    """The next dimension to try while none has been enough."""
    return d + max(1, d // 2)


def _trained_parameters(setting: Setting) -> int:
    model = Transformer(setting.shape, device="meta")
    return sum(weight.numel() for weight in Stack.of(setting, [model], "meta").trainable.values())


def sweep(
    settings: Sequence[Setting],
    shares: Sequence[float] = (0.99, 1.0),
    *,
    seeds: Sequence[int] = (0, 1, 2),
    path: str | os.PathLike[str] | None = None,
    processes: int | None = None,
    device: str = "cpu",
    progress: Callable[[Setting, list[dict[str, Any]]], object] | None = None,
) -> Iterator[Threshold]:
    """The thresholds of many settings, in parallel processes of one thread each; yields them as they are found.

    Parameters
    ----------
    settings
        Their `d` is where each search starts.
    shares
        One threshold for each; they share their runs.
    path
        File of runs (see :class:`Runs`). A sweep that was stopped goes on from it.
    processes
        None: one a core.
    progress
        Called after the runs of each setting and dimension.
    """
    # Each process reads the file at its start, and only this one writes it.
    runs = Runs(path)
    count = positive_integer("processes", processes if processes is not None else os.cpu_count() or 1)
    if count == 1:
        for setting in settings:
            for share in shares:
                yield threshold(
                    setting, share, seeds=seeds, start=setting.d, runs=runs, device=device, progress=progress
                )
        return
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_one_thread)
    try:
        searches = [_Search(setting, tuple(shares), tuple(seeds), runs) for setting in settings]
        waiting: dict[Future[list[dict[str, Any]]], _Search] = {}

        def go_on(search: _Search) -> Iterator[Threshold]:
            found, needed = search.next()
            if needed is not None:
                missing = [seed for seed in seeds if runs.find(needed, seed) is None]
                waiting[pool.submit(_train, needed, missing, device)] = search
            yield from found

        for search in searches:
            yield from go_on(search)
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                search, rows = waiting.pop(future), future.result()
                runs.add(rows)
                if progress is not None:
                    progress(Setting(**rows[0]["setting"]), rows)
                yield from go_on(search)
    finally:
        # What still runs is not waited for: it is trained again the next time.
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()


class _Missing(Exception):
    def __init__(self, setting: Setting) -> None:
        self.setting = setting


class _Known(Runs):
    """Runs that are looked up only; what is missing is asked for."""

    def __init__(self, runs: Runs) -> None:
        self._known = runs._known

    def run(self, setting: Setting, seeds: Sequence[int], device: str = "cpu") -> list[dict[str, Any]]:
        if any(self.find(setting, seed) is None for seed in seeds):
            raise _Missing(setting)
        return super().run(setting, seeds, device)


class _Search:
    """A threshold search that stops where it needs runs that are not there: it is repeated from its start, which costs nothing."""

    def __init__(self, setting: Setting, shares: tuple[float, ...], seeds: tuple[int, ...], runs: Runs) -> None:
        self.setting, self.shares, self.seeds, self.runs = setting, list(shares), seeds, runs

    def next(self) -> tuple[list[Threshold], Setting | None]:
        """Thresholds found by now, and the setting whose runs are needed next, if any."""
        found = []
        while self.shares:
            try:
                found.append(
                    threshold(
                        self.setting, self.shares[0], seeds=self.seeds, start=self.setting.d, runs=_Known(self.runs)
                    )
                )
            except _Missing as missing:
                return found, missing.setting
            self.shares.pop(0)
        return found, None


def _one_thread() -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends this process


@dataclass(frozen=True)
class Fit:
    """How thresholds grow with `N` and `R`.

    Attributes
    ----------
    logarithmic
        `c` of `d = c R log2 N`.
    logarithmic_error
        Root mean square error of `ln d` under it.
    factor, exponent_entities, exponent_relations
        `d = a N^alpha R^beta`.
    power_error
        Root mean square error of `ln d` under it. It has two more free parameters.
    """

    logarithmic: float
    logarithmic_error: float
    factor: float
    exponent_entities: float
    exponent_relations: float
    power_error: float

    def to_dict(self) -> dict[str, float]:
        """Plain JSON-ready values."""
        return dict(vars(self))

    def __str__(self) -> str:
        return (
            f"d = {self.logarithmic:.3g} R log2 N (rms error of ln d {self.logarithmic_error:.3f}); "
            f"d = {self.factor:.3g} N^{self.exponent_entities:.3f} R^{self.exponent_relations:.3f} ({self.power_error:.3f})"
        )


def fit_growth(points: Sequence[tuple[int, int, float]]) -> Fit:
    """Fit `(N, R, d)` by `c R log2 N` and by `a N^alpha R^beta`, both by least squares in `ln d`.

    Raises
    ------
    InvalidArgument
        Too few points to tell `N` from `R`.

    Examples
    --------
    >>> fit = fit_growth([(N, R, 0.5 * R * N.bit_length()) for N in (63, 1023) for R in (2, 8)])
    >>> round(fit.exponent_relations, 6)
    1.0
    """
    rows = [(N, R, d) for N, R, d in points if N > 1 and d > 0]
    y = np.log([d for *_, d in rows])
    features = np.array([[1.0, np.log(N), np.log(R)] for N, R, _ in rows])
    if len(rows) < 3 or np.linalg.matrix_rank(features) < 3:
        raise InvalidArgument("a fit needs thresholds at two sizes N and two R at least, three points in all")
    logarithmic = y - np.log([R * np.log2(N) for N, R, _ in rows])
    solution, *_ = np.linalg.lstsq(features, y, rcond=None)
    error = features @ solution - y
    return Fit(
        logarithmic=float(np.exp(logarithmic.mean())),
        logarithmic_error=float(logarithmic.std()),
        factor=float(np.exp(solution[0])),
        exponent_entities=float(solution[1]),
        exponent_relations=float(solution[2]),
        power_error=float(np.sqrt((error**2).mean())),
    )
