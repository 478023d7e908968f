"""Text that a checkpoint does not read, and so scores without knowing: another script, unknown pieces, invisible characters.

The score of such a pair says little: two emoji that the tokenizer does not know are the same to it, and so are two
sentences in a script that it never saw. It is counted and reported; the text itself is left as it is, because the
official tokenizers drop invisible characters and scores must stay equal to theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Letters of the Latin script, in the blocks of Unicode that hold them, full-width ones included.
LATIN = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u0250-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a]")  # fmt: skip
# The replacement character of damaged text, soft hyphens, zero-width spaces and joiners: BERT's tokenizer drops them.
INVISIBLE = re.compile("[\ufffd\u00ad\u200b-\u200d\u2060\ufeff]")
# A tokenizer with fewer pieces of other scripts was made for languages in Latin letters (BERT's English one: 0.04).
SHARE_OF_OTHERS = 0.1


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


class Reader:
    """What a tokenizer reads.

    Args:
        tokenizer: of a checkpoint.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._latin_only: bool | None = None

    @property
    def latin_only(self) -> bool:
        """Whether it was made for languages in Latin letters; looked up when first asked."""
        if self._latin_only is None:
            self._latin_only = reads_latin_only(self._tokenizer)
        return self._latin_only

    def misses(self, texts: Iterable[str]) -> bool:
        """Return whether one of the texts of a pair is in a script that is not read, or holds invisible characters."""
        return any(has_invisible(text) or (is_other_script(text) and self.latin_only) for text in texts)

    def message(self, name: str, unread: int, pairs: int) -> str:
        """Return a sentence on how many pairs hold text that a checkpoint does not read.

        Args:
            name: of the checkpoint.
            unread: how many.
            pairs: of so many.
        """
        reads = "reads English (Latin letters)" if self.latin_only else "does not know all characters"
        return (
            f"{unread} of {pairs} pairs hold text that checkpoint {name} does not read (pieces unknown to its tokenizer, "
            f"another script, or invisible characters): this checkpoint {reads}, and their scores mean little"
        )
