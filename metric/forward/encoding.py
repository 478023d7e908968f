"""From text to token ids: `[CLS] reference [SEP] candidate [SEP]`, shortened as BLEURT shortens (section 3.2).

Text that a checkpoint does not read is noted: two emoji that its tokenizer does not know are the same to it, and so are
two sentences in a script that it never saw. The text itself is left as it is, because the official tokenizers drop
invisible characters, and scores must stay equal to theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from bleurt_repro.metric.layout import ROLES, Layout

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from bleurt_repro.metric.loading.wordpiece import WordPieceTokenizer

# Letters of the Latin script, in the blocks of Unicode that hold them, full-width ones included.
LATIN = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u0250-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a]")  # fmt: skip
# The replacement character of damaged text, soft hyphens, zero-width spaces and joiners: BERT's tokenizer drops them.
INVISIBLE = re.compile("[\ufffd\u00ad\u200b-\u200d\u2060\ufeff]")
# A tokenizer with fewer pieces of other scripts was made for languages in Latin letters (BERT's English one: 0.04).
SHARE_OF_OTHERS = 0.1
PART = 2**20  # characters that are looked at together
# A text longer than so many characters for each token of the input is tokenised in parts, until the input is full.
CHARACTERS_A_TOKEN = 16
# Before these a WordPiece tokenizer always begins a new word: the space, ideographs, and ASCII punctuation but for what may
# stand inside a word (' . : ^ `), by which the form of a sigma is decided.
WORD_STARTS = re.compile(r"""[ !"#$%&()*+,\-/;<=>?@\[\\\]_{|}~\u4e00-\u9fff]""")
# Other tokenizers divide a text at a space between two letters or digits, if at all (see `word_starts`).
SPACE_IN_TEXT = re.compile(r"(?<=[^\W_]) (?=[^\W_])")
# Longer words than any text has, in characters, are read so far.
LONGEST_WORD = 2**20
# Letters and digits of one word, of which normalisation leaves at least one character each; no ideographs.
IN_A_WORD = r"[^\W_\u2e80-\u303f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0010ffff]"


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
        tokenizer: a `transformers` tokenizer, or a `WordPieceTokenizer`.
        layout: which segments the checkpoint reads, in which order.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase | WordPieceTokenizer, layout: Layout) -> None:
        own: Any = tokenizer
        self.tokenizer = own
        self.layout = layout
        self._room = layout.max_length - layout.special_tokens
        # BERT's pooled token opens the input and its separator closes each text; RoBERTa calls them bos and eos.
        self._first = own.cls_token_id if own.cls_token_id is not None else own.bos_token_id
        self._separator = own.sep_token_id if own.sep_token_id is not None else own.eos_token_id
        if self._first is None or self._separator is None:
            raise ValueError(
                "the tokenizer has no [CLS] and [SEP] tokens (or <s> and </s>), which a scorer's input needs"
            )
        self._unknown = getattr(own, "unk_token_id", None)
        self._longest_word = longest_word(own)
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

    @cached_property
    def _word_starts(self) -> re.Pattern[str] | None:
        return word_starts(self.tokenizer) if self._longest_word is None else WORD_STARTS

    def tokenize(self, texts: Iterable[str]) -> dict[str, list[int]]:
        """Tokenise each different text once.

        Args:
            texts: any number of texts, repeated or not.

        Returns:
            token ids of each different text, without special tokens; text that looks like one ("[SEP]") stays text. Of a
            very long text those that an input has room for, and at least one more.
        """
        unique = list(dict.fromkeys(texts))
        if not unique:
            return {}
        size = CHARACTERS_A_TOKEN * self.layout.max_length
        parts = [self._parts(text, size) if len(text) > size else iter([text]) for text in unique]
        tokens = self._ids([next(part) for part in parts])
        for ids, text, part in zip(tokens, unique, parts, strict=True):
            while len(text) > size and len(ids) <= self._room and (more := next(part, None)) is not None:
                ids += self._ids([more])[0]
        return dict(zip(unique, tokens, strict=True))

    def _parts(self, text: str, size: int) -> Iterator[str]:
        """Divide a text where words begin: the tokens of the parts, one after the other, are those of the text.

        Args:
            text: of any length; a tokenizer takes over 100 bytes a character for it.
            size: characters of a part, more only where no word begins.
        """
        start = 0
        while self._word_starts is not None and len(text) - start > size:
            last = self._word_starts.search(text[start + 1 : start + size][::-1])
            if last is not None:
                end = start + size - last.end()
                yield text[start:end]
            else:
                found = self._word_starts.search(text, start + size)
                end = found.start() if found else len(text)
                yield self._shortened(text[start:end])
            start = end
        yield text[start:]

    def _shortened(self, text: str) -> str:
        if self._longest_word is None:
            return text[:LONGEST_WORD]
        return shortened_words(text, self._longest_word)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        return self.tokenizer(
            [without_lone_surrogates(text) for text in texts],
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            split_special_tokens=True,
            verbose=False,
        )["input_ids"]

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


def longest_word(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the characters above which a WordPiece tokenizer takes a word for an unknown one.

    Returns:
        None of another tokenizer, and of one with tokens of its user's, in which words need not be separate.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or type(backend.model).__name__ != "WordPiece":
        return None
    if backend.normalizer is None or backend.pre_tokenizer is None:
        return None
    sample = "a".join(" !,-~\u4e00\u9fff ")
    words = backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(sample))
    if [word for word, _ in words] != list(sample.replace(" ", "")):
        return None
    if any(not token.special for token in backend.get_added_tokens_decoder().values()):
        return None
    return backend.model.max_input_chars_per_word


def word_starts(tokenizer: PreTrainedTokenizerBase) -> re.Pattern[str] | None:
    """Return where a SentencePiece or byte-level tokenizer always begins a new token: at a space within text.

    Returns:
        None of one that does not, or whose parts are not those of the whole, or with tokens of its user's.
    """
    if any(not token.special for token in tokenizer.added_tokens_decoder.values()):
        return None
    sample = ("ab 12", " cd", " ef")
    whole, *parts = tokenizer(["".join(sample), *sample], add_special_tokens=False)["input_ids"]
    if whole != [token for part in parts for token in part]:
        return None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        space: str | None = "\u2581" if hasattr(tokenizer, "sp_model") else None
    else:
        text = backend.normalizer.normalize_str("ab cd") if backend.normalizer else "ab cd"
        words = [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(text)] if backend.pre_tokenizer else [text]
        if words == ["ab", "cd"]:
            return SPACE_IN_TEXT
        found = re.search("ab(.+)cd", "".join(words))
        space = found[1] if found else None  # what stands for a space
    if space is None:
        return None
    is_within = re.compile(f"[^{re.escape(space)}]{re.escape(space)}")  # a piece that may go on after a space
    return None if any(map(is_within.search, tokenizer.get_vocab())) else SPACE_IN_TEXT


def shortened_words(text: str, longest: int) -> str:
    """Cut words of many letters to one more than a tokenizer reads: they are unknown before and after.

    Text with a capital sigma, whose form depends on the letters around it, is left as it is.
    """
    return text if "\u03a3" in text else re.sub(f"({IN_A_WORD}{{{longest + 1}}}){IN_A_WORD}+", r"\1", text)


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
    return 2 * sum(len(LATIN.findall(text, start, start + PART)) for start in range(0, len(text), PART)) < letters


def has_invisible(text: str) -> bool:
    """Return whether a text holds characters that no reader sees and that the tokenizer drops."""
    return not text.isascii() and INVISIBLE.search(text) is not None


def reads_latin_only(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether a tokenizer's vocabulary is of languages in Latin letters, as that of all English checkpoints."""
    pieces = [piece for piece in tokenizer.get_vocab() if any(map(str.isalpha, piece))]
    return sum(map(is_other_script, pieces)) < SHARE_OF_OTHERS * len(pieces)
