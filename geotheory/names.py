"""Names in index order: checked tuples of strings, and numbered names that are never written out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsIndex, overload

from geotheory.errors import FactsError, NotAName, UnknownName

__all__ = ["Numbered", "checked", "names_problem", "position", "same_names"]


@dataclass(frozen=True)
class Numbered(Sequence[str]):
    """The names `x0, x1, ..., x(size - 1)`, made when they are read: a million of them take no memory.

    Examples
    --------
    >>> names = Numbered("x", 10**9)
    >>> names[17], names.index("x123456789"), "x01" in names
    ('x17', 123456789, False)
    """

    prefix: str
    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> str | tuple[str, ...]:
        numbers = range(self.size)[index]
        return tuple(f"{self.prefix}{i}" for i in numbers) if isinstance(numbers, range) else f"{self.prefix}{numbers}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self.prefix}{i}" for i in range(self.size))

    def find(self, name: object) -> int | None:
        """The index of `name`, or None; found from its digits, without a search."""
        if not isinstance(name, str) or not name.startswith(self.prefix):
            return None
        digits = name[len(self.prefix) :]
        # The length first: Python refuses to convert absurdly long numbers. "x01" and "x٣" are other names than "x1", "x3".
        if len(digits) > len(str(self.size)) or not (digits.isascii() and digits.isdecimal()):
            return None
        number = int(digits)
        return number if str(number) == digits and number < self.size else None

    def __contains__(self, name: object) -> bool:
        return self.find(name) is not None

    def index(self, name: object, start: int = 0, stop: int | None = None) -> int:
        """The index of `name`, as `list.index` gives it."""
        number = self.find(name)
        if number is None or number not in range(self.size)[start:stop]:
            raise ValueError(f"{name!r} is not among the names")
        return number

    def __repr__(self) -> str:
        if self.size <= 2:
            return repr(tuple(self))
        return f"({self[0]!r}, ..., {self[-1]!r})"


def names_problem(name: str) -> str | None:
    """What is wrong with a name, or None: names must survive a text file and be visible in an error message."""
    if not name.strip():
        return "is empty"
    if "\0" in name:
        return "contains a NUL character"
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"cannot be written as UTF-8: {name!r}"
    return None


def checked(what: str, names: Sequence[str]) -> Sequence[str]:
    """`names` as an immutable sequence of different, visible names; `what` they name, in the plural, is for the errors.

    Raises
    ------
    NotAName
        A name is no string.
    FactsError
        A name is empty, contains NUL, cannot be written as UTF-8, or occurs twice.
    """
    if isinstance(names, Numbered):
        return names
    if isinstance(names, str):
        raise NotAName(f"{what} must be a sequence of names, not the one string {names!r}")
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise NotAName(f"{what}[{i}] must be a string, not {name!r} ({type(name).__name__})")
        problem = names_problem(name)
        if problem:
            raise FactsError(f"{what}[{i}] {problem}")
        if name in seen:
            raise FactsError(f"{what}[{seen[name]}] and {what}[{i}] have the same name {name!r}")
        seen[name] = i
    return tuple(names)


def same_names(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two sequences hold the same names in the same order, numbered or not."""
    if one is other:
        return True
    if len(one) != len(other):
        return False
    if isinstance(one, Numbered) and isinstance(other, Numbered):
        return one == other
    return all(a == b for a, b in zip(one, other))


def position(what: str, name: object, names: Sequence[str], numbers: Mapping[str, int] | None) -> int:
    """The index of `name`; `numbers` is the dictionary for names that are not numbered.

    Raises
    ------
    UnknownName
        With the nearest names, or the range of numbered ones.
    """
    if isinstance(names, Numbered):
        index = names.find(name)
        known: Sequence[str] = names if len(names) <= 8 else (f"{names[0]} to {names[-1]}",)
    else:
        index = numbers.get(name) if numbers is not None and isinstance(name, str) else None
        known = names
    if index is None:
        raise UnknownName(what, name, known)
    return index
