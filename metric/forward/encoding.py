"""From text to token ids: `[CLS] reference [SEP] candidate [SEP]`, shortened as BLEURT shortens (section 3.2).

Text that a checkpoint does not read is noted: two emoji that its tokenizer does not know are the same to it, and so are
two sentences in a script that it never saw. The text itself is left as it is, because the official tokenizers drop
invisible characters, and scores must stay equal to theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from bleurt_repro.metric.layout import ROLES, Layout

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Letters of the Latin script, in the blocks of Unicode that hold them, full-width ones included.
LATIN = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u0250-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a]")  # fmt: skip
# The replacement character of damaged text, soft hyphens, zero-width spaces and joiners: BERT's tokenizer drops them.
INVISIBLE = re.compile("[\ufffd\u00ad\u200b-\u200d\u2060\ufeff]")
# A tokenizer with fewer pieces of other scripts was made for languages in Latin letters (BERT's English one: 0.04).
SHARE_OF_OTHERS = 0.1


class Encoded(NamedTuple):
    """One input of the model.

    Attributes:
        ids, segments: token ids and segment ids, of the same length.
        truncated: whether text was cut.
        unknown: whether there are pieces that the tokenizer does not know.
        unread: whether it holds text that is not read: unknown pieces, another script, or invisible characters.
    """

    ids: list[int]
    segments: list[int]
    truncated: bool
    unknown: bool = False
    unread: bool = False


def truncated_lengths(lengths: Sequence[int], room: int) -> list[int]:
    """Return how many tokens of each text remain when they share `room` tokens.

    The official loop takes the last token of the longest text until all fit; among equally long ones, of the last
    (so of the candidate before the reference). This is its closed form: the long texts end at one common level, and
    what the level leaves over goes to the first of them.

    Args:
        lengths: tokens of each text.
        room: tokens there is room for in all.

    Returns:
        the lengths that remain, in the same order.
    """
    if sum(lengths) <= room:
        return list(lengths)
    level, left = 0, room
    for rank, length in enumerate(sorted(lengths)):
        level = left // (len(lengths) - rank)
        if length > level:
            break
        left -= length
    kept = [min(length, level) for length in lengths]
    spare = room - sum(kept)
    for i, length in enumerate(lengths):
        if length > level and spare:
            kept[i] += 1
            spare -= 1
    return kept


class PairEncoder:
    """Turns texts into model inputs by a checkpoint's tokenizer and layout.

    Args:
        tokenizer: a `transformers` tokenizer.
        layout: which segments the checkpoint reads, in which order.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, layout: Layout) -> None:
        self.tokenizer = tokenizer
        self.layout = layout
        self._room = layout.max_length - layout.special_tokens
        # BERT's pooled token opens the input and its separator closes each text; RoBERTa calls them bos and eos.
        self._first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        self._separator = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        if self._first is None or self._separator is None:
            raise ValueError(
                "the tokenizer has no [CLS] and [SEP] tokens (or <s> and </s>), which a scorer's input needs"
            )
        self._unknown = getattr(tokenizer, "unk_token_id", None)
        # The text order in which ties are broken, whatever the order of the input: the candidate is cut first.
        self._tie_order = [layout.inputs.index(role) for role in ROLES if role in layout.inputs]

    def encode_all(self, items: Iterable[Sequence[str]]) -> list[Encoded]:
        """Turn the texts of pairs (or triples), in the layout's order, into the model's inputs."""
        items = list(items)
        tokens = self.tokenize(text for item in items for text in item)
        unread = {text for text in tokens if not text.isascii() and self._is_unread(text)}
        encoded = []
        for item in items:
            inputs = self.encode([tokens[text] for text in item])
            encoded.append(inputs._replace(unread=inputs.unknown or not unread.isdisjoint(item)))
        return encoded

    def _is_unread(self, text: str) -> bool:
        return has_invisible(text) or (is_other_script(text) and self.latin_only)

    @cached_property
    def latin_only(self) -> bool:
        """Whether the vocabulary is of languages in Latin letters."""
        return reads_latin_only(self.tokenizer)

    def tokenize(self, texts: Iterable[str]) -> dict[str, list[int]]:
        """Tokenise each different text once.

        Args:
            texts: any number of texts, repeated or not.

        Returns:
            token ids of each different text, without special tokens; text that looks like one ("[SEP]") stays text.
        """
        unique = list(dict.fromkeys(texts))
        if not unique:
            return {}
        tokens = self.tokenizer(
            [without_lone_surrogates(text) for text in unique],
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            split_special_tokens=True,
            verbose=False,
        )["input_ids"]
        return dict(zip(unique, tokens, strict=True))

    def encode(self, texts: Sequence[Sequence[int]]) -> Encoded:
        """Put the tokens of one pair (or triple) together.

        Args:
            texts: token ids of each segment, in the layout's order.

        Returns:
            the model's input, at most `layout.max_length` tokens long.
        """
        in_tie_order = truncated_lengths([len(texts[i]) for i in self._tie_order], self._room)
        kept = dict(zip(self._tie_order, in_tie_order, strict=True))
        ids, segments = [self._first], [0]
        for i, tokens in enumerate(texts):
            if i:
                ids += [self._separator] * (self.layout.separators - 1)
                segments += [min(i, 1)] * (self.layout.separators - 1)
            ids += [*tokens[: kept[i]], self._separator]
            segments += [min(i, 1)] * (kept[i] + 1)
        truncated = any(kept[i] < len(tokens) for i, tokens in enumerate(texts))
        return Encoded(ids, segments, truncated, self._unknown in ids)


def without_lone_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs, which are no characters and which tokenizers refuse, by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_other_script(text: str) -> bool:
    """Return whether most letters of a text are of another script than Latin."""
    if text.isascii():
        return False
    letters = sum(map(str.isalpha, text))
    return 2 * len(LATIN.findall(text)) < letters


def has_invisible(text: str) -> bool:
    """Return whether a text holds characters that no reader sees and that the tokenizer drops."""
    return not text.isascii() and INVISIBLE.search(text) is not None


def reads_latin_only(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether a tokenizer's vocabulary is of languages in Latin letters, as that of all English checkpoints."""
    pieces = [piece for piece in tokenizer.get_vocab() if any(map(str.isalpha, piece))]
    return sum(map(is_other_script, pieces)) < SHARE_OF_OTHERS * len(pieces)
