"""The paper's claims, each with its check and its evidence."""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from paper_checks.claims import CLAIMS as CLAIMS
    from paper_checks.claims import Claim as Claim
    from paper_checks.claims import Evidence as Evidence

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "CLAIMS": "claims",
        "Claim": "claims",
        "Evidence": "claims",
        "report": "report",
        "runner": "runner",
        "theory": "theory",
    },
)
