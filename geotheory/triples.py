"""Facts as triples of names: gathered without contradiction, and put into an order that keeps the names' order."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from jaxtyping import Int
from torch import Tensor

from geotheory.csv_files import ROLES, Triple
from geotheory.errors import FactsError, NotAName
from geotheory.names import names_problem

__all__ = ["Facts", "by_first_appearance", "checked_rows", "gather"]

# (subject, relation) -> the attribute, and the number of the row that says so
Facts = dict[tuple[str, str], tuple[str, int]]


def checked_rows(rows: Iterable[Sequence[object]]) -> Iterator[tuple[int, Triple]]:
    """The rows, numbered from 1, each of them three names.

    Raises
    ------
    NotAName, FactsError
        A row is no triple, or holds something that is no name.
    """
    for number, row in enumerate(rows, start=1):
        if isinstance(row, (str, bytes)) or not isinstance(row, Sequence):
            raise NotAName(f"row {number} must be a triple (subject, relation, attribute), not {row!r}")
        if len(row) != 3:
            raise FactsError(
                f"row {number} must be a triple (subject, relation, attribute); it has {len(row)} cells: {row!r}"
            )
        for role, name in zip(ROLES, row):
            if not isinstance(name, str):
                raise NotAName(f"row {number}: the {role} must be a string, not {name!r} ({type(name).__name__})")
            problem = names_problem(name)
            if problem:
                raise FactsError(f"row {number}: the {role} {problem}")
        yield number, tuple(row)  # type: ignore[misc]  # three strings, as checked


def gather(rows: Iterable[tuple[int, Triple]], unit: str | None, source: str = "") -> Facts:
    """The facts without repetitions; `unit` ("line") and `source` (a file) say in an error where a numbered row stands.

    Raises
    ------
    FactsError
        A subject has two attributes under one relation; the message names both rows, unless `unit` is None.
    """
    facts: Facts = {}
    for number, (subject, relation, attribute) in rows:
        first, earlier = facts.setdefault((subject, relation), (attribute, number))
        if first != attribute:
            one, other = (
                f"{a!r} ({unit} {n})" if unit else repr(a) for a, n in ((first, earlier), (attribute, number))
            )
            raise FactsError(
                f"{source}{subject!r} has two attributes under {relation!r}: {one} and {other}; "
                "a relation gives each subject one attribute"
            )
    return facts


def by_first_appearance(table: Int[Tensor, "R N"], shared: bool) -> Iterator[tuple[int, int, int]]:
    """Facts `(x, r, a)` so ordered that names first appear in index order, if any order does that; else some order.

    A fact may be written as soon as the names before its own have appeared. Once it may, it always may: so writing
    whatever may be written never blocks another fact.
    """
    # How many subjects (if shared, entities), relations and attributes have appeared.
    appeared = [0, 0, 0]
    facts = [(x, r, a) for x, column in enumerate(table.T) for r, a in enumerate(column.tolist()) if a >= 0]
    pending = deque(facts)
    waiting: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    while pending:
        fact = x, r, a = pending.popleft()
        # Of two new entities in one fact the subject appears first.
        needed = ((x if a == x + 1 else max(x, a)), r, 0) if shared else fact
        blocked = next((kind for kind in range(3) if appeared[kind] < needed[kind]), None)
        if blocked is not None:
            waiting.setdefault((blocked, needed[blocked]), []).append(fact)
            continue
        yield fact
        for kind, last in enumerate((max(x, a), r, 0) if shared else fact):
            while appeared[kind] <= last:
                appeared[kind] += 1
                pending.extendleft(reversed(waiting.pop((kind, appeared[kind]), [])))
    yield from sorted(fact for facts in waiting.values() for fact in facts)
