"""Property-test a construction of your own: hypothesis strategies for worlds of facts, and one call that checks it all.

    from hypothesis import given
    from geotheory import testing

    @given(testing.fact_tables(max_entities=64, max_relations=4))
    def test_mine(facts):
        testing.check_construction(my_builder(facts), facts, hops=1)

Hypothesis shrinks a failure to the smallest world in which it occurs. Needs `pip install geotheory[testing]`.
"""

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from geotheory.facts import FactTable
from geotheory.transformer import Transformer
from geotheory.verification import Recaller, Verification, verify

Draw = Callable[..., Any]

__all__ = ["check_construction", "fact_tables", "shapes", "words"]


@st.composite
def fact_tables(
    draw: Draw,
    max_entities: int = 16,
    max_relations: int = 4,
    *,
    bijective: bool | None = True,
    missing: bool | None = False,
    named: bool | None = False,
    composable: bool | None = True,
    min_entities: int = 1,
    min_relations: int = 1,
) -> FactTable:
    """Worlds of facts; they shrink towards one entity, one relation, the identity, nothing missing and no names.

    Parameters
    ----------
    max_entities, max_relations, min_entities, min_relations
        Limits of `N` and `R`.
    bijective
        Every relation a permutation (True), any function (False), or either (None).
    missing
        Whether facts may be missing; rules bijections out where True.
    named
        Whether entities and relations have drawn names, non-ASCII ones too.
    composable
        Whether the attributes are the subjects (True), a set of their own (False; rules bijections out), or either (None).

    Examples
    --------
    >>> from hypothesis import find
    >>> find(fact_tables(), lambda facts: facts.num_subjects > 2).table
    tensor([[0, 1, 2]])
    """
    N = draw(st.integers(min_entities, max_entities))
    R = draw(st.integers(min_relations, max_relations))
    gaps = draw(st.booleans()) if missing is None else missing
    shared = draw(st.booleans()) if composable is None else composable
    permuted = (draw(st.booleans()) if bijective is None else bijective) and shared and not gaps
    A = N if shared else draw(st.integers(1, max_entities))
    if permuted:
        rows = draw(st.lists(st.permutations(range(N)), min_size=R, max_size=R))
    else:
        fact = st.integers(-1 if gaps else 0, A - 1)
        rows = draw(st.lists(st.lists(fact, min_size=N, max_size=N), min_size=R, max_size=R))
    table = torch.tensor(rows, dtype=torch.int64).reshape(R, N)
    if draw(st.booleans()) if named is None else named:
        name = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
        subjects = draw(st.lists(name, min_size=N, max_size=N, unique=True))
        relations = draw(st.lists(name, min_size=R, max_size=R, unique=True))
        attributes = subjects if shared else [f"the {i}th" for i in range(A)]
        return FactTable(table, subjects, relations, attributes)
    return FactTable(table) if shared else FactTable(table, attributes=[f"a{i}" for i in range(A)])


@st.composite
def words(draw: Draw, relations: int, hops: int, max_words: int = 8) -> Tensor:
    """A few words `[W, hops]` over so many relations."""
    word = st.lists(st.integers(0, relations - 1), min_size=hops, max_size=hops)
    return torch.tensor(draw(st.lists(word, min_size=1, max_size=max_words)), dtype=torch.int64).reshape(-1, hops)


def shapes(
    max_entities: int = 64, max_relations: int = 8, max_hops: int = 4
) -> st.SearchStrategy[tuple[int, int, int]]:
    """Triples `(N, R, k)`."""
    return st.tuples(st.integers(1, max_entities), st.integers(1, max_relations), st.integers(1, max_hops))


def check_construction(
    model: Recaller | nn.Module,
    facts: FactTable | None = None,
    hops: int | None = None,
    *,
    size: Any = None,
    margin: float = 0.0,
) -> Verification:
    """Fail unless a model recalls every fact, is as large as it says, and is not smaller than any model can be.

    Checked, as far as the model offers it:

    - every query is answered rightly, ties are wrong, missing facts are met with silence (:func:`geotheory.verify`), and by a
      margin above `margin`;
    - its own certificate holds and promises no more than was measured;
    - `d`, `width` and `parameters` of the claimed `size` are those of the weights;
    - the claim does not contradict a theorem: where nothing but the subjects' rows depends on the facts, `bits_in` is at least
      bound B1, and with one hidden layer, no residual stream and one bit a pre-activation, `width` at least
      bound B5.

    Parameters
    ----------
    model, facts, hops
        As for :func:`geotheory.verify`.
    size
        What the model claims, default `model.size`: any object with some of the fields of :class:`constructions.Size`.
    margin
        Least lead that is accepted, exclusive.

    Raises
    ------
    AssertionError
        Names the world, what was expected and what was found.
    """
    found = verify(model, facts, hops)
    module = model if isinstance(model, nn.Module) else model.transformer
    facts = facts or getattr(model, "facts", None)
    assert facts is not None
    world = f"{facts!r}, facts {list(facts.triples())[:12]}"
    assert found.holds, f"{found}\nin the world {world}"
    assert found.margin > margin, f"the smallest margin {found.margin:g} is not above {margin:g} in the world {world}"

    prove = None if isinstance(model, nn.Module) else getattr(model, "certificate", None)
    if prove is not None:
        certificate = prove()
        assert certificate.holds, f"every query is answered rightly, but it is not proved: {certificate}"
        # The certificate speaks of exact arithmetic, the measurement of the weights' dtype.
        rounding = 64 * torch.finfo(next(module.parameters()).dtype).eps
        assert found.margin >= certificate.margin * (1 - rounding), (
            f"the certificate promises margin {certificate.margin}, and {found.margin} was measured in the world {world}"
        )
    size = getattr(model, "size", None) if size is None else size
    if size is not None:
        _check_size(module, size)
        if facts.is_bijective:
            _check_against_bounds(model, facts, size, hops)
    return found


def _check_size(module: nn.Module, size: Any) -> None:
    measured = {"parameters": sum(p.numel() for p in module.parameters())}
    if isinstance(module, Transformer):
        shape = module.shape
        measured |= {
            "d": shape.d,
            "width": max(block.width for block in shape.blocks),
            "depth": len(shape.blocks),
            "heads": len(shape.blocks[0].heads),
        }
    for name, value in measured.items():
        claimed = getattr(size, name, value)
        assert claimed == value, f"the model claims {name} = {claimed:,}, and its weights have {value:,}"


def _check_against_bounds(model: Any, facts: FactTable, size: Any, hops: int | None) -> None:
    import bounds

    decoding = getattr(model, "decoding", None)
    k = hops or (decoding.hops if decoding is not None else 1)
    # A chain of thought must answer its first step from the subject's row alone: B7 is B1 with fewer hops.
    k = (decoding.hops_per_step or k) if decoding is not None else k
    N, R = facts.num_subjects, facts.num_relations
    if getattr(size, "bits_shared", None) != 0 or getattr(size, "bits_out", None) != 0:
        return
    least = bounds.fixed_unembedding(N, R, k)
    assert size.bits_in >= least.bits, (
        f"the model claims {size.bits_in} bits per subject, and with a fact-independent decoder at least {least.bits:.6g} are "
        f"needed at N={N}, R={R}, k={k} (theorem B1): the claim, or what counts as a fact-independent weight, is wrong"
    )
    options = getattr(model, "options", {})
    # A residual stream could carry the row past the neurons, and B5 says nothing.
    if getattr(size, "depth", None) == 1 and options.get("bits") == 1 and options.get("residual") is False:
        width = bounds.width(N, R, k)
        assert size.width >= width.value, (
            f"the model claims width {size.width}, and at one bit a pre-activation at least {width.value:.6g} neurons are needed "
            f"at N={N}, R={R}, k={k} (theorem B5)"
        )
