"""The list of bounds: complete, and true to the functions that it names."""

import subprocess
import sys
from inspect import Parameter, signature

import pytest

import bounds
from bounds.bound import Bound
from bounds.record import Argument, Record
from bounds.registry import BOUNDS, CURVES, named, numbered
from geotheory.errors import UnknownName


@pytest.mark.parametrize("record", BOUNDS.values(), ids=BOUNDS)
def test_a_record_names_every_argument_of_its_function(record):
    assert getattr(bounds, record.name) is record.function
    assert record.summary.endswith(".")
    expected = ["entities", "relations", "hops"]
    parameters = signature(record.function).parameters
    assert list(parameters)[:3] == expected
    assert {*parameters} - {*expected} == {argument.name for argument in record.arguments}
    for argument in record.arguments:
        default = parameters[argument.name].default
        assert default in (Parameter.empty, None) or type(default) is argument.kind


@pytest.mark.parametrize("record", BOUNDS.values(), ids=BOUNDS)
def test_every_bound_says_what_its_record_says(record):
    needed = {argument.name: 7 for argument in record.arguments if record.required(argument)}
    bound = record.function(500, 3, 2, **needed)
    assert isinstance(bound, Bound)
    assert bound.value > 0
    assert bound.formula == record.formula(bound.witness)
    assert set(bound.witness) <= {symbol.name for symbol in bound.formula.free_symbols} | {"p", "q", "M", "R", "k"}


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_belongs_to_a_bound(name):
    assert name in BOUNDS
    curve = CURVES[name].function(500, 3, 2)
    assert all(len(point) == len(CURVES[name].axes) for point in curve.points)
    from bounds import drawing

    assert callable(getattr(drawing, CURVES[name].draw))


def test_looking_up():
    assert named("fixed-unembedding") is numbered("B1") is numbered("B3")
    with pytest.raises(UnknownName, match="did you mean width"):
        named("widht")
    with pytest.raises(UnknownName, match="theorem 'B99'"):
        numbered("B99")


def test_no_formula_and_no_tensor_is_loaded_for_the_list():
    code = "import sys, bounds.registry; print([m for m in ('torch', 'sympy', 'matplotlib') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def at_least_one_bit(entities: int, relations: int, hops: int = 1, *, grains: int, extra: int = 0) -> Bound:
    """A bound that the package does not have."""
    return Bound(
        float(grains + extra), "bits", {"M": 1, "R": relations, "k": hops}, "X1", "new", "made up", at_least_formula
    )


def at_least_formula(_):
    from sympy import Ge

    from bounds.symbols import D_in

    return Ge(D_in, 1)


MADE_UP = Record(
    "X1",
    "new",
    at_least_one_bit,
    at_least_formula,
    (Argument("grains", "Grains of a heap."), Argument("extra", "Grains beside it.", flags=("-x",))),
)


def test_a_bound_is_added_by_one_line(monkeypatch):
    monkeypatch.setitem(BOUNDS, MADE_UP.name, MADE_UP)
    record = named("at-least-one-bit")
    assert record.function(4, 2, grains=3).bits == 3
    assert str(numbered("X1").function(4, 2, grains=3).formula) == "D_in >= 1"
    assert [record.required(argument) for argument in record.arguments] == [True, False]
    from bounds import symbolic

    assert symbolic.inequality("X1").rhs == 1
