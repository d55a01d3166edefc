"""A construction: facts, the transformer that recalls them, its size, and the proof from its weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import log10
from pathlib import Path
from typing import Any

import psutil
import torch
from jaxtyping import Int
from torch import Tensor

from constructions.blocks import subject_blocks
from constructions.certificates import Certificate
from constructions.sizes import Size, size
from constructions.subspaces import Subspaces
from geotheory.codes import Code, exact_range
from geotheory.decoding import Decoding
from geotheory.errors import InvalidArgument, NotComposable, TooLarge
from geotheory.evaluation import Evaluator
from geotheory.facts import FactTable
from geotheory.transformer import BlockShape, Transformer, TransformerShape

__all__ = ["Construction", "Plan", "ensure_fits", "plan"]


@dataclass(frozen=True, eq=False)
class Construction:
    """A transformer in closed form that recalls every fact of a table.

    Attributes
    ----------
    kind
        `"single_hop"`, `"direct"`, `"chain_of_thought"`, `"key_value"` or `"meet_in_middle"`.
    facts
        What it recalls.
    transformer
        The model: tokens `[batch, length]` to logits `[batch, attributes]`.
    size
        Its size, from the closed form; the weights have exactly this size.
    decoding
        How queries become tokens, and when the model abstains.
    options
        The options that it was built with.
    """

    kind: str
    facts: FactTable
    transformer: Transformer
    size: Size
    decoding: Decoding
    options: Mapping[str, Any]

    @property
    def hops(self) -> int:
        """Hops of a query; for chain of thought the most."""
        return self.decoding.hops

    @property
    def code(self) -> Code:
        """The attributes' code."""
        return Code(self.facts.num_attributes, self.options.get("bits", 1))

    @property
    def space(self) -> Subspaces:
        """Where the named parts of the hidden state lie."""
        return Subspaces(self.size.parts)

    def answer(
        self,
        subjects: Int[Tensor, "queries"] | Sequence[int],
        words: Int[Tensor, "queries hops"] | Sequence[Sequence[int]],
        *,
        steps: bool = False,
    ) -> Int[Tensor, "queries"] | Int[Tensor, "queries steps"]:
        """Attributes that the model answers with; -1 where it abstains.

        Parameters
        ----------
        subjects, words
            One query a row, by index; `words[:, 0]` is applied first.
        steps
            Return every entity that the model emits, the answer last; -1 from the step on at which it abstains.

        Raises
        ------
        InvalidArgument
            An index out of range, or a number of hops that the model does not answer.
        """
        x = torch.as_tensor(subjects, dtype=torch.int64)
        w = torch.as_tensor(words, dtype=torch.int64).reshape(len(x), -1)
        for what, index, count in (("subject", x, self.facts.num_subjects), ("relation", w, self.facts.num_relations)):
            if index.numel() and not (int(index.min()) >= 0 and int(index.max()) < count):
                raise InvalidArgument(f"{what} indices must lie in 0..{count - 1}")
        recalled = self.decoding.recall(Evaluator(self.transformer), x, w)
        return recalled.chain if steps else recalled.answer

    def certificate(self) -> Certificate:
        """Proof from the weights, in exact arithmetic, that every query is answered rightly (THEORY 4, "Certificate").

        The cost is that of reading the weights, times a polynomial in `R`, `k` and `log N`; queries are not enumerated.
        """
        with torch.no_grad():
            return import_module(f"constructions.{self.kind}").prove(self)  # type: ignore[no-any-return]

    def save(self, directory: str | Path) -> Path:
        """Write the model into `directory`; :func:`constructions.load` reads it back."""
        from constructions.storage import save

        return save(self, directory)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"<{self.kind}: {self.facts!r}, d={self.size.d}, width={self.size.width}{options}>"


@dataclass(frozen=True)
class Plan:
    """What a builder works with: the closed-form size, where everything lies, and the two codes."""

    kind: str
    facts: FactTable
    size: Size
    space: Subspaces
    attributes: Code
    relations: Code
    decoding: Decoding
    options: Mapping[str, Any]
    dtype: torch.dtype
    device: str | torch.device

    def transformer(self, *blocks: BlockShape, length: int = 0, blanks: int = 0) -> Transformer:
        """An all-zero transformer of the planned dimensions."""
        shape = TransformerShape(
            tokens=self.facts.num_subjects + self.facts.num_relations + blanks,
            attributes=self.facts.num_attributes,
            d=self.size.d,
            length=length,
            blocks=blocks,
            residual=self.options["residual"],
        )
        return Transformer(shape, dtype=self.dtype, device=self.device).requires_grad_(False)

    def words(self, code: Code, items: Tensor) -> Tensor:
        """Codewords of `items` in the model's dtype, where the model is."""
        return code.words(items, dtype=self.dtype, device=self.device)

    def write_subjects(self, transformer: Transformer, *words: Tensor) -> None:
        """Write the code of `T(x, word)` into the subject blocks, a block a word."""
        blocks = transformer.embedding[:, self.space["subject blocks"]]
        for rows, codes in subject_blocks(self.facts, self.attributes, *words):
            blocks[rows] = codes.to(blocks)

    def write_unembedding(self, transformer: Transformer, output: slice) -> None:
        """The attributes' code as a fixed unembedding, with the bias that makes amplitudes comparable."""
        code = self.attributes
        everything = torch.arange(code.count)
        transformer.unembedding[output] = self.words(code, everything).T
        transformer.unembedding_bias.copy_(code.bias(dtype=self.dtype, device=self.device))

    def construction(self, transformer: Transformer) -> Construction:
        """The finished construction."""
        return Construction(self.kind, self.facts, transformer, self.size, self.decoding, self.options)


def plan(
    kind: str,
    facts: FactTable,
    *,
    hops: int = 1,
    bits: int | None = None,
    residual: bool = False,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    **own: Any,
) -> Plan:
    """Check that the facts allow the construction and that it fits into memory, before anything is allocated.

    `bits` is None for constructions that have sign codes only; `own` are a construction's own options.

    Raises
    ------
    InvalidArgument
        A number out of range.
    NotComposable
        Several hops over facts whose attributes are not subjects.
    TooLarge
        The weights would not fit; the message names constructions that would.
    """
    attributes = None if facts.is_composable else facts.num_attributes
    if hops > 1 and attributes is not None:
        raise NotComposable(
            f"{hops} hops need attributes that are themselves subjects, and here they are not; ask one hop, or read the facts "
            "with shared=True"
        )
    N, R = facts.num_subjects, facts.num_relations
    sized: dict[str, Any] = {name: own[name] for name in ("hops_per_step", "forward", "hidden_layers") if name in own}
    if bits is not None:
        sized["bits"] = own["bits"] = bits
    cost = size(kind, entities=N, relations=R, hops=hops, attributes=attributes, residual=residual, **sized)
    ensure_fits(kind, N, R, hops, cost, dtype, device)
    j = own.get("hops_per_step", 0)
    # Where blanks fill up the last step, the blank relation has a code of its own.
    code = Code(facts.num_attributes, 1 if bits is None else bits)
    relation = Code(R + 1 if j and hops % j else R)
    slots = 0 if kind == "single_hop" else j or hops
    # Logits reach |u|^2 and their bias half of that; a pre-activation is a sum of the gate's terms and its bias.
    largest = max(
        code.length * code.amplitude**2 * 3 // 2, 2 * (code.amplitude + 1) * (max(1, slots) * relation.length + 1)
    )
    if largest > exact_range(dtype):
        name = str(dtype).removeprefix("torch.")
        raise InvalidArgument(
            f"{kind} with {bits or 1} bits a coordinate computes with integers up to {largest:,}, and {name} is exact up to "
            f"{int(exact_range(dtype)):,} only: take fewer bits or a wider dtype"
        )
    return Plan(
        kind=kind,
        facts=facts,
        size=cost,
        space=Subspaces(cost.parts),
        attributes=code,
        relations=relation,
        decoding=Decoding(N, R, hops, j, code.silence),
        options={"hops": hops, "residual": residual} | own,
        dtype=dtype,
        device=device,
    )


def _readable(n: int) -> str:
    """A number for a message; huge ones by their order of magnitude."""
    return f"{n:,}" if n < 10**24 else f"10^{int((n.bit_length() - 1) * log10(2))}"


def _available(device: str | torch.device) -> int:
    """Bytes that can still be allocated on a device."""
    if torch.device(device).type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def ensure_fits(kind: str, N: int, R: int, k: int, cost: Size, dtype: torch.dtype, device: str | torch.device) -> None:
    """Raise TooLarge, naming constructions that would fit, unless the weights fit into memory."""
    available = _available(device)
    needed = cost.parameters * dtype.itemsize
    if needed <= 0.9 * available:
        return
    candidates: list[tuple[str, str, dict[str, Any]]] = [("direct", "direct", {})] if k > 1 else []
    for j in sorted({1, 2, 3, k - 1} & set(range(1, k)), reverse=True):
        candidates.append(("chain_of_thought", f"chain_of_thought with hops_per_step={j}", {"hops_per_step": j}))
    candidates += [("key_value", "key_value", {}), ("meet_in_middle", "meet_in_middle", {})]
    fitting = []
    for other, name, options in candidates:
        if other == kind and not options:
            continue
        alternative = size(other, entities=N, relations=R, hops=k, **options)
        if alternative.parameters * dtype.itemsize <= 0.9 * available:
            fitting.append(f"{name} needs d = {alternative.d:,} and width {alternative.width:,}")
    raise TooLarge(
        f"{kind} with N={N:,}, R={R:,}, k={k:,} needs d = {_readable(cost.d)}, width {_readable(cost.width)} and "
        f"{_readable(needed // 10**9)} GB, and {available // 10**9:,} GB are free; "
        + ("; ".join(fitting) or "no other construction would fit either")
    )
