"""Are embeddings superpositions of attribute vectors? Linear fits, judged on subjects that were held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geotheory.errors import InvalidArgument, positive_integer
from geotheory.facts import FactTable
from geotheory.transformer import Transformer

__all__ = [
    "Readout",
    "RidgeFit",
    "Superposition",
    "attribute_vectors",
    "fit_readout",
    "fit_superposition",
    "ridge_cv",
    "shuffled",
]

# Ridge strengths that cross-validation chooses from, as shares of the features' mean variance.
RIDGES = tuple(10.0**e for e in range(-8, 3))


@dataclass(frozen=True, eq=False)
class Superposition:
    """`E[x] = bias + sum_r v(g_r(x)) A_r`, fitted by ridge regression.

    Attributes
    ----------
    maps : `[R, v, d]`
        `A_r`, one for each relation.
    bias : `[d]`
    r2
        Share of the embeddings' variance explained, on subjects held out in cross-validation: 1 is exact, 0 no better than a mean.
    ridge
        The strength that cross-validation chose, as a share of the features' mean variance.
    """

    maps: Float[Tensor, "R v d"]
    bias: Float[Tensor, " d"]
    r2: float
    ridge: float

    def component(self, relation: int, vectors: Float[Tensor, "n v"]) -> Float[Tensor, "n d"]:
        """What attributes with these vectors add to an embedding under one relation."""
        return vectors @ self.maps[relation]

    def embed(self, table: Int[Tensor, "R N"], vectors: Float[Tensor, "A v"]) -> Float[Tensor, "N d"]:
        """Embeddings of subjects with these facts."""
        return self.bias + torch.einsum("rnv,rvd->nd", vectors[table], self.maps)


@dataclass(frozen=True, eq=False)
class Readout:
    """`v(g_r(x)) = bias_r + E[x] B_r`: attributes read linearly from the embedding.

    Attributes
    ----------
    r2
        For each relation, share of the attribute vectors' variance explained on held-out subjects.
    accuracy
        For each relation, share of held-out subjects whose attribute's vector is the nearest to what is read.
    """

    r2: tuple[float, ...]
    accuracy: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {"r2": list(self.r2), "accuracy": list(self.accuracy)}


def attribute_vectors(transformer: Transformer) -> Float[Tensor, "A d"]:
    """The attributes' vectors `v`: the columns of W_U, in float64."""
    return transformer.unembedding.detach().T.to(torch.float64)


def shuffled(facts: FactTable, seed: int = 0) -> FactTable:
    """The control: each relation's attributes dealt to other subjects at random."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.stack([row[torch.randperm(len(row), generator=generator)] for row in facts.table])
    return FactTable(table, facts.subjects, facts.relations, facts.attributes)


def fit_superposition(
    transformer: Transformer, facts: FactTable, *, folds: int = 5, ridges: Sequence[float] = RIDGES, seed: int = 0
) -> Superposition:
    """Fit the subjects' rows of W_E as superpositions of their attributes' vectors.

    `R d + 1` numbers are fitted for each coordinate, so that without held-out subjects any embedding would seem to be a
    superposition once `R d` is near `N`: `r2` is always that of held-out subjects, and the ridge is chosen by it.

    Parameters
    ----------
    transformer, facts
        The model, and the facts that it has learned.
    folds
        Of the cross-validation over subjects.
    ridges
        Strengths to choose from.
    seed
        Of the folds.

    Raises
    ------
    InvalidArgument
        Fewer subjects than folds, or missing facts.

    Examples
    --------
    >>> import constructions
    >>> facts = FactTable.random_bijections(entities=64, relations=2)
    >>> exact = constructions.single_hop(facts)
    >>> round(fit_superposition(exact.transformer, facts).r2, 6)
    1.0
    """
    vectors = attribute_vectors(transformer)
    E = transformer.embedding.detach()[: facts.num_subjects].to(torch.float64)
    X = vectors[_complete(facts).to(E.device)].transpose(0, 1).flatten(1)
    fit = ridge_cv(X, E, folds, ridges, seed)
    return Superposition(fit.weights.reshape(facts.num_relations, -1, E.shape[1]), fit.bias, fit.r2, fit.ridge)


def fit_readout(
    transformer: Transformer, facts: FactTable, *, folds: int = 5, ridges: Sequence[float] = RIDGES, seed: int = 0
) -> Readout:
    """Read each attribute's vector from the subject's row of W_E; the converse of :func:`fit_superposition`."""
    vectors = attribute_vectors(transformer)
    E = transformer.embedding.detach()[: facts.num_subjects].to(torch.float64)
    r2s, accuracies = [], []
    for answers in _complete(facts).to(E.device):
        fit = ridge_cv(E, vectors[answers], folds, ridges, seed)
        nearest = torch.cdist(fit.predicted, vectors).argmin(1)
        r2s.append(fit.r2)
        accuracies.append(float((nearest == answers).double().mean()))
    return Readout(tuple(r2s), tuple(accuracies))


def _complete(facts: FactTable) -> Int[Tensor, "R N"]:
    if bool((facts.table < 0).any()):
        raise InvalidArgument("a linear fit needs every fact: give a table without missing ones")
    return facts.table


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """`Y = bias + X weights`; `r2` and `predicted` are those of rows that were held out, at the strength `ridge`."""

    weights: Float[Tensor, "x y"]
    bias: Float[Tensor, " y"]
    r2: float
    ridge: float
    predicted: Float[Tensor, "n y"]


def ridge_cv(
    X: Float[Tensor, "n x"], Y: Float[Tensor, "n y"], folds: int, ridges: Sequence[float], seed: int
) -> RidgeFit:
    """Ridge regression whose strength is chosen by cross-validation over rows."""
    n = len(X)
    if n < positive_integer("folds", folds, least=2):
        raise InvalidArgument(f"{n} subjects cannot be held out in {folds} folds: give fewer folds or more subjects")
    fold = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(X.device) % folds
    predicted = Y.new_zeros(len(ridges), *Y.shape)
    total = Y.new_zeros(())
    for i in range(folds):
        out = fold == i
        mean_x, mean_y = X[~out].mean(0), Y[~out].mean(0)
        for place, weights in enumerate(_weights(X[~out] - mean_x, Y[~out] - mean_y, ridges)):
            predicted[place, out] = mean_y + (X[out] - mean_x) @ weights
        total += (Y[out] - mean_y).square().sum()
    wrong = (predicted - Y).square().sum((1, 2))
    best = int(wrong.argmin())
    r2 = float(1 - wrong[best] / total) if total > 0 else 1.0
    mean_x, mean_y = X.mean(0), Y.mean(0)
    (weights,) = _weights(X - mean_x, Y - mean_y, [ridges[best]])
    return RidgeFit(weights, mean_y - mean_x @ weights, r2, ridges[best], predicted[best])


def _weights(X: Tensor, Y: Tensor, ridges: Sequence[float]) -> list[Tensor]:
    """Ridge solutions for centred data at each strength, from one decomposition."""
    n, m = X.shape
    scale = X.square().sum() / max(1, m)  # n times the mean variance of a feature
    # Whichever of the two Gram matrices is smaller.
    if m <= n:
        values, basis = torch.linalg.eigh(X.T @ X)
        target = basis.T @ (X.T @ Y)
        return [basis @ (target / (values.clamp(min=0) + ridge * scale)[:, None]) for ridge in ridges]
    values, basis = torch.linalg.eigh(X @ X.T)
    target = basis.T @ Y
    return [X.T @ (basis @ (target / (values.clamp(min=0) + ridge * scale)[:, None])) for ridge in ridges]
