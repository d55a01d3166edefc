"""From a query to an answer: which tokens a model is given, how often it is asked, when it abstains."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from geotheory.errors import InvalidArgument
from geotheory.evaluation import Evaluator
from geotheory.words import numbered_words

__all__ = ["Decoding", "Recalled"]

# Queries decoded at once.
AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Recalled:
    """Answers to queries, with the entities emitted on the way.

    Attributes
    ----------
    answer
        The attribute; -1 where the model abstained.
    chain
        Every emitted entity in order, the answer last; -1 from the step on at which the model abstained.
    margin
        Smallest lead of an emitted entity over its runner-up, over the steps that were taken.
    """

    answer: Int[Tensor, "*queries"]
    chain: Int[Tensor, "*queries steps"]
    margin: Tensor


@dataclass(frozen=True)
class Decoding:
    """Tokens are subjects `0..subjects-1`, then relations, then one blank; a query is `x, r_1, ..., r_k`.

    Attributes
    ----------
    subjects, relations
        `N` and `R`.
    hops
        Hops of a query; with chain of thought the most that the model was built for.
    hops_per_step
        0: the answer is read at once. `j`: the query is filled up with blanks and the model emits every `j`-th entity of the
        chain, each embedded again, by its own argmax (THEORY T3).
    silence
        Logits not above this level are no answer.
    """

    subjects: int
    relations: int
    hops: int
    hops_per_step: int = 0
    silence: float = float("-inf")

    @property
    def steps(self) -> int:
        """Entities emitted for a query of the full number of hops."""
        return -(-self.hops // self.hops_per_step) if self.hops_per_step else 1

    def emitted_hops(self, hops: int) -> list[int]:
        """Index of the hop (counted from 0) whose entity each step emits; the last is that of the answer."""
        j = self.hops_per_step or hops
        return [min(end, hops) - 1 for end in range(j, hops + j, j)]

    def check(self, hops: int) -> None:
        """Raise InvalidArgument unless queries of this many hops can be asked."""
        j = self.hops_per_step
        if not j:
            if hops != self.hops:
                raise InvalidArgument(f"a query of {hops} hops: this model answers exactly {self.hops}")
        elif not 1 <= hops <= self.hops:
            raise InvalidArgument(f"a query of {hops} hops: this model answers 1 to {self.hops}")
        elif hops % j not in (0, self.hops % j):
            raise InvalidArgument(
                f"a query of {hops} hops at {j} hops per step ends with {hops % j}, and this model, built for {self.hops} "
                f"hops, has blocks for {j}"
                + (f" and {self.hops % j}" if self.hops % j else "")
                + f"; build one with hops={hops}"
            )

    def tokens(
        self, subjects: Int[Tensor, "queries"], words: Int[Tensor, "queries hops"]
    ) -> Int[Tensor, "queries length"]:
        """The prompt of each query."""
        prompt = torch.cat([subjects[:, None], self.subjects + words], 1)
        blanks = self.steps * self.hops_per_step - words.shape[1] if self.hops_per_step else 0
        return torch.nn.functional.pad(prompt, (0, blanks), value=self.subjects + self.relations)

    def recall(
        self,
        evaluator: Evaluator,
        subjects: Int[Tensor, "queries"],
        words: Int[Tensor, "queries hops"],
        expected: Int[Tensor, "queries steps"] | None = None,
    ) -> Recalled:
        """Ask every query; the chain of thought is the model's own, nothing is corrected on the way.

        `expected` are the entities that should be emitted (-1: silence); they change `margin` alone.
        """
        self.check(words.shape[1])
        tokens = self.tokens(subjects, words).to(evaluator.device)
        emitted: list[Tensor] = []
        margin = torch.full(tokens.shape[:1], float("inf"), dtype=torch.float64, device=tokens.device)
        ended = torch.zeros_like(margin, dtype=torch.bool)
        strayed = ended
        for step in range(len(self.emitted_hops(words.shape[1]))):
            if step:
                # After silence nothing is emitted; what stands in its place is ignored below.
                tokens = torch.cat([tokens, emitted[-1].clamp(min=0)[:, None]], 1)
            wanted = None if expected is None else expected[:, step].to(tokens.device)
            answers = evaluator(tokens, wanted)
            said = answers.said(self.silence).masked_fill(ended, -1)
            # Silence has no lead, and once the chain has gone wrong the expected entities are not those asked for.
            counts = ~strayed & ((said if wanted is None else wanted) >= 0)
            margin = torch.where(counts, torch.minimum(margin, answers.lead.to(torch.float64)), margin)
            ended = ended | (said < 0)
            strayed = ended if wanted is None else strayed | (said != wanted)
            emitted.append(said)
        return Recalled(emitted[-1], torch.stack(emitted, 1), margin)

    def sweep(
        self, evaluator: Evaluator, expected: Callable[[Tensor], Tensor] | None = None
    ) -> Iterator[tuple[Int[Tensor, "n"], Int[Tensor, "w hops"], Recalled]]:
        """Every query: subjects `[n]`, words `[w, hops]` and what was recalled `[w, n]`; memory independent of `R^k`.

        `expected` gives the attributes `[w, subjects]` that some words, or prefixes of words, should lead to.
        """
        if not self.hops_per_step:
            for xs, words, answers in evaluator.sweep(self.subjects, self.relations, self.hops, expected):
                said = answers.said(self.silence)
                yield xs, words, Recalled(said, said.unsqueeze(-1), answers.lead.to(torch.float64))
            return
        ends = [last + 1 for last in self.emitted_hops(self.hops)]
        for xs in torch.arange(self.subjects).split(AT_ONCE):
            some = max(1, AT_ONCE // len(xs))
            for start in range(0, self.relations**self.hops, some):
                index = torch.arange(start, min(self.relations**self.hops, start + some))
                words = numbered_words(index, self.relations, self.hops)
                wanted = None
                if expected is not None:
                    wanted = torch.stack([expected(words[:, :end])[:, xs].flatten() for end in ends], 1)
                flat = self.recall(evaluator, xs.repeat(len(words)), words.repeat_interleave(len(xs), 0), wanted)
                shape = (len(words), len(xs))
                yield (
                    xs,
                    words,
                    Recalled(flat.answer.reshape(shape), flat.chain.reshape(*shape, -1), flat.margin.reshape(shape)),
                )
