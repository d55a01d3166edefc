"""The rival view: fixed random embeddings and an outer-product (Hebbian) memory. Not exact; the baseline of the others.

Embeddings of subjects, relations and attributes are random and stay so. A query's key is `phi(e_x + e_r)`, sparse random ReLU
features; the output weights are `sum_facts (phi(e_x + e_r) - mean) v_a^T`, one outer product a fact. Recall is by
near-orthogonality, so the memory `width x d` must grow linearly with the number of facts `N R`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from constructions.certificates import Certificate, Statement
from constructions.construction import Construction, ensure_fits
from constructions.sizes import Size
from geotheory.decoding import Decoding
from geotheory.errors import positive_integer
from geotheory.facts import FactTable
from geotheory.transformer import BlockShape, HeadShape, Transformer, TransformerShape
from geotheory.verification import verify

__all__ = ["Point", "accuracy_by_dimension", "associative", "prove"]


@torch.no_grad()
def associative(
    facts: FactTable,
    d: int,
    *,
    width: int | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Construction:
    """One-layer transformer with random fixed embeddings whose MLP holds every fact as an outer product.

    No guarantee: :func:`geotheory.verify` measures how many facts it recalls. Memory is `width * d` weights; recall fails when the
    number of facts exceeds a fraction of it, so `d` grows with `sqrt(N R)` at `width` proportional to `d`, against `R log N` for
    :func:`~constructions.single_hop.single_hop`.

    Parameters
    ----------
    facts
        The table, single hop; missing facts are not stored (and the model does not know that they are missing).
    d
        Dimension of the embeddings, at least 1.
    width
        Random features, default `4 d`.
    seed
        Of the random embeddings.

    Source: the baseline that Ravfogel et al. 2026 argue against; Hebbian memories are folklore.

    Examples
    --------
    >>> from geotheory import verify
    >>> facts = FactTable.random_bijections(entities=64, relations=2)
    >>> verify(associative(facts, d=4)).accuracy < 0.5 < verify(associative(facts, d=128)).accuracy
    True
    """
    positive_integer("d", d)
    width = 4 * d if width is None else positive_integer("width", width)
    N, R, A = facts.num_subjects, facts.num_relations, facts.num_attributes
    parameters = d * (N + R + A) + A + 2 * d * d + 2 * d * width + width + d
    size = Size(d, width, 1, 1, 1, parameters, 0, 0, width * d * dtype.itemsize * 8, {"random embedding": d})
    ensure_fits("associative", N, R, 1, size, dtype, device)
    shape = TransformerShape(N + R, A, d, 0, (BlockShape(width, (HeadShape(0, d),)),))
    transformer = Transformer(shape, dtype=dtype).requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    transformer.embedding.normal_(std=d**-0.5, generator=generator)
    transformer.unembedding.normal_(std=d**-0.5, generator=generator)
    block = transformer.blocks[0]
    assert block.attention is not None
    head = block.attention.heads[0]
    head.value.fill_diagonal_(2)
    head.output.fill_diagonal_(1)
    block.mlp.weight_in.normal_(generator=generator)
    # |e_x + e_r|^2 is about 2. A threshold one standard deviation up makes the features sparse, and keys that share a subject or a
    # relation less alike.
    block.mlp.bias_in.fill_(-(2**0.5))
    relation, subject = (facts.table >= 0).nonzero(as_tuple=True)
    stored = facts.table[relation, subject]

    def features(i: torch.Tensor) -> torch.Tensor:
        keys = transformer.embedding[subject[i]] + transformer.embedding[N + relation[i]]
        return torch.relu(keys @ block.mlp.weight_in + block.mlp.bias_in)

    # In batches: the features of all facts at once would be N R x width.
    batches = torch.arange(len(stored)).split(8192)
    mean = torch.zeros(width, dtype=dtype)
    for i in batches:
        mean.add_(features(i).sum(0) / max(1, len(stored)))
    for i in batches:
        block.mlp.weight_out.add_((features(i) - mean).T @ transformer.unembedding[:, stored[i]].T / width)
    decoding = Decoding(N, R, 1)
    return Construction("associative", facts, transformer.to(device), size, decoding, {"hops": 1, "seed": seed})


def prove(c: Construction) -> Certificate:
    """There is nothing to prove: recall by near-orthogonality has no guarantee."""
    statement = Statement("recall is exact", False, "not claimed of random embeddings: measure it with verify()")
    return Certificate(c.kind, 0.0, 0.0, (statement,))


@dataclass(frozen=True)
class Point:
    """Measured accuracy of :func:`associative` at one dimension."""

    d: int
    width: int
    parameters: int
    accuracy: float


def accuracy_by_dimension(facts: FactTable, dimensions: Iterable[int], *, seed: int = 0) -> Iterator[Point]:
    """Accuracy of the associative memory at each of the `dimensions`, measured over every fact."""
    for d in dimensions:
        model = associative(facts, d, seed=seed)
        yield Point(d, model.size.width, model.size.parameters, verify(model.transformer, facts).accuracy)
