"""The record by which the package, the command line and the documentation know a bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from bounds.bound import Bound

__all__ = ["SHARED_BITS", "Argument", "CurveRecord", "Record"]


@dataclass(frozen=True)
class Argument:
    """What a bound takes beside the entities, relations and hops.

    Attributes
    ----------
    name
        The parameter of the function.
    help
        What it means, for whoever asks.
    kind
        `int`, `float` or `bool`.
    flags
        Names at the command line besides `--name`, the underscores as hyphens.
    """

    name: str
    help: str
    kind: type[bool | int | float] = int
    flags: tuple[str, ...] = ()


SHARED_BITS = Argument("shared_bits", "Bits in the shared weights.", flags=("-P",))


@dataclass(frozen=True)
class Record:
    """One lower bound. It is written down in the bound's own file; :mod:`bounds.registry` lists all.

    Attributes
    ----------
    theorem
        Its number in the theory.
    mark
        `"paper"`, `"sharper"` or `"new"`.
    function
        From `entities, relations, hops` and the arguments to a :class:`bounds.Bound`; its docstring says what is bounded.
    formula
        From a witness to the inequality as a sympy expression. sympy is loaded when it is asked for, not before.
    arguments
        Beside the shape. Which are optional, and their defaults, stand in the function's signature alone.
    """

    theorem: str
    mark: str
    function: Callable[..., Bound]
    formula: Callable[[Mapping[str, int]], Any]
    arguments: tuple[Argument, ...] = ()

    @property
    def name(self) -> str:
        """Of the function."""
        return self.function.__name__

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def default(self, argument: Argument) -> Any:
        """What the function takes if the argument is not given; `inspect.Parameter.empty` if it must be."""
        return signature(self.function).parameters[argument.name].default

    def required(self, argument: Argument) -> bool:
        """Whether the function has no default for the argument."""
        return self.default(argument) is Parameter.empty


@dataclass(frozen=True)
class CurveRecord:
    """A bound as a curve: the least of one quantity for each value of another.

    Attributes
    ----------
    theorem
        Its number in the theory.
    function
        From `entities, relations, hops` and the arguments to an object whose `points` are pairs of numbers.
    axes
        What the two numbers are.
    draw
        The function of :mod:`bounds.drawing` that draws it.
    arguments
        Beside the shape.
    """

    theorem: str
    function: Callable[..., Any]
    axes: tuple[str, str]
    draw: str
    arguments: tuple[Argument, ...] = ()
