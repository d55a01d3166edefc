"""Ask a model every query there is, or a sample, and compare with the facts."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from geotheory.decoding import AT_ONCE, Decoding
from geotheory.errors import InvalidArgument, TooLarge, positive_integer
from geotheory.evaluation import Evaluator
from geotheory.facts import FactTable
from geotheory.transformer import Transformer

__all__ = ["Counterexample", "Verification", "verify"]

# More queries than this are not asked exhaustively: at 10^6 a second they would take days.
MOST_QUERIES = 10**12
COUNTEREXAMPLES = 10


@runtime_checkable
class Recaller(Protocol):
    """What `verify` needs of a construction."""

    @property
    def transformer(self) -> nn.Module: ...

    @property
    def facts(self) -> FactTable: ...

    @property
    def decoding(self) -> Decoding: ...


@dataclass(frozen=True)
class Counterexample:
    """A query answered wrongly, by name; None stands for abstaining, or for a fact that is missing."""

    subject: str
    relations: tuple[str, ...]
    expected: str | None
    answer: str | None
    lead: float

    def __str__(self) -> str:
        expected, answer = (name or "no answer" for name in (self.expected, self.answer))
        return f"({', '.join((self.subject, *self.relations))}): {answer}, not {expected} (lead {self.lead:g})"


@dataclass(frozen=True)
class Verification:
    """What :func:`verify` found.

    Attributes
    ----------
    queries, correct
        How many were asked and how many answered rightly. A tie is wrong; a missing fact is right if the model abstains.
    margin
        Smallest lead of the right attribute's logit over every other, over all queries that have an answer (and over all
        steps of a chain of thought, up to its first wrong one); not positive if one of them is wrong, infinite if there is but
        one attribute.
    seconds
        Wall-clock time.
    counterexamples
        The first few queries answered wrongly.
    complete
        False if it was interrupted: the figures then speak of the queries asked until then.
    exhaustive
        Whether all queries were to be asked, not a sample.
    """

    queries: int
    correct: int
    margin: float
    seconds: float
    counterexamples: tuple[Counterexample, ...] = ()
    complete: bool = True
    exhaustive: bool = True

    @property
    def accuracy(self) -> float:
        """Share of queries answered rightly; 1 if there were none to ask."""
        return self.correct / self.queries if self.queries else 1.0

    @property
    def holds(self) -> bool:
        """Whether every query was asked to the end and answered rightly."""
        return self.complete and self.correct == self.queries

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; figures that JSON has no number for are the strings `inf`, `-inf` and `nan`."""
        return {
            "queries": self.queries,
            "correct": self.correct,
            "accuracy": self.accuracy,
            "margin": _plain(self.margin),
            "seconds": self.seconds,
            "complete": self.complete,
            "exhaustive": self.exhaustive,
            "counterexamples": [{**vars(c), "lead": _plain(c.lead)} for c in self.counterexamples],
        }

    def __str__(self) -> str:
        asked = f"{self.queries:,} queries" + ("" if self.exhaustive else " (a sample)")
        lines = [f"{self.correct:,} of {asked} right, smallest margin {self.margin:g}, {self.seconds:.2f} s"]
        if not self.complete:
            lines.append("interrupted: the rest was not asked")
        return "\n".join(lines + [f"wrong: {c}" for c in self.counterexamples])


def _plain(figure: float) -> float | str:
    return figure if isfinite(figure) else str(figure)


@dataclass
class _Batch:
    """Some queries: `locate(i)` gives the subject and the word of the `i`-th, which are not spelt out otherwise."""

    locate: Callable[[int], tuple[int, list[int]]]
    expected: Tensor
    answer: Tensor
    margin: Tensor


@dataclass
class _Tally:
    """Running totals of the batches seen so far."""

    facts: FactTable
    only_answerable: bool
    queries: int = 0
    correct: int = 0
    margin: float = inf
    wrong: list[Counterexample] = field(default_factory=list)

    def add(self, batch: _Batch) -> None:
        answerable = batch.expected >= 0
        right = batch.answer == batch.expected
        if self.only_answerable:
            self.queries += int(answerable.sum())
            self.correct += int((right & answerable).sum())
            right = right | ~answerable
        else:
            self.queries += len(right)
            self.correct += int(right.sum())
        if bool(answerable.any()):
            smallest = float(batch.margin[answerable].min())
            self.margin = min(self.margin, -inf if isnan(smallest) else smallest)
        if len(self.wrong) < COUNTEREXAMPLES and not bool(right.all()):
            for i in (~right).nonzero()[: COUNTEREXAMPLES - len(self.wrong), 0].tolist():
                self.wrong.append(self._counterexample(batch, i))

    def _counterexample(self, batch: _Batch, i: int) -> Counterexample:
        subject, word = batch.locate(i)
        expected, answer = int(batch.expected[i]), int(batch.answer[i])
        return Counterexample(
            subject=self.facts.subjects[subject],
            relations=tuple(self.facts.relations[r] for r in word),
            expected=self.facts.attributes[expected] if expected >= 0 else None,
            answer=self.facts.attributes[answer] if answer >= 0 else None,
            lead=float(batch.margin[i]),
        )


def _exhaustive(evaluator: Evaluator, decoding: Decoding, facts: FactTable) -> Iterator[_Batch]:
    for xs, words, recalled in decoding.sweep(evaluator, facts.compose):
        n = len(xs)

        def locate(i: int, xs: Tensor = xs, words: Tensor = words, n: int = n) -> tuple[int, list[int]]:
            return int(xs[i % n]), words[i // n].tolist()

        expected = facts.compose(words)[:, xs.cpu()]
        yield _Batch(locate, expected.flatten(), recalled.answer.flatten().cpu(), recalled.margin.flatten().cpu())


def _sampled(evaluator: Evaluator, decoding: Decoding, facts: FactTable, sample: int, seed: int) -> Iterator[_Batch]:
    generator = torch.Generator().manual_seed(seed)
    for start in range(0, sample, AT_ONCE):
        count = min(AT_ONCE, sample - start)
        subjects = torch.randint(facts.num_subjects, (count,), generator=generator)
        words = torch.randint(facts.num_relations, (count, decoding.hops), generator=generator)

        def locate(i: int, subjects: Tensor = subjects, words: Tensor = words) -> tuple[int, list[int]]:
            return int(subjects[i]), words[i].tolist()

        chain = facts.follow(subjects, words)
        expected = chain[:, decoding.emitted_hops(decoding.hops)]
        recalled = decoding.recall(evaluator, subjects, words, expected)
        yield _Batch(locate, chain[:, -1], recalled.answer.cpu(), recalled.margin.cpu())


@contextmanager
def _bar(total: int, wanted: bool) -> Iterator[Callable[[int], object]]:
    """A progress bar with rate and time left; yields the function that advances it."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("verifying"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:,.0f} queries/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, rate=0.0)

        def advance(count: int) -> None:
            bar.advance(task, count)
            bar.update(task, rate=bar.tasks[0].speed or 0.0)

        yield advance


def _ensure_matches(transformer: Transformer, facts: FactTable, hops: int) -> None:
    shape = transformer.shape
    tokens = facts.num_subjects + facts.num_relations
    if shape.tokens < tokens or shape.attributes != facts.num_attributes or 0 < shape.length < hops + 1:
        raise InvalidArgument(
            f"a transformer of {shape.tokens} tokens, {shape.attributes} attributes and {shape.length or 'any number of'} "
            f"positions cannot be asked {hops} hops about {facts!r}: that takes {tokens}, {facts.num_attributes} and {hops + 1}"
        )


def verify(
    model: Recaller | nn.Module,
    facts: FactTable | None = None,
    hops: int | None = None,
    *,
    sample: int | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: bool = False,
    dense: bool = False,
) -> Verification:
    """Ask every query `(x, r_1, ..., r_k)`, or a sample, and compare the answers with the facts.

    Parameters
    ----------
    model
        A construction, or any `nn.Module` from tokens `[batch, 1 + k]` to logits `[batch, attributes]`, where subject `x` is
        token `x` and relation `r` is token `N + r`.
    facts, hops
        Needed for a module (`hops` is 1 if not given); a construction has its own, and with chain of thought may be asked
        fewer hops than it was built for.
    sample
        Ask this many queries, drawn uniformly and independently with `seed`, instead of all.
    device
        Move the model there first. By default it is asked where it lies.
    progress
        Show a progress bar, on a terminal only.
    dense
        Use the dense forward pass even where folding applies: the reference, slow.

    Returns
    -------
    Verification
        A missing fact must be met with silence by a construction; a bare module has no silence, so queries without an answer
        are left out there. On Ctrl-C, what was found until then, with `complete=False`.

    Raises
    ------
    InvalidArgument
        The model is no module, or has no facts, or does not take so many hops.
    TooLarge
        More than 10^12 queries and no `sample`.

    Notes
    -----
    Time grows with the number of queries, memory with neither `R^k` nor `N^2`: see :mod:`geotheory.evaluation`.

    Examples
    --------
    >>> import constructions
    >>> from geotheory import FactTable, verify
    >>> found = verify(constructions.single_hop(FactTable.random_bijections(entities=10, relations=3)))
    >>> found.queries, found.accuracy, found.margin
    (30, 1.0, 2.0)
    """
    started = time.perf_counter()
    if isinstance(model, Recaller):
        module, facts, decoding = model.transformer, facts or model.facts, model.decoding
        if facts.table.shape != model.facts.table.shape or facts.num_attributes != model.facts.num_attributes:
            raise InvalidArgument(f"the model was built for {model.facts!r} and cannot be asked about {facts!r}")
        if hops is not None:
            decoding.check(positive_integer("hops", hops))
            decoding = replace(decoding, hops=hops) if hops != decoding.hops else decoding
        only_answerable = False
    elif isinstance(model, nn.Module):
        if facts is None:
            raise InvalidArgument("verify(module) needs the facts too: verify(module, facts, hops=k)")
        module = model
        decoding = Decoding(
            facts.num_subjects, facts.num_relations, positive_integer("hops", 1 if hops is None else hops)
        )
        only_answerable = True
        if isinstance(module, Transformer):
            _ensure_matches(module, facts, decoding.hops)
    else:
        raise InvalidArgument(f"verify takes a construction or an nn.Module, not {type(model).__name__}")
    N, R, k = facts.num_subjects, facts.num_relations, decoding.hops
    if sample is not None:
        positive_integer("sample", sample)
    elif N * R**k > MOST_QUERIES:
        raise TooLarge(
            f"{N:,} subjects and {R:,}^{k} words make {N * R**k:,} queries: give sample=..., or prove it with .certificate()"
        )
    if not 0 <= positive_integer("seed", seed, least=0) < 2**64:
        raise InvalidArgument(f"seed must be below 2^64, not {seed}")
    if device is not None:
        try:
            module = module.to(device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise InvalidArgument(f"device {str(device)!r} is not available here: {error}") from error
    was_training = module.training
    module.eval()
    evaluator = Evaluator(module, dense=dense)
    tally = _Tally(facts, only_answerable)
    batches = _sampled(evaluator, decoding, facts, sample, seed) if sample else _exhaustive(evaluator, decoding, facts)
    complete = True
    try:
        with torch.no_grad(), _bar(sample or N * R**k, progress) as advance:
            for batch in batches:
                tally.add(batch)
                advance(len(batch.expected))
    except KeyboardInterrupt:
        complete = False
    finally:
        module.train(was_training)
    return Verification(
        queries=tally.queries,
        correct=tally.correct,
        margin=tally.margin,
        seconds=time.perf_counter() - started,
        counterexamples=tuple(tally.wrong),
        complete=complete,
        exhaustive=sample is None,
    )
