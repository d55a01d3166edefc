"""Run checks in processes of their own: a check that raises, or takes its process down, stops none of the others."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from geotheory import __version__
from geotheory.errors import UnknownName, positive_integer
from geotheory.files import write_whole
from paper_checks.claims import CLAIMS, Claim, Evidence, Verdict, check, crashed
from paper_checks.scope import Scope

__all__ = ["Result", "chosen", "run"]


@dataclass(frozen=True)
class Result:
    """A claim, what was found, and the seconds that its measurement took (claims measured together share them)."""

    claim: Claim
    evidence: Evidence
    seconds: float


def chosen(only: Sequence[str] = ()) -> list[Claim]:
    """The claims with these ids (default: all), in their order.

    Raises
    ------
    UnknownName
        No claim has such an id.
    """
    ids = {claim.id.casefold() for claim in CLAIMS}
    for name in only:
        if name.casefold() not in ids:
            raise UnknownName("claim", name, [claim.id for claim in CLAIMS])
    wanted = {name.casefold() for name in only} or ids
    return [claim for claim in CLAIMS if claim.id.casefold() in wanted]


def run(claims: Sequence[Claim], scope: Scope | None = None, *, processes: int | None = None) -> Iterator[Result]:
    """Check the claims; yields each as soon as it is found.

    Parameters
    ----------
    claims
        Those that share their measurement are measured once.
    scope
        Sizes; with `full` what was found is kept under `scope.directory`, and not measured again.
    processes
        How many at a time, of one thread each; None: one a core; 1: in this process, one after the other.
    """
    scope = scope or Scope()
    jobs: dict[Any, list[Claim]] = {}
    for claim in claims:
        kept = _kept(claim, scope)
        if kept is not None:
            yield kept
        else:
            jobs.setdefault(claim.measure, []).append(claim)
    count = positive_integer("processes", processes if processes is not None else os.cpu_count() or 1)
    found = _here(list(jobs.values()), scope) if count == 1 else _apart(list(jobs.values()), scope, count)
    for result in found:
        _keep(result, scope)
        yield result


def _check(job: Sequence[Claim], scope: Scope) -> tuple[list[Evidence], float]:
    """The evidence for each claim, and the seconds that it took."""
    started = time.perf_counter()
    return check(job, scope), time.perf_counter() - started


def _here(jobs: Sequence[Sequence[Claim]], scope: Scope) -> Iterator[Result]:
    for job in jobs:
        found, seconds = _check(job, scope)
        for claim, evidence in zip(job, found):
            yield Result(claim, evidence, seconds)


def _apart(jobs: Sequence[Sequence[Claim]], scope: Scope, count: int) -> Iterator[Result]:
    # Not a pool: one process that dies would take a whole pool with it.
    context = get_context("spawn")
    # Experiments take longest: they start first.
    waiting = sorted(jobs, key=lambda job: not job[0].id.startswith("L"))
    running: dict[Connection, tuple[Any, Sequence[Claim], float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < count:
                job = waiting.pop(0)
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(list(job), scope, theirs), daemon=scope.full is False)
                process.start()
                theirs.close()
                running[ours] = (process, job, time.perf_counter())
            for end in wait(list(running)):
                assert isinstance(end, Connection)
                process, job, started = running.pop(end)
                try:
                    found, seconds = end.recv()
                except EOFError:
                    process.join()
                    lost = RuntimeError(f"its process ended with status {process.exitcode}")
                    found, seconds = [crashed(lost) for _ in job], time.perf_counter() - started
                process.join()
                for claim, evidence in zip(job, found):
                    yield Result(claim, evidence, seconds)
    finally:
        for process, *_ in running.values():
            process.terminate()


def _child(job: list[Claim], scope: Scope, end: Connection) -> None:
    import torch

    torch.set_num_threads(1)
    try:
        end.send(_check(job, scope))
    except KeyboardInterrupt:
        os._exit(130)  # the parent says so


# What full checks found, kept


def _place(claim: Claim, scope: Scope) -> Path | None:
    return scope.directory / "full" / f"{claim.id}.json" if scope.full and scope.directory is not None else None


def _kept(claim: Claim, scope: Scope) -> Result | None:
    path = _place(claim, scope)
    if path is None or not path.exists():
        return None
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["geotheory"] != __version__ or kept["statement"] != claim.statement:
            return None
        return Result(claim, Evidence.from_dict(kept["evidence"]), kept["seconds"])
    except (ValueError, KeyError, TypeError):
        return None  # cut short: measured again


def _keep(result: Result, scope: Scope) -> None:
    path = _place(result.claim, scope)
    # A check that crashed is tried again.
    if path is None or (result.evidence.verdict is not Verdict.holds and not result.evidence.figures):
        return
    kept = {
        "geotheory": __version__,
        "statement": result.claim.statement,
        "evidence": result.evidence.to_dict(),
        "seconds": result.seconds,
    }
    write_whole(path, json.dumps(kept, ensure_ascii=False))
