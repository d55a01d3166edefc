"""Lower bounds on what any transformer needs to recall facts. Loads no torch."""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from bounds.information import Bound as Bound
    from bounds.information import fixed_unembedding as fixed_unembedding
    from bounds.information import width as width

__getattr__, __dir__, __all__ = attach(
    __name__, {"Bound": "information", "fixed_unembedding": "information", "width": "information"}
)
