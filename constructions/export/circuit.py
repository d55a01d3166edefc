"""The ground truth of an exported model, and how well somebody's claims about it agree with it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructions.chain_of_thought import filled_up, step_words
from constructions.construction import Construction
from constructions.export.equalized import Equalized
from geotheory.errors import InvalidArgument
from geotheory.words import all_words

__all__ = ["FILE", "Score", "ground_truth", "score"]

FILE = "circuit.json"
FORMAT = "geotheory circuit 1"


def ground_truth(
    construction: Construction,
    equalized: Equalized,
    heads: Sequence[tuple[int, Sequence[tuple[int, int]]]],
    dimension: int,
) -> dict[str, Any]:
    """What everything in the exported model does, by name; the schema is in `docs/circuit.md`.

    `heads` gives for each head of the checkpoint the head of the construction that it is part of, and the coordinates that it
    copies; `dimension` is the checkpoint's hidden size.
    """
    facts, d = construction.facts, construction.transformer.shape.d
    half, count = equalized.embedding.shape[1], len(equalized.moves)
    extra = {
        "complements": (d, d + count),
        "fetched complements": (d + count, d + 2 * count),
        "one": (equalized.one, equalized.one + 1),
        "token pad": (equalized.one + 1, equalized.one + 2),
        "position pad": (equalized.one + 2, equalized.one + 3),
    }
    named = {name: (part.start, part.stop) for name, part in construction.space.items()} | extra
    roles = head_roles(construction)
    return {
        "format": FORMAT,
        "construction": construction.kind,
        "options": dict(construction.options),
        "entities": facts.num_subjects,
        "relations": list(facts.relations),
        "hops": construction.hops,
        "residual stream": {
            "dimension": dimension,
            "mirror": half,
            "subspaces": {name: {"start": start, "stop": stop} for name, (start, stop) in named.items()},
        },
        "heads": [
            {"layer": 0, "head": i, "role": roles[whole], "copies": [list(pair) for pair in pairs]}
            for i, (whole, pairs) in enumerate(heads)
        ],
        "neurons": [
            {"layer": layer, "neuron": n, **role}
            for layer in range(len(construction.transformer.blocks))
            for n, role in enumerate(neuron_roles(construction, layer))
        ],
    }


def head_roles(c: Construction) -> list[str]:
    """Which token each head of the construction fetches."""
    heads = len(c.transformer.blocks[0].attention.heads)  # type: ignore[union-attr]
    if c.transformer.shape.length == 0:
        return ["average of subject and relation"]
    if c.kind == "chain_of_thought":
        j = c.decoding.hops_per_step
        return [*(f"relation {i + 1} of the step" for i in range(j)), "subject of the step"]
    return [*(f"relation {i + 1}" for i in range(heads - 1)), "subject"]


def neuron_roles(c: Construction, layer: int) -> Iterator[dict[str, Any]]:
    """What each neuron of a layer computes, in order."""
    facts, R, k, m = c.facts, c.facts.num_relations, c.hops, c.code.length

    def named(word: Sequence[int]) -> list[str]:
        return [facts.relations[r] if r < R else "<blank>" for r in word]

    def selects(words: Any) -> Iterator[dict[str, Any]]:
        for word in words.tolist():
            for j in range(m):
                role = f"select {' '.join(named(word))} {j}"
                yield {"role": role, "type": "select", "word": named(word), "coordinate": j}

    def places(words: Any) -> Iterator[dict[str, Any]]:
        for word in words.tolist():
            for sign in "+-":
                for j in range(m):
                    role = f"place {' '.join(named(word))} {sign}{j}"
                    yield {"role": role, "type": "place", "word": named(word), "sign": sign, "coordinate": j}

    if c.kind in ("single_hop", "direct"):
        yield from selects(all_words(R, k))
    elif c.kind == "chain_of_thought":
        yield from selects(filled_up(step_words(R, k, c.decoding.hops_per_step), R))
    elif c.kind == "key_value":
        for r, relation in enumerate(facts.relations):
            for x, subject in enumerate(facts.subjects):
                a = int(facts.table[r, x])
                attribute = facts.attributes[a] if a >= 0 else None
                role = f"fact {subject} {relation}"
                yield {"role": role, "type": "fact", "subject": subject, "relation": relation, "attribute": attribute}
    else:
        f, layers = c.options["forward"], c.options["hidden_layers"]
        if layers == 2 and layer == 0:
            yield from selects(all_words(R, f))
        else:
            yield from places(all_words(R, k - f if layers == 2 else k))


@dataclass(frozen=True)
class Score:
    """Precision and recall of claims about heads and neurons; None where nothing was claimed, or there is nothing."""

    heads: tuple[float | None, float | None]
    neurons: tuple[float | None, float | None]
    wrong: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {
            part: {"precision": precision, "recall": recall}
            for part, (precision, recall) in (("heads", self.heads), ("neurons", self.neurons))
        } | {"wrong": list(self.wrong)}

    def __str__(self) -> str:
        def shown(value: float | None) -> str:
            return "-" if value is None else f"{value:.1%}"

        lines = [
            f"{part:8} precision {shown(precision)}, recall {shown(recall)}"
            for part, (precision, recall) in (("heads", self.heads), ("neurons", self.neurons))
        ]
        return "\n".join(lines + [f"wrong: {claim}" for claim in self.wrong])


def score(truth: Mapping[str, Any] | str | Path, claims: Mapping[str, Any] | str | Path) -> Score:
    """Compare claims with the truth: `{"heads": [{"layer", "head", "role"}], "neurons": [{"layer", "neuron", "role"}]}`.

    Parameters
    ----------
    truth, claims
        As read from JSON, or the path of a file, or of the directory of the exported model.

    Raises
    ------
    InvalidArgument
        They are no such records.

    Examples
    --------
    >>> heads = [{"layer": 0, "head": 0, "role": "subject"}, {"layer": 0, "head": 1, "role": "relation 1"}]
    >>> print(score({"heads": heads}, {"heads": heads[:1]}))
    heads    precision 100.0%, recall 50.0%
    neurons  precision -, recall -
    """
    known, claimed = _read(truth), _read(claims)
    wrong: list[str] = []

    def compare(part: str, index: str) -> tuple[float | None, float | None]:
        try:
            true, said = (
                {(item["layer"], item[index], item["role"]) for item in record.get(part, [])}
                for record in (known, claimed)
            )
        except (KeyError, TypeError) as error:
            raise InvalidArgument(f"each of {part!r} needs layer, {index} and role: {error}") from error
        wrong.extend(f"layer {layer}, {index} {i}: {role}" for layer, i, role in sorted(said - true)[:10])
        right = len(true & said)
        return right / len(said) if said else None, right / len(true) if true else None

    return Score(compare("heads", "head"), compare("neurons", "neuron"), tuple(wrong))


def _read(record: Mapping[str, Any] | str | Path) -> Mapping[str, Any]:
    if isinstance(record, Mapping):
        return record
    path = Path(record)
    path = path / FILE if path.is_dir() else path
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidArgument(f"{path} holds no record with 'heads' and 'neurons'")
    return found
