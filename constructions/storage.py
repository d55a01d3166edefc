"""A construction on disk: one safetensors file with the weights, the facts and everything that is needed to ask it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from constructions.construction import Construction
from constructions.sizes import KINDS, size
from geotheory.decoding import Decoding
from geotheory.errors import CorruptModel, NotAModel
from geotheory.facts import FactTable
from geotheory.files import replacing
from geotheory.transformer import Transformer, TransformerShape

__all__ = ["FILE", "load", "save"]

FILE = "model.safetensors"
FORMAT = "geotheory model 1"
TABLE = "facts.table"
SIZED = ("bits", "residual", "hops_per_step", "forward", "hidden_layers")


def save(construction: Construction, directory: str | Path) -> Path:
    """Write `directory/model.safetensors`: weights, fact table, and in the metadata names, kind, options and shape.

    The file is written beside its place and moved there when it is whole, so that a full disk or Ctrl-C leaves an older model as it
    was.

    Returns
    -------
    Path
        Of the file.
    """
    facts = construction.facts
    tensors = {
        name: weight.detach().cpu().contiguous() for name, weight in construction.transformer.state_dict().items()
    }
    tensors[TABLE] = facts.table
    about = {
        "kind": construction.kind,
        "options": dict(construction.options),
        "shape": construction.transformer.shape.to_dict(),
        "dtype": str(construction.transformer.embedding.dtype).removeprefix("torch."),
        "decoding": vars(construction.decoding),
        "subjects": list(facts.subjects),
        "relations": list(facts.relations),
        "attributes": None if facts.attributes is facts.subjects else list(facts.attributes),
    }
    metadata = {"format": FORMAT, "geotheory": json.dumps(about, ensure_ascii=False), "sha256": _digest(tensors)}
    target = Path(directory) / FILE
    with replacing(target) as partial:
        save_file(tensors, partial, metadata)
    return target


def load(path: str | Path) -> Construction:
    """Read a model written by :func:`save`, from its directory or the file itself.

    Raises
    ------
    FileNotFoundError
        There is no such directory or file.
    NotAModel
        It is no geotheory model.
    CorruptModel
        It is one, but cut short or altered since it was written.
    """
    path = Path(path)
    if path.is_dir() and not (path / FILE).exists():
        raise NotAModel(f"{path} holds no {FILE}: it is not a model; make one with `geotheory build ... --out {path}`")
    file = path / FILE if path.is_dir() else path
    if not file.exists():
        raise FileNotFoundError(f"no model at {path}; make one with `geotheory build ... --out {path}`")
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise NotAModel(f"{file} is a safetensors file, but not a model of geotheory")
            names = opened.keys()
            tensors = {name: opened.get_tensor(name) for name in names}
    except SafetensorError as error:
        kind = CorruptModel if _named_as_model(file) else NotAModel
        raise kind(
            f"{file} cannot be read as a safetensors file ({error}): it is damaged, or something else"
        ) from error
    if _digest(tensors) != metadata.get("sha256"):
        raise CorruptModel(f"{file} was altered after it was written: its weights do not match their checksum")
    try:
        about: dict[str, Any] = json.loads(metadata["geotheory"])
        return _construction(about, tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CorruptModel(f"{file} does not describe a model that this version can read: {error}") from error


def _construction(about: dict[str, Any], tensors: dict[str, Tensor]) -> Construction:
    kind, options = about["kind"], about["options"]
    if kind not in KINDS:
        raise ValueError(f"unknown construction {kind!r}")
    subjects = tuple(about["subjects"])
    attributes = subjects if about["attributes"] is None else tuple(about["attributes"])
    facts = FactTable(tensors.pop(TABLE), subjects, tuple(about["relations"]), attributes)
    transformer = Transformer(TransformerShape.from_dict(about["shape"]), dtype=getattr(torch, about["dtype"]))
    transformer.load_state_dict(tensors)
    cost = size(
        kind,
        entities=facts.num_subjects,
        relations=facts.num_relations,
        hops=options["hops"],
        attributes=None if facts.is_composable else facts.num_attributes,
        **{name: options[name] for name in SIZED if name in options},
    )
    return Construction(kind, facts, transformer.requires_grad_(False), cost, Decoding(**about["decoding"]), options)


def _named_as_model(file: Path) -> bool:
    return file.name == FILE or FORMAT.encode() in file.read_bytes()[: 1 << 20]


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, dtypes, shapes and bytes of all tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
