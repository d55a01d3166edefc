"""Relations in words: subjects, attributes, and prompts that mention the subject."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from geotheory.errors import FactsError, UnknownName

__all__ = ["SHIPPED", "Relation", "read_relations"]

SHIPPED = Path(__file__).parent / "relations"
LEAST = 8
DEFAULT = ("The {relation} of {} is",)


@dataclass(frozen=True)
class Relation:
    """One relation.

    Attributes
    ----------
    name
        What it is called.
    templates
        Prompts with `{}` in the subject's place.
    facts
        Subject -> attribute.

    Raises
    ------
    FactsError
        Fewer than 8 subjects, an empty name, or a template without exactly one `{}`.
    """

    name: str
    templates: tuple[str, ...]
    facts: Mapping[str, str]

    def __post_init__(self) -> None:
        if len(self.facts) < LEAST:
            raise FactsError(f"relation {self.name!r} has {len(self.facts)} subjects; a probe needs {LEAST} at least")
        for template in self.templates:
            if template.count("{}") != 1:
                raise FactsError(f"template {template!r} of relation {self.name!r} must have one {{}} for the subject")
        empty = [subject for subject, attribute in self.facts.items() if not subject.strip() or not attribute.strip()]
        if empty or not self.templates:
            raise FactsError(f"relation {self.name!r} has an empty name, or no template")

    @property
    def subjects(self) -> list[str]:
        """In order."""
        return list(self.facts)

    def prompts(self, template: str) -> list[tuple[str, int, int]]:
        """`(text, start, end)` for each subject: where it stands in its prompt."""
        start = template.index("{}")
        return [(template.replace("{}", subject), start, start + len(subject)) for subject in self.facts]


def read_relations(path: str | Path) -> list[Relation]:
    """Relations from a file, or of a shipped set by its name (`countries`, `elements`, `states`).

    JSON: `{"relations": [{"name", "templates": ["The capital of {} is", ...], "facts": {subject: attribute, ...}}, ...]}`.
    CSV or TSV: columns `subject,relation,attribute`, with the template "The RELATION of {} is".

    Raises
    ------
    FactsError
        The file has another form; a subject has two attributes.
    UnknownName
        No such file and no such set.
    """
    path = Path(path)
    if not path.exists():
        shipped = SHIPPED / f"{path}.json"
        if not shipped.exists():
            raise UnknownName("file or set of relations", path, sorted(p.stem for p in SHIPPED.glob("*.json")))
        path = shipped
    if path.suffix == ".json":
        return _from_json(path)
    return _from_table(path)


def _from_json(path: Path) -> list[Relation]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return [Relation(r["name"], tuple(r["templates"]), dict(r["facts"])) for r in record["relations"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, FactsError):
            raise
        raise FactsError(
            f"{path} is no file of relations ({type(error).__name__}: {error}): it needs 'relations', each with 'name', "
            "'templates' and 'facts'"
        ) from error


def _from_table(path: Path) -> list[Relation]:
    found: dict[str, dict[str, str]] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, dialect="excel-tab" if path.suffix == ".tsv" else "excel")
        if not {"subject", "relation", "attribute"} <= set(rows.fieldnames or ()):
            raise FactsError(f"{path} needs the columns subject, relation, attribute, and has {rows.fieldnames}")
        for row in rows:
            facts = found.setdefault(row["relation"], {})
            if facts.setdefault(row["subject"], row["attribute"]) != row["attribute"]:
                raise FactsError(
                    f"{path}, line {rows.line_num}: {row['subject']!r} has two attributes under {row['relation']!r}: "
                    f"{facts[row['subject']]!r} and {row['attribute']!r}"
                )
    return [Relation(name, _default(name), facts) for name, facts in found.items()]


def _default(name: str) -> tuple[str, ...]:
    return tuple(template.replace("{relation}", name) for template in DEFAULT)
