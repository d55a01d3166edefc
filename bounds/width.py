"""B5: neurons of a single hidden layer."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from bounds.bound import Bound
from bounds.fixed_unembedding import fixed_unembedding, tables_formula
from bounds.record import Argument, Record
from bounds.rigorous import lower
from geotheory.errors import positive_integer

__all__ = ["RECORD", "formula", "width"]


def width(entities: int, relations: int, hops: int = 1, bits: int = 1) -> Bound:
    """Neurons of a single hidden layer behind a fact-independent decoder (B5).

    If a subject's row reaches the logits through the hidden layer alone, and its share of each pre-activation does not depend on
    the query and takes at most `2^bits` values, then `width * bits` is at least the logarithm of the number of answer tables of one
    subject, hence at least B1 with `M = 1`. T1 and T2 with sign codes meet it within the ceiling.

    Not so with a residual stream past the layer: for `R = k = 1` it alone can carry the answer's code to the unembedding.

    Parameters
    ----------
    entities, relations, hops
        As for :func:`fixed_unembedding`.
    bits
        `c >= 1`.

    Source: **new**.

    Examples
    --------
    >>> width(4096, 16).value
    192.0
    """
    c = positive_integer("bits", bits)
    tables = fixed_unembedding(entities, relations, hops)  # without shared bits a single root is best
    return replace(
        tables,
        value=lower(Fraction(tables.bits) / c),
        unit="neurons",
        theorem="B5",
        mark="new",
        inequality=formula,
        statement=(
            "neurons of one hidden layer, if nothing but the subjects' rows depends on the facts, a row reaches the logits through "
            "this layer alone (no residual stream past it), and its share of each pre-activation does not depend on the query and "
            f"takes at most 2^{c} values"
        ),
    )


def formula(witness: Mapping[str, int]) -> Any:
    """Width times bits of a pre-activation against the tables of one subject."""
    from sympy import Ge

    from bounds import symbols as s

    return Ge(s.W * s.c, tables_formula("rho" in witness).subs(s.M, 1))


RECORD = Record(
    "B5",
    "new",
    width,
    formula,
    (Argument("bits", "The row's share of a pre-activation takes at most 2^bits values."),),
)
