"""The exceptions: each names the offending thing and the way out."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = [
    "CorruptModel",
    "FactsError",
    "GeotheoryError",
    "InvalidArgument",
    "NotAModel",
    "NotAName",
    "NotBijective",
    "NotComposable",
    "TooLarge",
    "UnknownName",
    "nearest",
    "positive_integer",
]


class GeotheoryError(Exception):
    """Base of every error that geotheory raises on purpose."""


class InvalidArgument(GeotheoryError, ValueError):
    """An argument lies outside the range in which the statement makes sense."""


class FactsError(GeotheoryError, ValueError):
    """The facts cannot be read, or contradict one another."""


class NotAName(FactsError, TypeError):
    """Something other than a string stands where a name belongs."""


class NotBijective(FactsError):
    """A construction needs every relation to be a permutation of the entities, and one is not."""


class NotComposable(FactsError):
    """A query of several hops needs attributes that are themselves subjects."""


class UnknownName(GeotheoryError, KeyError, ValueError):
    """A subject, relation, kind or other name that is not known here."""

    def __init__(self, what: str, name: object, known: Iterable[object] = ()) -> None:
        """`what` kind of thing is unknown, its `name`, and the `known` names among which the nearest are looked for."""
        super().__init__(f"unknown {what} {str(name)!r}{nearest(str(name), known)}")

    def __str__(self) -> str:
        # KeyError would show the message in quotes.
        return str(self.args[0])


class NotAModel(GeotheoryError, ValueError):
    """The file or directory does not hold a geotheory model."""


class CorruptModel(NotAModel):
    """The file is a geotheory model, but damaged."""


class TooLarge(GeotheoryError, MemoryError):
    """The request would not fit into memory or would not end; raised before anything is allocated."""


def nearest(name: str, known: Iterable[object]) -> str:
    """The hint that ends an error about an unknown name: the few names like it, or the first of all names.

    Examples
    --------
    >>> nearest("wive", ["wife", "husband", "mother"])
    '; did you mean wife?'
    """
    names = [str(n) for n in known]
    folded: dict[str, str] = {}
    for n in names:
        folded.setdefault(n.casefold(), n)
    close = [folded[n] for n in get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    if close:
        return f"; did you mean {_either(close)}?"
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"; known: {shown}" if shown else ""


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def positive_integer(what: str, value: object, least: int = 1) -> int:
    """`value` as an `int`; refuses fractions, booleans and anything below `least`, naming `what`.

    Raises
    ------
    InvalidArgument
        If `value` is no integer or is below `least`.
    """
    try:
        number = None if isinstance(value, bool) else value.__index__()  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        number = None
    if not isinstance(number, int):
        raise InvalidArgument(f"{what} must be a whole number, not {value!r}")
    if number < least:
        raise InvalidArgument(f"{what} must be at least {least}, not {number}")
    return number
