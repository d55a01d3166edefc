"""Cut into a model and see which answers change: relation swapped, one component of an embedding replaced, neurons removed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geotheory.errors import InvalidArgument
from geotheory.facts import FactTable
from geotheory.transformer import Transformer
from paper_checks.learning.readouts import Superposition, attribute_vectors

__all__ = ["Interventions", "Selector", "intervene", "selector"]


@dataclass(frozen=True, eq=False)
class Interventions:
    """Rates in `[0, 1]`, each beside its control.

    Attributes
    ----------
    relation_swapped
        Queries `(x, r)` whose answer becomes `g_q(x)` when the relation token's contribution to the MLP's input is replaced by
        that of another relation `q`. Control: a random vector of the same length is added instead.
    gates_swapped
        The same when only the gates (which neurons are open) are taken from the query `(x, q)`, and `x`'s own pre-activations of
        `(x, r)` pass through them. Control: the gates of another subject's query `(y, r)`, which should make no answer `g_q(x)`.
    component_replaced
        Queries `(x, r)` whose answer becomes `a` when `x`'s component for `r`, by the linear fit, is replaced by that of a random
        attribute `a`. Control: the component for another relation is replaced by that of `a`.
    others_kept
        Answers of `x`'s other relations that this leaves as they were. Control: a random vector as long as the change is added.
    component_removed
        Queries `(x, r)` whose answer changes when the component is removed (the mean one in its place). Control: the component of
        another relation is removed.
    selectivity : `[R, R]`
        Row `r`: neurons that are open for relation `r` more than for the others are shut; column `q`: the share of right answers to
        relation `q` that is lost.
    selectivity_control : `[R, R]`
        The same for as many neurons drawn at random.
    neurons
        How many neurons belong to each relation.
    """

    relation_swapped: tuple[float, float]
    gates_swapped: tuple[float, float]
    component_replaced: tuple[float, float]
    others_kept: tuple[float, float]
    component_removed: tuple[float, float]
    selectivity: Float[Tensor, "R R"]
    selectivity_control: Float[Tensor, "R R"]
    neurons: tuple[int, ...]

    @property
    def selective(self) -> float:
        """Mean loss on the diagonal of the selectivity matrix, less the mean loss off it: 1 is perfect, 0 none."""
        return _contrast(self.selectivity)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values: rates as `[measured, control]`."""
        pairs = ("relation_swapped", "gates_swapped", "component_replaced", "others_kept", "component_removed")
        return {
            **{name.replace("_", " "): list(getattr(self, name)) for name in pairs},
            "selectivity": self.selectivity.tolist(),
            "selectivity control": self.selectivity_control.tolist(),
            "selective": [self.selective, _contrast(self.selectivity_control)],
            "neurons": list(self.neurons),
        }


def _contrast(matrix: Tensor) -> float:
    R = len(matrix)
    inside = float(matrix.diagonal().mean())
    return inside - float((matrix.sum() - matrix.diagonal().sum()) / (R * (R - 1))) if R > 1 else inside


class _Cut:
    """A one-block model at the last position of every single-hop query, open to changes."""

    def __init__(self, transformer: Transformer, facts: FactTable) -> None:
        shape = transformer.shape
        attention = transformer.blocks[0].attention
        if len(shape.blocks) != 1 or attention is None:
            raise InvalidArgument("interventions are made on models of one block with attention")
        self.model, self.facts = transformer, facts
        self.N, self.R = facts.num_subjects, facts.num_relations
        self.attention, self.mlp = attention, transformer.blocks[0].mlp
        self.residual = shape.residual

    def sequences(self, rows: Float[Tensor, "n d"], relation: int) -> Float[Tensor, "n 2 d"]:
        """The embedded queries `(x, relation)` for subjects with these rows of W_E."""
        h = torch.stack([rows, self.model.embedding[self.N + relation].expand_as(rows)], 1)
        return h if self.model.position is None else h + self.model.position[:2]

    def parts(self, rows: Float[Tensor, "n d"], relation: int) -> tuple[Tensor, Tensor]:
        """What subjects with these rows of W_E, and the relation's token, add to the MLP's input: `[n, d]` each.

        They add up to it for any attention, whose patterns are those of the query.
        """
        h = self.sequences(rows, relation)
        subject, own = torch.zeros_like(rows), torch.zeros_like(rows)
        for head, pattern in zip(self.attention.heads, self.attention.patterns(h, last=True)):
            moved = h @ head.value @ head.output
            subject = subject + pattern[:, 0, :1] * moved[:, 0]
            own = own + pattern[:, 0, 1:] * moved[:, 1]
        return subject, own + h[:, 1] if self.residual else own

    def moves(self, rows: Float[Tensor, "n d"], relation: int) -> Float[Tensor, "d d"]:
        """The linear map by which attention moves a subject's row to the MLP's input, patterns at their mean over these rows."""
        patterns = self.attention.patterns(self.sequences(rows, relation), last=True)
        each = [p[:, 0, 0].mean() * head.value @ head.output for head, p in zip(self.attention.heads, patterns)]
        return torch.stack(each).sum(0).double()

    def input(self, rows: Float[Tensor, "n d"], relation: int) -> Float[Tensor, "n d"]:
        """The MLP's input."""
        subject, own = self.parts(rows, relation)
        return subject + own

    def before(self, u: Float[Tensor, "n d"]) -> Float[Tensor, "n width"]:
        """Pre-activations."""
        z: Tensor = u @ self.mlp.weight_in + self.mlp.bias_in
        return z

    def answers(self, u: Float[Tensor, "n d"], hidden: Float[Tensor, "n width"]) -> Int[Tensor, " n"]:
        """The answer to each, by its MLP input (for the residual stream) and its hidden activations."""
        v = hidden @ self.mlp.weight_out + self.mlp.bias_out
        v = v + u if self.residual else v
        best: Tensor = (v @ self.model.unembedding + self.model.unembedding_bias).argmax(1)
        return best

    def ask(self, rows: Tensor, relation: int, extra: Tensor | None = None) -> Int[Tensor, " n"]:
        """Answers to `(x, relation)` for subjects with these rows, with something `extra` added to the MLP's input."""
        u = self.input(rows, relation)
        u = u if extra is None else u + extra
        return self.answers(u, torch.relu(self.before(u)))


@torch.no_grad()
def intervene(transformer: Transformer, facts: FactTable, fit: Superposition, *, seed: int = 0) -> Interventions:
    """Every intervention on every single-hop query of a one-block model.

    Parameters
    ----------
    transformer, facts
        The model, and the bijections that it has learned.
    fit
        Its embeddings as superpositions (:func:`fit_superposition`).
    seed
        Of what is drawn at random.

    Raises
    ------
    InvalidArgument
        Several blocks, no attention, one relation alone, or missing facts.

    Examples
    --------
    >>> import constructions
    >>> from paper_checks.learning.readouts import fit_superposition
    >>> facts = FactTable.random_bijections(entities=64, relations=2)
    >>> model = constructions.single_hop(facts).transformer
    >>> found = intervene(model, facts, fit_superposition(model, facts))
    >>> found.relation_swapped[0], found.component_replaced[0], found.others_kept[0]
    (1.0, 1.0, 1.0)
    """
    cut = _Cut(transformer, facts)
    N, R, table = cut.N, cut.R, facts.table.to(transformer.embedding.device)
    if R < 2:
        raise InvalidArgument("interventions swap relations: give a world of two at least")
    if bool((table < 0).any()):
        raise InvalidArgument("interventions need every fact: give a table without missing ones")
    generator = torch.Generator().manual_seed(seed)
    E = transformer.embedding[:N]
    plain = [cut.ask(E, r) for r in range(R)]
    relation = _mean_pairs(lambda r, q: _relation_swap(cut, E, r, q, table[q], generator), R)
    gates = _mean_pairs(lambda r, q: _gate_swap(cut, E, r, q, table[q], generator), R)
    components = torch.tensor(
        [_components(cut, E, r, plain, table, fit, generator) for r in range(R)], dtype=torch.float64
    ).mean(0)
    matrix, control, neurons = _selectivity(cut, E, plain, table, generator)
    replaced, kept, removed = ((float(components[i]), float(components[i + 1])) for i in (0, 2, 4))
    return Interventions(relation, gates, replaced, kept, removed, matrix, control, neurons)


@dataclass(frozen=True)
class Selector:
    """What a decoder does to the components of an embedding, to first order.

    Attributes
    ----------
    selects
        Share of attributes that relation `r` reads off a component for `r`: `v(a) A_r J_r` gives `a` the largest logit, where
        `J_r` is the decoder's mean derivative in the subject's row under `r`. 1 for the construction, where `A_r J_r` is a multiple
        of the identity on codes.
    leaks
        Length of `v(a) A_q J_r`, `q` another relation, as a share of that of `v(a) A_r J_r`. 0 for the construction.
    """

    selects: float
    leaks: float


@torch.no_grad()
def selector(transformer: Transformer, facts: FactTable, fit: Superposition) -> Selector:
    """Compare the decoder of a one-block model with the construction's: a linear map for each relation, which its gates choose.

    Raises
    ------
    InvalidArgument
        As for :func:`intervene`.
    """
    cut, vectors = _Cut(transformer, facts), attribute_vectors(transformer)
    if cut.R < 2:
        raise InvalidArgument("a selector chooses between relations: give a world of two at least")
    rows, mlp = transformer.embedding[: cut.N], cut.mlp
    right, own, others = [], [], []
    for r in range(cut.R):
        gates = (cut.before(cut.input(rows, r)) > 0).double().mean(0)
        moves = cut.moves(rows, r)
        decoder = moves @ mlp.weight_in.double() * gates @ mlp.weight_out.double()
        if cut.residual:
            decoder = decoder + moves
        states = [vectors @ fit.maps[q] @ decoder for q in range(cut.R)]
        logits = states[r] @ vectors.T + transformer.unembedding_bias.double()
        right.append(_rate(logits.argmax(1) == torch.arange(len(vectors), device=logits.device)))
        own.append(float(states[r].norm()))
        others.append(sum(float(states[q].norm()) for q in range(cut.R) if q != r) / (cut.R - 1))
    return Selector(sum(right) / cut.R, sum(others) / sum(own) if sum(own) else 0.0)


def _mean_pairs(measure: Callable[[int, int], tuple[float, float]], R: int) -> tuple[float, float]:
    found = torch.tensor([measure(r, q) for r in range(R) for q in range(R) if q != r], dtype=torch.float64).mean(0)
    return float(found[0]), float(found[1])


def _rate(hits: Bool[Tensor, " n"]) -> float:
    return float(hits.double().mean())


def _random_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """Vectors in random directions, as long as those of `x`."""
    directions = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x)
    scaled: Tensor = directions * (x.norm(dim=-1, keepdim=True) / directions.norm(dim=-1, keepdim=True))
    return scaled


def _relation_swap(
    cut: _Cut, E: Tensor, r: int, q: int, wanted: Tensor, generator: torch.Generator
) -> tuple[float, float]:
    # The subject's share stays as attention made it in the query (x, r).
    swap = cut.parts(E, q)[1] - cut.parts(E, r)[1]
    return _rate(cut.ask(E, r, swap) == wanted), _rate(cut.ask(E, r, _random_like(swap, generator)) == wanted)


def _gate_swap(cut: _Cut, E: Tensor, r: int, q: int, wanted: Tensor, generator: torch.Generator) -> tuple[float, float]:
    u, other = (cut.input(E, relation) for relation in (r, q))
    z, open_ = cut.before(u), cut.before(other) > 0
    mine = (z > 0)[torch.randperm(len(E), generator=generator)]
    # Through an open gate passes what the query (x, q) would send but for the relation's shift, which belongs to the gate.
    shift = cut.before(other).mean(0) - z.mean(0)
    return (
        _rate(cut.answers(u, (z + shift) * open_) == wanted),
        _rate(cut.answers(u, z * mine) == wanted),
    )


def _components(
    cut: _Cut, E: Tensor, r: int, plain: list[Tensor], table: Tensor, fit: Superposition, generator: torch.Generator
) -> list[float]:
    """Replaced and its control, others kept and its control, removed and its control, for relation `r`."""
    N, R = cut.N, cut.R
    vectors = attribute_vectors(cut.model)
    other = (r + 1) % R
    # Another attribute for everyone: never the one that it is.
    wanted = (table[r] + torch.randint(1, N, (N,), generator=generator).to(table)) % N if N > 1 else table[r]

    def component(relation: int, attributes: Tensor) -> Tensor:
        return fit.component(relation, vectors[attributes])

    replaced = component(r, wanted) - component(r, table[r])
    elsewhere = component(other, wanted) - component(other, table[other])
    removed = component(r, table[r]).mean(0) - component(r, table[r])
    removed_elsewhere = component(other, table[other]).mean(0) - component(other, table[other])

    def asked(change: Tensor, relation: int) -> Tensor:
        return cut.ask(E + change.to(E), relation)

    def kept(change: Tensor) -> float:
        rates = [_rate(asked(change, q) == plain[q]) for q in range(R) if q != r]
        return sum(rates) / len(rates)

    return [
        _rate(asked(replaced, r) == wanted),
        _rate(asked(elsewhere, r) == wanted),
        kept(replaced),
        kept(_random_like(replaced, generator)),
        _rate(asked(removed, r) != plain[r]),
        _rate(asked(removed_elsewhere, r) != plain[r]),
    ]


def _selectivity(
    cut: _Cut, E: Tensor, plain: list[Tensor], table: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    inputs = [cut.input(E, r) for r in range(cut.R)]
    hidden = [torch.relu(cut.before(u)) for u in inputs]
    # A neuron belongs to the relation for which its activation varies most over the subjects: there it says something about them.
    spread = torch.stack([h.std(0, correction=0) for h in hidden])
    owner = torch.where(spread.amax(0) > 0, spread.argmax(0), -1)
    matrix, control = (torch.zeros(cut.R, cut.R, dtype=torch.float64) for _ in range(2))
    for r in range(cut.R):
        mine = owner == r
        drawn = torch.zeros_like(mine)
        drawn[torch.randperm(len(mine), generator=generator)[: int(mine.sum())].to(mine.device)] = True
        for q in range(cut.R):
            right = plain[q] == table[q]
            for into, shut in ((matrix, mine), (control, drawn)):
                # Shut, not silenced: a neuron keeps its mean, so that what the others are used to does not move.
                left = torch.where(shut, hidden[q].mean(0), hidden[q])
                lost = right & (cut.answers(inputs[q], left) != table[q])
                into[r, q] = float(lost.sum()) / max(1, int(right.sum()))
    return matrix, control, tuple(int((owner == r).sum()) for r in range(cut.R))
