"""Do pretrained language models encode relations linearly? Probes of hidden states (needs the extra `models`)."""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from paper_checks.language_models.probe import Probe as Probe
    from paper_checks.language_models.probe import probe as probe
    from paper_checks.language_models.relations import Relation as Relation
    from paper_checks.language_models.states import LanguageModel as LanguageModel

__getattr__, __dir__, __all__ = attach(
    __name__, {"LanguageModel": "states", "Probe": "probe", "Relation": "relations", "probe": "probe"}
)
