"""B7: bits per subject if entities of the chain are emitted."""

from dataclasses import replace

from bounds.bound import Bound
from bounds.fixed_unembedding import fixed_unembedding, formula
from bounds.questions import shape
from bounds.record import SHARED_BITS, Argument, Record
from geotheory.errors import InvalidArgument, positive_integer

__all__ = ["RECORD", "chain_of_thought"]


def chain_of_thought(entities: int, relations: int, hops: int, hops_per_step: int = 1, shared_bits: int = 0) -> Bound:
    """Bits per subject, if every `j`-th entity of the chain is emitted and embedded again (B7).

    The first emitted entity answers a `j`-hop query from the subject's row alone: B1 with `k = j`, whatever the number of steps.
    If the unembedding may depend on the facts, `P + N (D_in + D_out) >= (R - 1) log2 N!` is left, since at most `N!` tuples share a
    table of `k`-hop answers.

    Parameters
    ----------
    entities, relations, hops, shared_bits
        As for :func:`fixed_unembedding`.
    hops_per_step
        `j`, from 1 to `hops`.

    Source: **sharper** for `j = 1`, **new** for more.

    Examples
    --------
    >>> chain_of_thought(4096, 16, hops=1000).bits
    192.0
    """
    _, _, k, _ = shape(entities, relations, hops, shared_bits)
    j = positive_integer("hops_per_step", hops_per_step)
    if j > k:
        raise InvalidArgument(f"hops_per_step = {j} exceeds hops = {k}")
    first = fixed_unembedding(entities, relations, j, shared_bits)
    return replace(
        first,
        theorem="B7",
        mark="sharper" if j == 1 else "new",
        statement=first.statement.replace(f"{j}-hop queries", f"{k}-hop queries, emitting every {j}. entity,"),
    )


HOPS_PER_STEP = Argument("hops_per_step", "Hops between emitted entities.")
RECORD = Record("B7", "sharper", chain_of_thought, formula, (HOPS_PER_STEP, SHARED_BITS))
