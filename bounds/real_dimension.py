"""B6: real embeddings of unlimited precision still need a dimension of order `R^k` (THEORY 5). [new]

A decoder of fixed weights with one hidden layer sees a subject's row through `Q W` hyperplanes (its neurons, one set a query), and
within a cell of these its answers depend on the signs of at most `Q N (N-1) / 2` affine forms (pairs of attributes). So one row can
realize at most `Phi_d(Q W) Phi_d(Q N (N-1) / 2)` answer tables, where `Phi_d(n) = sum_{i <= d} C(n, i)` bounds the cells of `n`
hyperplanes in `R^d`.
"""

from collections.abc import Mapping
from typing import Any

from flint import arb

from bounds.bound import Bound
from bounds.fixed_unembedding import fixed_unembedding
from bounds.questions import shape
from bounds.record import Argument, Record
from bounds.rigorous import Real, log2_integer, plus, scaled, upper
from geotheory.errors import positive_integer

__all__ = ["RECORD", "cells", "formula", "real_dimension"]

# Sums of binomial coefficients are exact integers up to this dimension; beyond it (e n / d)^d bounds them.
EXACT_DIMENSION = 1000


def cells(n: int, d: int) -> int:
    """`Phi_d(n) = sum_{i <= d} C(n, i)`: the most cells into which `n` hyperplanes cut `R^d`.

    Examples
    --------
    >>> [cells(3, d) for d in range(4)]
    [1, 4, 7, 8]
    """
    total = term = 1
    for i in range(1, min(d, n) + 1):
        term = term * (n - i + 1) // i
        total += term
    return total


def real_dimension(entities: int, relations: int, hops: int = 1, *, width: int) -> Bound:
    """Dimension of real embeddings behind a fact-independent decoder with one hidden layer (B6, **new**).

    The least `d` with `Phi_d(Q W) Phi_d(Q N (N-1) / 2) >= #tables of one subject`, `Q = R^k`, attention by positions only. So the
    growth with `R^k` is no artefact of finite precision; the factor `log N` is.

    Parameters
    ----------
    entities, relations, hops
        As for :func:`bounds.fixed_unembedding`, whose witness says which queries are asked where not all `R^k` can be told apart.
    width
        `W`, neurons of the hidden layer.

    Raises
    ------
    InvalidArgument
        A number out of range.

    Examples
    --------
    >>> real_dimension(4096, 16, width=192).value
    6.0
    """
    N, R, k, _ = shape(entities, relations, hops)
    W = positive_integer("width", width)
    asked = fixed_unembedding(N, R, k)  # without shared bits a single root is best: the tables of one subject
    tables, relations_asked, hops_asked = asked.bits, asked.witness["R"], asked.witness["k"]
    queries = asked.witness.get("rho", relations_asked) ** (hops_asked - 1) * relations_asked if tables else 1
    neurons, pairs = queries * W, queries * (N * (N - 1) // 2)

    def reached(d: int) -> bool:
        return upper(plus(_log2_cells(neurons, d), _log2_cells(pairs, d))) >= tables

    few, many = 0, 1
    while not reached(many):
        few, many = many + 1, 2 * many
    if reached(0):
        many = 0
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if reached(middle) else (middle + 1, many)
    return Bound(
        value=float(few),
        unit="dimensions",
        witness=asked.witness,
        theorem="B6",
        mark="new",
        inequality=formula,
        statement=(
            f"dimension of real subject embeddings of any precision, if all other weights are independent of the facts, with one "
            f"hidden layer of width {W:,}, and all {k}-hop queries of every {R:,} permutations of {N:,} entities are answered"
        ),
    )


def _log2_cells(n: int, d: int) -> Real:
    """An upper bound on `log2 Phi_d(n)`, exact up to `EXACT_DIMENSION`."""
    if d >= n:
        return log2_integer(1 << n) if n <= EXACT_DIMENSION else scaled(log2_integer(2), n)
    if d <= EXACT_DIMENSION:
        return log2_integer(cells(n, d))
    return scaled((1 + (arb(n) / d).log()) / arb.const_log2(), d)


def formula(_: Mapping[str, int]) -> Any:
    """Cells of the neurons times cells of the pairs of attributes against the tables of one subject."""
    from sympy import Function, Ge

    from bounds import symbols as s

    phi, tables = Function("Phi"), Function("tables")
    queries = s.R**s.k
    return Ge(phi(s.d, queries * s.W) * phi(s.d, queries * s.N * (s.N - 1) / 2), tables(s.N, s.R, s.k))


RECORD = Record("B6", "new", real_dimension, formula, (Argument("width", "Neurons of the hidden layer."),))
