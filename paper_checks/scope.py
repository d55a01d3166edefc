"""How far checks go, and what they may leave behind."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["NotRun", "Scope"]


@dataclass(frozen=True)
class Scope:
    """What a check is given.

    Attributes
    ----------
    full
        The paper's sizes, in hours, instead of smaller ones in seconds.
    directory
        Where long work keeps what it has, to go on from; None: nowhere.
    device
        Where models are trained.
    model
        The pretrained model that is probed: a name on the hub, a directory, or `minilm`.
    """

    full: bool = False
    directory: Path | None = None
    device: str = "cpu"
    model: str = "minilm"


class NotRun(Exception):
    """A check cannot be made here; the message says why."""
