"""Constructions as checkpoints that other tools load, with the circuit that is known to be in them (extra `models`)."""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from constructions.export.circuit import Score as Score
    from constructions.export.circuit import ground_truth as ground_truth
    from constructions.export.circuit import score as score
    from constructions.export.opt import Export as Export
    from constructions.export.opt import to_opt as to_opt

__getattr__, __dir__, __all__ = attach(
    __name__, {"Export": "opt", "Score": "circuit", "ground_truth": "circuit", "score": "circuit", "to_opt": "opt"}
)
