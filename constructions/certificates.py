"""Proofs from the weights that a construction answers every query rightly, in exact arithmetic (THEORY 4, "Certificate").

Nothing is sampled and no tolerance is used. Integer matrices are multiplied in float64 with all partial sums below `2^53`, which is
exact; leakage of a softmax is bounded by Arb balls. What depends on a word factors over its positions, so words are never
enumerated beyond reading the weights that belong to them.

This file holds what every proof uses: the statements, the subjects' rows, the attention. The layers are in
:mod:`constructions.layer_proofs`, and each construction's file puts its own proof together.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf, nextafter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from geotheory.codes import exact_range
from geotheory.evaluation import compress, is_finite
from geotheory.transformer import Attention, Head

if TYPE_CHECKING:
    from constructions.construction import Construction

__all__ = ["Certificate", "Proof", "Stage", "Statement"]

EXACT = 2.0**53
"""Integers below this are exact in float64, and so are their sums and products that stay below it."""


@dataclass(frozen=True)
class Statement:
    """One step of a proof: what is claimed, whether it holds, and the figure that shows it."""

    name: str
    holds: bool
    figure: str

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'FAILS'}  {self.name}: {self.figure}"


@dataclass(frozen=True)
class Certificate:
    """The outcome of a proof.

    Attributes
    ----------
    kind
        Of the construction.
    margin
        Guaranteed lead of the right attribute's logit over every other, `2 (1 - epsilon)` rounded down; 0 if the proof fails.
    epsilon
        Bound on the error that the softmax's leakage causes in a coordinate of the output, rounded up; 0 with uniform or hard
        attention. It speaks of real arithmetic on the stored weights; rounding in a float dtype comes on top.
    statements
        The steps in order; a proof ends at the first that fails.
    """

    kind: str
    margin: float
    epsilon: float
    statements: tuple[Statement, ...]

    @property
    def holds(self) -> bool:
        """Whether every statement holds: every query is answered rightly, and silence kept where a fact is missing."""
        return all(statement.holds for statement in self.statements)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {
            "kind": self.kind,
            "holds": self.holds,
            "margin": self.margin,
            "epsilon": self.epsilon,
            "statements": [vars(s) for s in self.statements],
        }

    def __str__(self) -> str:
        verdict = f"proved: margin {self.margin:g}, epsilon {self.epsilon:.3g}" if self.holds else "not proved"
        # A chain of thought makes most of its statements anew at every step.
        times = Counter(map(str, self.statements))
        lines = (f"  {line}" + (f" ({n} times)" if n > 1 else "") for line, n in times.items())
        return "\n".join([f"{self.kind}: {verdict}", *lines])


class _NotProved(Exception):
    """Ends a proof at its first failing statement."""


def exact(weight: Tensor) -> Tensor:
    """A weight in float64, which holds every float of every dtype exactly."""
    return weight.detach().to(torch.float64)


def product(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` for integer matrices; NaN if a partial sum might not be exact (and NaN satisfies no inequality)."""
    largest = float(a.abs().amax()) * float(b.abs().amax()) * a.shape[-1] if a.numel() and b.numel() else 0.0
    result = compress(a) @ b
    return result if largest < EXACT else torch.full_like(result, torch.nan)


@dataclass
class Stage:
    """Pre-activations of a layer (and, behind them, what a residual stream carries past it) as a function of the query.

    A query enters the hidden state as an *entity part* (the subject's row) and one *slot* a relation:
    `pre = part . entity + sum_i slots[i][r_i] + const`, with an error that is bounded in units of `2 delta` (`delta`: the largest
    share of attention that goes astray), hence by integers too.

    Attributes
    ----------
    entity
        `[e, columns]`: applied to the entity part, a vector of `e` coordinates.
    slots
        One table `[R, columns]` a relation of the query; row `r` is what relation `r` adds.
    const
        `[columns]`.
    error
        `[columns]`, in units of `2 delta`.
    """

    entity: Tensor
    slots: list[Tensor]
    const: Tensor
    error: Tensor

    def columns(self, which: slice) -> "Stage":
        """The same for some of the columns."""
        return Stage(
            self.entity[:, which], [slot[:, which] for slot in self.slots], self.const[which], self.error[which]
        )


@dataclass
class Proof:
    """The statements made so far about a construction, and the tools to make more."""

    construction: "Construction"
    statements: list[Statement] = field(default_factory=list)
    delta: float = 0.0
    epsilon: float = 0.0
    shut: list[tuple[float, float]] = field(default_factory=list)
    """(slack, error in units of `2 delta`) of every layer's shut neurons."""

    @classmethod
    @contextmanager
    def of(cls, construction: "Construction") -> Iterator["Proof"]:
        """A proof whose body ends at the first statement that fails."""
        proof = cls(construction)
        with suppress(_NotProved):
            yield proof

    def require(self, name: str, holds: bool | Tensor, figure: str) -> None:
        """Record a statement; the proof goes on only if it holds."""
        self.statements.append(Statement(name, bool(holds), figure))
        if not holds:
            raise _NotProved

    def certificate(self) -> Certificate:
        """What has been proved."""
        holds = all(s.holds for s in self.statements)
        margin = nextafter(2 * (1 - self.epsilon), -inf) if self.epsilon else 2.0
        return Certificate(self.construction.kind, margin if holds else 0.0, self.epsilon, tuple(self.statements))

    # Statements about the weights at large

    def integers(self) -> None:
        """All weights are finite, and those that are not compared with a code later are integers, and small."""
        transformer, N = self.construction.transformer, self.construction.facts.num_subjects
        infinite = [name for name, weight in transformer.named_parameters() if not is_finite(weight)]
        self.require(
            "weights are finite", not infinite, ", ".join(infinite) or f"{transformer.num_parameters:,} of them"
        )
        largest, whole = 0.0, True
        for name, weight in transformer.named_parameters():
            part = weight[N:] if name == "embedding" else weight
            if name == "unembedding" or name.endswith("query"):
                continue
            whole = whole and bool((part == part.round()).all())
            largest = max(largest, float(part.abs().amax())) if part.numel() else largest
        self.require("weights are integers", whole and largest < 2**31, f"largest magnitude {largest:g}")

    def rows(self, coordinates: slice, wanted: Iterable[tuple[slice, Tensor]]) -> None:
        """Subjects' rows are `wanted` (runs of subjects and their codes) on `coordinates`, and zero elsewhere."""
        rows = self.construction.transformer.embedding
        wrong = outside = 0
        for run, codes in wanted:
            part = rows[run]
            wrong += int((part[:, coordinates] != codes.to(part)).any(1).sum())
            outside += int(part[:, : coordinates.start].count_nonzero() + part[:, coordinates.stop :].count_nonzero())
        self.require(
            "subjects' rows are their codes, and nothing else",
            wrong == 0 and outside == 0,
            f"{wrong} wrong rows, {outside} entries outside the codes",
        )

    def exact_in_dtype(self, what: str, largest: float) -> None:
        """Integers of this size, and so all sums on the way to them, are exact in the weights' dtype."""
        dtype = self.construction.transformer.embedding.dtype
        name = str(dtype).removeprefix("torch.")
        claim = f"{what} are exact in {name}"
        self.require(claim, largest <= exact_range(dtype), f"at most {largest:g} <= {exact_range(dtype):g}")

    # Attention

    def attend(
        self, reader: int, targets: list[int] | None, entity: slice, amplitude: int, entities: list[int]
    ) -> Stage:
        """What the first layer sees at position `reader`, if head `h` fetches position `targets[h]` (None: all uniformly).

        Subjects' rows are known to vanish outside `entity` and to be bounded by `amplitude`; `entities` are the positions up to
        the reader that hold entities, the last of them the one that counts.
        """
        c = self.construction
        transformer, N = c.transformer, c.facts.num_subjects
        block = transformer.blocks[0]
        attention = block.attention
        assert isinstance(attention, Attention)
        length = reader + 1
        tokens = exact(transformer.embedding[N:])
        # The blank has a code, and so can be fetched, only where it fills up the last step of a chain.
        letters = tokens[: c.facts.num_relations + int(bool(tokens[c.facts.num_relations :].any()))]
        place = tokens.new_zeros(length, tokens.shape[1])
        if transformer.position is not None:
            place = exact(transformer.position[:length])
        target = self._after_attention()

        heads = list(attention.heads)
        self.require(
            "attention depends on positions only",
            all(self._blind(head, entity, tokens) for head in heads),
            f"{len(heads)} heads at position {reader}",
        )
        if targets is not None:
            self._fetches(attention, place, targets)
        moved = [product(exact(head.value), product(exact(head.output), target)) for head in heads]

        def arriving(i: int, rows: Callable[[Tensor], Tensor]) -> Tensor:
            """What reaches the layer from position `i`; `rows(map)` applies a map to what stands there."""
            shares = [1 / length if targets is None else float(targets[h] == i) for h in range(len(heads))]
            parts = [share * rows(m) for share, m in zip(shares, moved) if share]
            if block.residual and i == reader:
                parts.append(rows(target))
            return torch.stack(parts).sum(0) if parts else torch.zeros_like(rows(target))

        stage = Stage(
            entity=arriving(entities[-1], lambda m: m[entity]),
            slots=[
                arriving(i, lambda m, i=i: product(letters + place[i], m))  # type: ignore[misc]
                for i in range(length)
                if i not in entities
            ],
            const=torch.nn.functional.pad(exact(block.mlp.bias_in), (0, target.shape[1] - len(block.mlp.bias_in))),
            error=torch.zeros_like(target[0]),
        )
        for i in entities:
            stage.const = stage.const + arriving(i, lambda m, i=i: product(place[i : i + 1], m))[0]  # type: ignore[misc]
        read = [i for i in entities if bool(arriving(i, lambda m: m[entity]).any())]
        self.require("only the newest entity is read", read == entities[-1:], f"position {read} of {entities}")
        if targets is not None and not attention.hard:
            for m in moved:
                # The largest value that a misplaced unit of attention can bring in.
                stage.error += amplitude * m[entity].abs().sum(0)
                stage.error += product(tokens, m).abs().amax(0) + product(place, m).abs().amax(0)
        return stage

    def _after_attention(self) -> Tensor:
        """`[W_in | the coordinates that a residual stream carries on]` of the first block."""
        block = self.construction.transformer.blocks[0]
        weight = exact(block.mlp.weight_in)
        if not block.residual:
            return weight
        need = self.needed(0)
        carried = torch.zeros(weight.shape[0], len(need), dtype=torch.float64)
        carried[need, torch.arange(len(need))] = 1
        return torch.cat([weight, carried], 1)

    def needed(self, layer: int) -> Tensor:
        """Coordinates that anything after block `layer` reads."""
        transformer = self.construction.transformer
        needed = (transformer.unembedding != 0).any(1)
        for block in transformer.blocks[layer + 1 :]:
            needed = needed | (block.mlp.weight_in != 0).any(1)
        return needed.nonzero()[:, 0]

    @staticmethod
    def _blind(head: Head, entity: slice, tokens: Tensor) -> bool:
        return all(
            w is None or not (bool(w[entity].any()) or bool(product(tokens, exact(w)).any()))
            for w in (head.query, head.key)
        )

    def _fetches(self, attention: Attention, place: Tensor, targets: list[int]) -> None:
        from flint import arb

        reader = len(place) - 1
        smallest = inf
        for head, target in zip(attention.heads, targets):
            assert head.query is not None
            assert head.key is not None
            # A query weight need be no integer: its products with small integers are exact all the same.
            query, keys = place[reader] @ exact(head.query), place @ exact(head.key)
            scores = (query @ keys.T).tolist()
            # In the weights' dtype scores are exact if they are integers in its range; otherwise each product and sum may round.
            scale = float((query.abs() @ keys.abs().T).amax())
            whole = bool((query == query.round()).all()) and bool((keys == keys.round()).all())
            step = torch.finfo(head.query.dtype).eps
            error = 0.0 if whole and scale <= 2 / step else (len(query) + place.shape[1] + 2) * step * scale
            gaps = [scores[target] - score - 2 * error for i, score in enumerate(scores) if i != target]
            smallest = min([smallest, *gaps])
            if not attention.hard and gaps:
                leak = sum((arb(-gap).exp() for gap in gaps), arb(0))
                self.delta = max(self.delta, nextafter(float(leak.upper()), inf))
        self.require("every head fetches its position", smallest > 0, f"smallest score gap {smallest:g}")
