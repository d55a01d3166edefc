"""Proof of a construction for every fact table of a shape, without building a weight (THEORY 4, "Certificate").

The certificates of :mod:`constructions.certificates` read the weights, of which `direct` has about `R^k N log N`. But its decoder
is the same for every table of a shape and its words factor over their positions, so the inequalities of the theory can be checked
for shapes far beyond any memory. What is not checked here is that some tensor holds these weights: the certificate's part.
"""

from math import inf, nextafter
from typing import Any

import torch

from constructions.certificates import Certificate, Statement
from constructions.fetch import sharpness
from constructions.key_value import error_gain
from constructions.sizes import size
from geotheory.codes import Code
from geotheory.digits import code_length

__all__ = ["schema"]


def schema(
    kind: str,
    *,
    entities: int,
    relations: int,
    hops: int = 1,
    bits: int = 1,
    residual: bool = False,
    attributes: int | None = None,
    **options: Any,
) -> Certificate:
    """Prove that a construction answers every query of every fact table of this shape (T1 to T5).

    Parameters
    ----------
    kind, entities, relations, hops, bits, residual, attributes, options
        As for :func:`constructions.size`; `attention="hard"` may be given too.

    Returns
    -------
    Certificate
        With softmax attention, margin `2 (1 - epsilon)`.

    Notes
    -----
    Exact integers, and Arb for the exponential; time grows as `R log R` and with the number of positions, not with `N` or `R^k`.

    Examples
    --------
    >>> schema("direct", entities=10**9, relations=16, hops=5).holds
    True
    """
    kind = kind.replace("-", "_")
    hard = options.pop("attention", "softmax") == "hard"
    cost = size(
        kind,
        entities=entities,
        relations=relations,
        hops=hops,
        bits=bits,
        residual=residual,
        attributes=attributes,
        **options,
    )
    A = entities if attributes is None else attributes
    k, j = hops, options.get("hops_per_step", 1)
    chained = kind == "chain_of_thought"
    uniform = kind == "single_hop" or (kind == "key_value" and k == 1)
    positions = cost.steps * (j + 1) if chained else 0 if uniform else k + 1
    slots = j if chained else k
    code = Code(relations + 1 if chained and k % j else relations)
    L, m, s = code.length, code_length(A, bits), (1 << bits) - 1
    n = code_length(entities)
    statements = []

    def state(name: str, holds: bool, figure: str) -> bool:
        statements.append(Statement(name, holds, figure))
        return holds

    state("codes tell all attributes apart", (1 << bits) ** m >= A, f"{1 << bits}^{m} >= {A:,}")
    words = code.words(dtype=torch.float32)
    distinct = torch.equal(code.read(words), torch.arange(code.count)) and bool((words.abs() == 1).all())
    state(
        "different relations' codes differ in a sign", distinct, f"{code.count} codes of length {L}: <c, c'> <= {L - 2}"
    )

    # The least that one wrong relation lowers a pre-activation, and where it stands on the queried word without the entity's
    # share, which is at most `reach` there or anywhere.
    strength, level, reach = {
        "single_hop": (s + 1, s, s),
        "direct": (s + 1, s, s),
        "chain_of_thought": (s + 1, s, s),
        "key_value": (1, 1 - n, n),
        "meet_in_middle": (2, 1, 1),  # the selecting layer; the placing layer stands at 0 and has one more to spare
    }[kind]
    slack = 2 * strength - level - reach
    state("every other block is shut", slack >= 0, f"pre-activations at most {-slack} for each of {slots} positions")

    gain = {
        "key_value": error_gain(n, L, k, residual),
        "meet_in_middle": 1 + 2 * k * L,
    }.get(kind, s + (s + 1) * slots * L)
    epsilon = 0.0
    if positions and not hard:
        from flint import arb

        beta = sharpness(positions, gain)
        places = Code(positions)
        apart = torch.equal(places.read(places.words()), torch.arange(positions))
        state("every head fetches its position", apart, f"{positions} sign-coded positions, score gap {2 * beta}")
        leak = 2 * (positions - 1) * arb(-2 * beta).exp() * gain
        epsilon = nextafter(float(leak.upper()), inf)
        state("leakage opens nothing", epsilon <= slack, f"{epsilon:.3g} <= {slack}")
        state("leakage leaves a margin", epsilon < 0.5, f"epsilon = {epsilon:.3g} < 1/2")
    holds = all(statement.holds for statement in statements)
    margin = nextafter(2 * (1 - epsilon), -inf) if epsilon else 2.0
    return Certificate(kind, margin if holds else 0.0, epsilon, tuple(statements))
