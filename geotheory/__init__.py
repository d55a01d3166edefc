"""Factual recall in transformers: the vocabulary shared by constructions, bounds and paper checks.

Importing this package loads no torch; its names are looked up when they are first used.
"""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from geotheory import codes as codes
    from geotheory import errors as errors
    from geotheory import testing as testing
    from geotheory.facts import FactTable as FactTable
    from geotheory.transformer import Transformer as Transformer
    from geotheory.verification import Verification as Verification
    from geotheory.verification import verify as verify

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "FactTable": "facts",
        "Transformer": "transformer",
        "Verification": "verification",
        "verify": "verification",
        "codes": "codes",
        "errors": "errors",
        "testing": "testing",
    },
)
