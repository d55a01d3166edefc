"""Run the checks, show the verdicts as they come, and keep the figures."""

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from geotheory import __version__
from geotheory.errors import UnknownName
from paper_checks.claims import CLAIMS, Claim, Evidence

__all__ = ["chosen", "run", "write_json"]

SCHEMA = 1


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


def run(claims: Sequence[Claim]) -> Iterator[tuple[Claim, Evidence, float]]:
    """Check one claim after the other; yields what was found and the seconds that it took."""
    for claim in claims:
        started = time.perf_counter()
        evidence = claim.run()
        yield claim, evidence, time.perf_counter() - started


def write_json(results: Sequence[tuple[Claim, Evidence, float]], directory: Path) -> Path:
    """Write `directory/report.json`: versions, and for each claim what it says and what was found."""
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "geotheory": __version__,
        "python": platform.python_version(),
        "machine": {"system": platform.system(), "processors": os.cpu_count()},
        "claims": [
            {
                "id": claim.id,
                "statement": claim.statement,
                "mark": claim.mark.value,
                "refuted by": claim.refuted_by,
                **evidence.to_dict(),
                "seconds": round(seconds, 3),
            }
            for claim, evidence, seconds in results
        ],
    }
    directory.mkdir(parents=True, exist_ok=True)
    target, partial = directory / "report.json", directory / "report.json.partial"
    partial.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(target)
    return target
