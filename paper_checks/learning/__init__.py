"""What gradient descent finds: training, thresholds, readouts, interventions, freeze and swap."""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from paper_checks.learning.setting import Setting as Setting
    from paper_checks.learning.train import Trained as Trained
    from paper_checks.learning.train import train as train

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"Setting": "setting", "Trained": "train", "train": "train", "Stack": "stack"},
)
