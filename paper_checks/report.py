"""The record of a run: `report.json`, from which the page is made."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from geotheory import __version__
from geotheory.files import write_whole
from paper_checks.runner import Result
from paper_checks.scope import Scope

__all__ = ["SCHEMA", "record", "summary", "write_json"]

SCHEMA = 2


def record(results: Sequence[Result], scope: Scope) -> dict[str, Any]:
    """What was run and found, as plain JSON-ready values; see `docs/report.md` for the schema."""
    return {
        "schema": SCHEMA,
        "geotheory": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("torch", "numpy", "sympy", "networkx", "python-flint")},
        "machine": {"system": platform.system(), "processors": os.cpu_count(), "device": scope.device},
        "full": scope.full,
        "claims": [
            {
                "id": claim.id,
                "statement": claim.statement,
                "mark": claim.mark.value,
                "refuted by": claim.refuted_by,
                "proof": claim.proof,
                "formula": claim.formula,
                "command": claim.command,
                **evidence.to_dict(),
                "seconds": round(seconds, 3),
            }
            for claim, evidence, seconds in ((r.claim, r.evidence, r.seconds) for r in results)
        ],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def summary(found: Mapping[str, Any]) -> str:
    """One sentence: how many claims hold, fail, and were not run."""
    verdicts = [claim["verdict"] for claim in found["claims"]]
    parts = [f"{verdicts.count(v)} {v}" for v in ("holds", "fails", "not run") if v in verdicts]
    return ", ".join(parts).replace("holds", "hold").replace("1 hold", "1 holds") or "no claim"


def write_json(found: Mapping[str, Any], directory: Path) -> Path:
    """Write `directory/report.json`."""
    return write_whole(directory / "report.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
