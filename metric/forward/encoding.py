"""From text to token ids: `[CLS] reference [SEP] candidate [SEP]`, shortened as BLEURT shortens (section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from bleurt_repro.metric.forward.unread import (
    LATIN,
    has_invisible,
    is_other_language,
    is_other_script,
    scripts_read,
    unread_words,
)
from bleurt_repro.metric.layout import ROLES, Layout
from bleurt_repro.metric.loading.quiet import one_line_errors

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from bleurt_repro.metric.loading.wordpiece import WordPieceTokenizer

# A text longer than this for each token of the input is tokenised in pieces, until the input is full.
CHARACTERS_PER_TOKEN = 16
# Before these a WordPiece tokenizer always begins a new word: the space, ideographs, and ASCII punctuation but for
# what may stand inside a word (' . : ^ `), by which the form of a sigma is decided.
WORD_STARTS = re.compile(r"""[ !"#$%&()*+,\-/;<=>?@\[\\\]_{|}~\u4e00-\u9fff]""")
# Other tokenizers divide a text at a space between two letters or digits, if at all (see `word_starts`).
SPACE_IN_TEXT = re.compile(r"(?<=[^\W_]) (?=[^\W_])")
# Characters of a word without end that are read.
LONGEST_WORD = 2**20
# Letters and digits of one word, of which normalisation leaves at least one character each; no ideographs.
IN_A_WORD = r"[^\W_\u2e80-\u303f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0010ffff]"


class Encoded(NamedTuple):
    """One input of the model; tuples of numbers, unlike lists, cost the garbage collector nothing.

    Attributes:
        ids, segments: token ids and segment ids, of the same length.
        truncated: whether text was cut.
        unknown: whether there are pieces that the tokenizer does not know.
        unread: whether it holds text that is not read: unknown pieces, another language or script, or invisible
            characters.
    """

    ids: tuple[int, ...]
    segments: tuple[int, ...]
    truncated: bool
    unknown: bool = False
    unread: bool = False


def truncated_lengths(lengths: Sequence[int], room: int) -> list[int]:
    """Return how many tokens of each text remain when they share `room` tokens.

    The official loop takes the last token of the longest text until all fit; among equally long ones, of the last
    (so of the candidate before the reference). This is its closed form: the long texts end at one common level, and
    what the level leaves over goes to the first of them.

    Args:
        lengths: number of tokens of each text.
        room: number of tokens that the texts may have in all.

    Returns:
        the lengths that remain, in the same order.
    """
    if sum(lengths) <= room:
        return list(lengths)
    # Texts shorter than an equal share stay whole, from the shortest on; what they do not use raises the share of the
    # others.
    level, left = 0, room
    for rank, length in enumerate(sorted(lengths)):
        level = left // (len(lengths) - rank)
        if length > level:
            break
        left -= length
    shortened = [min(length, level) for length in lengths]
    # Division leaves fewer tokens over than there are long texts: one each for the first of them.
    spare = room - sum(shortened)
    for i, length in enumerate(lengths):
        if length > level and spare:
            shortened[i] += 1
            spare -= 1
    return shortened


class PairEncoder:
    """Turn texts into model inputs by a checkpoint's tokenizer and layout.

    Args:
        tokenizer: `transformers` tokenizer, or `WordPieceTokenizer`.
        layout: segments that the checkpoint reads, in their order.
        name: name of the checkpoint, for messages.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase | WordPieceTokenizer, layout: Layout, name: str | None = None
    ) -> None:
        self.tokenizer: Any = tokenizer
        self.layout = layout
        self._subject = f"checkpoint {name}: its tokenizer" if name else "the tokenizer"
        self._room = layout.max_length - layout.special_tokens
        # BERT's pooled token opens the input and its separator closes each text; RoBERTa calls them bos and eos.
        self._first = self._special_token("cls", "bos")
        self._separator = self._special_token("sep", "eos")
        if self._first is None or self._separator is None:
            raise ValueError(
                f"{self._subject} has no [CLS] and [SEP] tokens (or <s> and </s>), which a scorer's input needs"
            )
        self._unknown = getattr(tokenizer, "unk_token_id", None)
        self._longest_word = longest_word(tokenizer)
        # The text order in which ties are broken, whatever the order of the input: the candidate is cut first.
        self._tie_order = [layout.inputs.index(role) for role in ROLES if role in layout.inputs]

    def _special_token(self, *names: str) -> int | None:
        ids = (getattr(self.tokenizer, f"{name}_token_id", None) for name in names)
        return next((token for token in ids if token is not None), None)

    def encode_all(self, items: Iterable[Sequence[str]]) -> list[Encoded]:
        """Return the model's inputs for the texts of pairs (or triples) in the layout's order."""
        items = list(items)
        tokens = self.tokenize(text for item in items for text in item)
        unread = {text for text in tokens if self._is_unread(text)}
        encoded = []
        for item in items:
            ids, segments, truncated, unknown, _ = self.encode([tokens[text] for text in item])
            encoded.append(Encoded(ids, segments, truncated, unknown, unknown or not unread.isdisjoint(item)))
        return encoded

    def _is_unread(self, text: str) -> bool:
        return (
            has_invisible(text)
            # the scripts of the vocabulary, which take time to find, matter only to text in other letters than Latin ones
            or (is_other_script(text, {LATIN}) and is_other_script(text, self.scripts))
            or is_other_language(text, self._unread_words)
        )

    @cached_property
    def scripts(self) -> frozenset[str]:
        """The scripts that the tokenizer has pieces for."""
        return scripts_read(self.tokenizer)

    @cached_property
    def _unread_words(self) -> frozenset[str]:
        return unread_words(self.tokenizer)

    @cached_property
    def _word_starts(self) -> re.Pattern[str] | None:
        return word_starts(self.tokenizer) if self._longest_word is None else WORD_STARTS

    def tokenize(self, texts: Iterable[str]) -> dict[str, list[int]]:
        """Tokenise each different text once.

        Args:
            texts: any number of texts, repeated or not.

        Returns:
            token ids of each different text, without special tokens; text that looks like one ("[SEP]") stays text. Of
            a very long text the tokens that an input has room for, and at least one more.
        """
        unique = list(dict.fromkeys(texts))
        if not unique:
            return {}
        size = CHARACTERS_PER_TOKEN * self.layout.max_length
        # The first pieces of all texts are tokenised together; further pieces of a long text until the input is full.
        texts_in_pieces = [self._pieces(text, size) if len(text) > size else iter([text]) for text in unique]
        tokens = self._ids([next(pieces) for pieces in texts_in_pieces])
        for ids, text, pieces in zip(tokens, unique, texts_in_pieces, strict=True):
            while len(text) > size and len(ids) <= self._room and (piece := next(pieces, None)) is not None:
                ids += self._ids([piece])[0]
        return dict(zip(unique, tokens, strict=True))

    def _pieces(self, text: str, size: int) -> Iterator[str]:
        """Divide a text where words begin: the tokens of the pieces, one after the other, are those of the text.

        Args:
            text: text of any length; a tokenizer takes over 100 bytes per character for it.
            size: characters of a piece, more only where no word begins.
        """
        start = 0
        while self._word_starts is not None and len(text) - start > size:
            # The last start of a word within the size, which is the first one of the reversed characters.
            last = self._word_starts.search(text[start + 1 : start + size][::-1])
            if last is not None:
                end = start + size - last.end()
                yield text[start:end]
            else:
                following = self._word_starts.search(text, start + size)
                end = following.start() if following else len(text)
                yield self._shortened(text[start:end])
            start = end
        yield text[start:]

    def _shortened(self, text: str) -> str:
        if self._longest_word is None:
            return text[:LONGEST_WORD]
        return shortened_words(text, self._longest_word)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        with one_line_errors(f"{self._subject} cannot read a text"):
            return self.tokenizer(
                [without_lone_surrogates(text) for text in texts],
                add_special_tokens=False,
                return_attention_mask=False,
                return_token_type_ids=False,
                split_special_tokens=True,
                verbose=False,
            )["input_ids"]

    def encode(self, texts: Sequence[Sequence[int]]) -> Encoded:
        """Join the tokens of one pair (or triple).

        Args:
            texts: token ids of each segment, in the layout's order.

        Returns:
            the model's input, at most `layout.max_length` tokens long.
        """
        truncated = sum(map(len, texts)) > self._room
        if truncated:
            in_tie_order = truncated_lengths([len(texts[i]) for i in self._tie_order], self._room)
            lengths = dict(zip(self._tie_order, in_tie_order, strict=True))
            texts = [tokens[: lengths[i]] for i, tokens in enumerate(texts)]
        # The first text is segment 0, the others are segment 1; `between` stands before each of these.
        between = (self._separator,) * (self.layout.separators - 1)
        ids: tuple[Any, ...] = (self._first, *texts[0], self._separator)
        first = len(ids)
        for tokens in texts[1:]:
            ids = (*ids, *between, *tokens, self._separator)
        return Encoded(ids, (0,) * first + (1,) * (len(ids) - first), truncated, self._unknown in ids)


def longest_word(tokenizer: PreTrainedTokenizerBase | WordPieceTokenizer) -> int | None:
    """Return the characters above which a WordPiece tokenizer takes a word for an unknown one.

    Returns:
        None for another tokenizer, and for one with added tokens, in which words need not be separate.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or type(backend.model).__name__ != "WordPiece":
        return None
    if backend.normalizer is None or backend.pre_tokenizer is None:
        return None
    # Whether it divides a text as BERT's tokenizer does is seen on a sample.
    sample = "a".join(" !,-~\u4e00\u9fff ")
    spans = backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(sample))
    if [word for word, _ in spans] != list(sample.replace(" ", "")):
        return None
    if any(not token.special for token in backend.get_added_tokens_decoder().values()):
        return None
    return backend.model.max_input_chars_per_word


def word_starts(tokenizer: PreTrainedTokenizerBase) -> re.Pattern[str] | None:
    """Return where a SentencePiece or byte-level tokenizer always begins a new token: at a space within text.

    Returns:
        None for one that does not, or whose tokens of pieces are not those of the whole, or with added tokens.
    """
    if any(not token.special for token in tokenizer.added_tokens_decoder.values()):
        return None
    # Tokens of the pieces of a sample must be those of the whole.
    sample = ("ab 12", " cd", " ef")
    whole, *pieces = tokenizer(["".join(sample), *sample], add_special_tokens=False)["input_ids"]
    if whole != [token for piece in pieces for token in piece]:
        return None
    # Find what the tokenizer writes for a space.
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        space: str | None = "\u2581" if hasattr(tokenizer, "sp_model") else None
    else:
        text = backend.normalizer.normalize_str("ab cd") if backend.normalizer else "ab cd"
        spans = [span for span, _ in backend.pre_tokenizer.pre_tokenize_str(text)] if backend.pre_tokenizer else [text]
        if spans == ["ab", "cd"]:
            return SPACE_IN_TEXT
        match = re.search("ab(.+)cd", "".join(spans))
        space = match[1] if match else None
    if space is None:
        return None
    is_within = re.compile(f"[^{re.escape(space)}]{re.escape(space)}")  # a piece that may go on after a space
    return None if any(map(is_within.search, tokenizer.get_vocab())) else SPACE_IN_TEXT


def shortened_words(text: str, longest: int) -> str:
    """Return a text with long words cut to one letter more than a tokenizer reads: they are unknown before and after.

    Text with a capital sigma, whose form depends on the letters around it, is left as it is.
    """
    return text if "\u03a3" in text else re.sub(f"({IN_A_WORD}{{{longest + 1}}}){IN_A_WORD}+", r"\1", text)


def without_lone_surrogates(text: str) -> str:
    """Return a text with U+FFFD for halves of surrogate pairs, which are no characters and which tokenizers refuse."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
