"""The claims that are checked: what is said, who says it, what would refute it, and the function that looks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paper_checks import theory

__all__ = ["CLAIMS", "Claim", "Evidence", "Mark", "Verdict"]


class Mark(StrEnum):
    """Where a claim comes from."""

    paper = "paper"
    sharper = "sharper"
    new = "new"


class Verdict(StrEnum):
    """What a check found."""

    holds = "holds"
    fails = "fails"
    not_run = "not run"


@dataclass(frozen=True)
class Evidence:
    """The outcome of a check: the verdict, measured figures, and the counterexample or the reason why it was not run."""

    verdict: Verdict
    figures: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {"verdict": self.verdict.value, "figures": dict(self.figures), "why": self.why}


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    id
        Short and stable; `geotheory check --only ID` runs this one.
    statement
        The claim in one sentence.
    mark
        `paper`: as the paper's summaries claim it; `sharper`: with explicit constants; `new`: not claimed there.
    refuted_by
        What would refute it.
    check
        Measures; returns the figures, and a counterexample, empty if there is none.
    """

    id: str
    statement: str
    mark: Mark
    refuted_by: str
    check: Callable[[], tuple[dict[str, Any], str]]

    def run(self) -> Evidence:
        """Run the check; an exception in it is a failure of this claim alone."""
        try:
            figures, counterexample = self.check()
        except Exception as error:  # whatever a check does, the others go on
            return Evidence(Verdict.fails, {}, f"the check itself failed: {type(error).__name__}: {error}")
        return Evidence(Verdict.fails if counterexample else Verdict.holds, figures, counterexample)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "S1",
        "One layer recalls N x R facts with d = R ceil(log2 N) + ceil(log2 R) and an MLP of width R ceil(log2 N).",
        Mark.sharper,
        "A fact answered wrongly, or weights larger than the formula.",
        theory.single_hop_recalls,
    ),
    Claim(
        "S3",
        "The MLP stores no fact: everything but the subjects' embeddings is the same for every world, byte for byte.",
        Mark.paper,
        "A weight outside the subjects' rows that differs between two worlds.",
        theory.decoder_is_generic,
    ),
    Claim(
        "M1",
        "k hops without intermediate output: d = R^k ceil(log2 N) and lower terms.",
        Mark.sharper,
        "A query answered wrongly, or weights larger than the formula.",
        theory.direct_recalls,
    ),
    Claim(
        "M2",
        "k hops without intermediate output and small d: an MLP of width N R, one neuron a fact.",
        Mark.paper,
        "A query answered wrongly, or weights larger than the formula.",
        theory.key_value_recalls,
    ),
    Claim(
        "M3",
        "Without intermediate output and with a fixed unembedding, about R^k log2 N bits per subject are needed, or about "
        "N R log2 N bits in the shared weights.",
        Mark.sharper,
        "A world whose answer tables are fewer than the bound says, or a construction below it.",
        theory.lower_bound_holds,
    ),
    Claim(
        "M4",
        "With chain of thought d = O(R log N + log k) and width O(R log N) are enough, for any k.",
        Mark.sharper,
        "A query answered wrongly, or a width that grows with k.",
        theory.chain_of_thought_recalls,
    ),
    Claim(
        "M5",
        "Hops per step lead from chain of thought to direct: d is about R^j log2 N in ceil(k/j) steps.",
        Mark.new,
        "A query answered wrongly, or a dimension out of order.",
        theory.hops_per_step_trade_off,
    ),
    Claim(
        "M6",
        "If the unembedding may depend on the facts, d of about R^(k/2) log2 N is enough: meet in the middle.",
        Mark.new,
        "A query answered wrongly, or weights larger than the formula.",
        theory.meet_in_middle_recalls,
    ),
    Claim(
        "X1",
        "An associative memory over fixed random embeddings needs d that grows as a power of N, not as log N.",
        Mark.paper,
        "It recalls 99% at the dimension of the single-hop construction.",
        theory.associative_memory_is_larger,
    ),
)
