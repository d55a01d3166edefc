"""Every lower bound, once: `geotheory bound`, the formulas and the tests read these lists. Loads neither torch nor sympy."""

from bounds.chain_of_thought import RECORD as CHAIN_OF_THOUGHT
from bounds.curves import SPLIT, THRESHOLD
from bounds.fixed_unembedding import RECORD as FIXED_UNEMBEDDING
from bounds.free_unembedding import RECORD as FREE_UNEMBEDDING
from bounds.frozen_embedding import RECORD as FROZEN_EMBEDDING
from bounds.real_dimension import RECORD as REAL_DIMENSION
from bounds.record import CurveRecord, Record
from bounds.width import RECORD as WIDTH
from geotheory.errors import UnknownName

__all__ = ["BOUNDS", "CURVES", "named", "numbered"]

BOUNDS: dict[str, Record] = {
    record.name: record
    for record in (
        FIXED_UNEMBEDDING,
        FREE_UNEMBEDDING,
        FROZEN_EMBEDDING,
        WIDTH,
        REAL_DIMENSION,
        CHAIN_OF_THOUGHT,
    )
}

CURVES: dict[str, CurveRecord] = {"fixed_unembedding": THRESHOLD, "free_unembedding": SPLIT}
"""By the bound whose curve it is."""


def named(name: str) -> Record:
    """The bound of this name; hyphens may stand for underscores. Raises UnknownName with the nearest."""
    record = BOUNDS.get(name.replace("-", "_"))
    if record is None:
        raise UnknownName("bound", name, BOUNDS)
    return record


def numbered(theorem: str) -> Record:
    """The bound of this number in the theory; a curve's number is that of the bound that it evaluates, too."""
    numbers = {record.theorem: record for record in BOUNDS.values()}
    numbers |= {curve.theorem: BOUNDS[name] for name, curve in CURVES.items() if curve.theorem not in numbers}
    if theorem not in numbers:
        raise UnknownName("theorem", theorem, numbers)
    return numbers[theorem]
