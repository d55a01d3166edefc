"""What is trained, and how: everything that decides the result of a run but its seed."""

from dataclasses import asdict, dataclass, fields, replace
from math import cos, pi
from typing import Any

import torch

from geotheory.decoding import Decoding
from geotheory.errors import InvalidArgument, TooLarge, UnknownName, positive_integer
from geotheory.transformer import BlockShape, HeadShape, TransformerShape

__all__ = ["FROZEN", "SCHEDULES", "Setting"]

FROZEN = ("none", "subjects", "unembedding", "embeddings", "decoder")
SCHEDULES = ("cosine", "linear", "constant")
ATTENTION = ("uniform", "learned")
DTYPES = ("float32", "float64")
# Queries are shuffled by their numbers; beyond so many the order alone would take gigabytes.
MOST_QUERIES = 50_000_000


@dataclass(frozen=True)
class Setting:
    """One configuration; several seeds of it train as one batch.

    Attributes
    ----------
    entities, relations, hops
        `N` entities, `R` random bijections of them, queries of `k` hops.
    d, width
        Dimension of the hidden state, and neurons of the MLP (None: `4 d`).
    chain_of_thought
        Emit every entity on the way (trained with teacher forcing, evaluated on its own emissions) instead of the answer at once.
    attention
        `"uniform"` or `"learned"`; None: uniform for one hop. Uniform attention does not see the order of several relations.
    residual
        Whether the block has a residual stream.
    frozen
        What stays at its initial values: `"none"`, the `"subjects"` rows of W_E (the paper's control), the `"unembedding"` (so that
        attribute vectors cannot come to depend on the facts), the `"embeddings"` (both of these: the setting of B4), or the
        `"decoder"` (all but the subject rows: freeze and swap).
    subject_scale, unembedding_scale
        Standard deviations of the initial coordinates of the subjects' rows and of the unembedding (None: `1 / sqrt(d)`). With
        small rows and a large unembedding, the rows move to the attribute vectors instead of these to them.
    steps, batch
        Optimizer steps at most, and queries a step (None: all of them).
    learning_rate, schedule, warmup, weight_decay
        Of AdamW. The schedule runs over `steps`, after `warmup` steps of linear increase.
    evaluate_every
        Steps between two evaluations of the whole table.
    stop
        End a run at the first evaluation with all queries right and a positive margin.
    dtype
        `"float32"` or `"float64"`.

    Raises
    ------
    InvalidArgument, UnknownName, TooLarge
        On construction, naming the field.
    """

    entities: int
    relations: int
    d: int
    hops: int = 1
    width: int | None = None
    chain_of_thought: bool = False
    attention: str | None = None
    residual: bool = False
    frozen: str = "none"
    subject_scale: float = 1.0
    unembedding_scale: float | None = None
    steps: int = 4000
    batch: int | None = None
    learning_rate: float = 3e-3
    schedule: str = "cosine"
    warmup: int = 0
    weight_decay: float = 0.0
    evaluate_every: int = 100
    stop: bool = True
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("entities", "relations", "d", "hops", "steps", "evaluate_every"):
            positive_integer(name, getattr(self, name))
        positive_integer("warmup", self.warmup, least=0)
        for name in ("width", "batch"):
            if getattr(self, name) is not None:
                positive_integer(name, getattr(self, name))
        for name, known in (("frozen", FROZEN), ("schedule", SCHEDULES), ("dtype", DTYPES), ("attention", ATTENTION)):
            value = getattr(self, name)
            if value not in known and not (name == "attention" and value is None):
                raise UnknownName(name, value, known)
        for name in ("learning_rate", "subject_scale", "unembedding_scale"):
            value = getattr(self, name)
            if not 0 < (1.0 if name == "unembedding_scale" and value is None else value) < float("inf"):
                raise InvalidArgument(f"{name} must be above 0, not {value!r}")
        if not 0 <= self.weight_decay * self.learning_rate < 1:
            raise InvalidArgument(
                f"weight_decay = {self.weight_decay!r} at learning_rate = {self.learning_rate!r}: their product is the share of a "
                "weight that a step takes away, and must lie in [0, 1)"
            )
        if self.hops > 1 and self.attention == "uniform":
            raise InvalidArgument(f"uniform attention does not see the order of {self.hops} relations: take 'learned'")
        if self.queries > MOST_QUERIES:
            raise TooLarge(
                f"{self.entities:,} entities and {self.relations:,}^{self.hops} words make {self.queries:,} queries to train on, "
                f"more than {MOST_QUERIES:,}: take fewer hops, relations or entities"
            )

    @property
    def queries(self) -> int:
        """`N R^k`."""
        count: int = self.entities * self.relations**self.hops
        return count

    @property
    def neurons(self) -> int:
        """Width of the MLP."""
        return self.width if self.width is not None else 4 * self.d

    @property
    def decoding(self) -> Decoding:
        """How the trained model is asked; it never abstains."""
        return Decoding(self.entities, self.relations, self.hops, hops_per_step=int(self.chain_of_thought))

    @property
    def shape(self) -> TransformerShape:
        """One block. Uniform: one head, no positions. Learned: a head for each token that must be fetched, positions."""
        learned = self.attention == "learned" or (self.attention is None and self.hops > 1)
        if learned:
            heads = (HeadShape(self.d, self.d),) * (2 if self.chain_of_thought else self.hops + 1)
            length = 2 * self.hops if self.chain_of_thought else self.hops + 1
        else:
            heads, length = (HeadShape(0, self.d),), 0
        return TransformerShape(
            self.entities + self.relations,
            self.entities,
            self.d,
            length,
            (BlockShape(self.neurons, heads),),
            self.residual,
        )

    @property
    def torch_dtype(self) -> torch.dtype:
        """Of the weights."""
        return {"float32": torch.float32, "float64": torch.float64}[self.dtype]

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / (self.warmup + 1)
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        falls = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + cos(pi * done)) / 2}
        return self.learning_rate * falls[self.schedule]

    def but(self, **changes: Any) -> "Setting":
        """A copy with some fields changed."""
        return replace(self, **changes)

    def differences(self, other: "Setting") -> list[str]:
        """`field: this, other` for each field in which they differ."""
        return [
            f"{f.name}: {getattr(self, f.name)!r}, {getattr(other, f.name)!r}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(other, f.name)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)
