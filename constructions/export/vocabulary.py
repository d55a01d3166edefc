"""Names as tokens: a word-level tokenizer in which a name with spaces is one token."""

from typing import Any

from geotheory.errors import InvalidArgument
from geotheory.facts import FactTable

__all__ = ["BLANK", "PAD", "UNKNOWN", "attribute_tokens", "tokenizer", "vocabulary"]

BLANK, UNKNOWN, PAD = "<blank>", "<unknown>", "<pad>"


def vocabulary(facts: FactTable, blanks: int) -> list[str]:
    """All tokens in order: subjects, relations, blanks, attributes that are no subjects, unknown, pad.

    Raises
    ------
    InvalidArgument
        A relation has the name of an entity, or a name is one of the special tokens.
    """
    entities = set(facts.subjects) | set(facts.attributes)
    clash = [name for name in facts.relations if name in entities]
    special = [name for name in (BLANK, UNKNOWN, PAD) if name in entities or name in facts.relations]
    if clash or special:
        raise InvalidArgument(
            f"{(clash or special)[0]!r} would be two tokens at once: rename "
            + ("the relation or the entity" if clash else "it, that token has a meaning of its own")
        )
    known = set(facts.subjects)
    others = [name for name in facts.attributes if name not in known]
    return [*facts.subjects, *facts.relations, *[BLANK] * blanks, *others, UNKNOWN, PAD]


def attribute_tokens(facts: FactTable, tokens: list[str]) -> list[int]:
    """The token of each attribute."""
    place = {name: i for i, name in enumerate(tokens)}
    return [place[name] for name in facts.attributes]


def tokenizer(tokens: list[str]) -> Any:
    """A fast tokenizer for them: `Ada wife mother` and `New York capital` are three and two tokens."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({name: i for i, name in enumerate(tokens)}, unk_token=UNKNOWN))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    # Names of several words are cut out of the text before it is split at spaces; the longest name wins.
    inner.add_tokens(
        [
            AddedToken(name, normalized=False, single_word=True)
            for name in tokens
            if len(name.split()) > 1 or name != name.strip()
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token=UNKNOWN,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
