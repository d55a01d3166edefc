"""What a lower bound says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["Bound"]


@dataclass(frozen=True)
class Bound:
    """A lower bound, rounded down: true for every model of the kind that `statement` describes.

    Attributes
    ----------
    value
        The bound, in `unit`.
    unit
        `"bits"`, `"neurons"` or `"dimensions"`.
    witness
        What was counted, by the names in `formula`: the best number of roots `M`, the relations and hops `R` and `k` that were
        asked about, `rho` if trees branch into some relations only; or `p, q, M, M'`. Any other witness gives a valid, weaker
        bound.
    theorem
        Its number in the theory.
    mark
        `"paper"`, `"sharper"` or `"new"`.
    statement
        What is bounded and under which assumptions, in words.
    inequality
        From a witness to the inequality as a sympy expression.
    """

    value: float
    unit: str
    witness: Mapping[str, int]
    theorem: str
    mark: str
    statement: str
    inequality: Callable[[Mapping[str, int]], Any] = field(repr=False, compare=False)

    @property
    def bits(self) -> float:
        """The value, for bounds in bits."""
        if self.unit != "bits":
            raise AttributeError(f"{self.theorem} bounds {self.unit}, not bits; see .value")
        return self.value

    @property
    def roots(self) -> int:
        """`M`, the subjects whose answers were counted."""
        return self.witness["M"]

    @property
    def formula(self) -> Any:
        """The inequality as a sympy expression (:mod:`bounds.symbols`)."""
        return self.inequality(self.witness)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "inequality"}
        return plain | {"witness": dict(self.witness)}

    def __str__(self) -> str:
        found = ", ".join(f"{name} = {value:,}" for name, value in self.witness.items())
        return f"{self.theorem}: at least {self.value:,.10g} {self.unit} ({found})\n{self.statement}"
