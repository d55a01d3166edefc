"""What subjects' rows hold: the codes of the answers to every word, block beside block."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from geotheory.codes import Code
from geotheory.facts import FactTable

__all__ = ["subject_blocks"]

# Codewords made at once: the table of all answers of all subjects may be far larger than a few rows of it.
AT_ONCE = 1 << 18


def subject_blocks(
    facts: FactTable, code: Code, *words: Tensor
) -> Iterator[tuple[slice, Float[Tensor, "rows blocks"]]]:
    """Runs of subjects and their blocks: the code of `T(x, word)` for every word, zero where a fact is missing.

    Parameters
    ----------
    facts
        The table.
    code
        Of the attributes.
    words
        Tensors `[W_i, k_i]` of words of one length each; their blocks follow one another.
    """
    blocks = sum(len(some) for some in words)
    # A last row of zeros, which the index -1 reads: a missing fact.
    codewords = torch.nn.functional.pad(code.words(), (0, 0, 0, 1))
    for subjects in torch.arange(facts.num_subjects).split(max(1, AT_ONCE // max(1, blocks))):
        answers = torch.cat([_answers(facts, subjects, some) for some in words], 1)
        yield slice(int(subjects[0]), int(subjects[-1]) + 1), codewords[answers].flatten(1)


def _answers(facts: FactTable, subjects: Tensor, words: Tensor) -> Tensor:
    if words.shape[1] == 0:
        return subjects[:, None]
    chains = facts.follow(subjects.repeat_interleave(len(words)), words.repeat(len(subjects), 1))
    return chains[:, -1].reshape(len(subjects), len(words))
