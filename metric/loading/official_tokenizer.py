"""Tokenizers with the ids of the official implementation, which plain `transformers` opens.

English checkpoints: BERT's WordPiece as the official code has it. `transformers`' own BertTokenizer differs from it:
words of 101-200 characters, private-use characters, capital sigma at the end of a word, rarer punctuation and marks.
BLEURT-20: the SentencePiece library itself, since the faster version of it in `tokenizers` finds control symbols such
as "[SEP]" in the text and normalises some sequences differently.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.loading.architecture import PADDING_ID
from bleurt_repro.metric.loading.quiet import first_line

if TYPE_CHECKING:
    from tokenizers.normalizers import Sequence as Normalizers
    from tokenizers.pre_tokenizers import Sequence as PreTokenizers
    from transformers import PreTrainedTokenizerBase

LONGEST_WORD = 200  # characters; a longer word is unknown
CLS, SEP, UNK, MASK = "[CLS]", "[SEP]", "[UNK]", "[MASK]"
# Ideographs stand alone: the blocks of CJK ideographs that BERT lists.
IDEOGRAPHS = (
    r"\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}\x{20000}-\x{2A6DF}"
    r"\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{2F800}-\x{2FA1F}"
)
# All ASCII that is not a letter, digit or space counts as punctuation, such as $ and ^, which Unicode calls symbols.
PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
# Python lower-cases a capital sigma that ends a word to the final form; \K: only the sigma is replaced.
FINAL_SIGMA = r"\p{Cased}\p{Case_Ignorable}*\KΣ(?!\p{Case_Ignorable}*\p{Cased})"


def read_vocabulary(file: Path) -> dict[str, int]:
    """Read a WordPiece vocabulary as the official code does: one token per line, ids in order of first appearance.

    Raises:
        ValueError: if the file is missing or is not UTF-8, or has no [CLS], [SEP] and [UNK].
    """
    if not file.is_file():
        raise ValueError(f"no vocabulary {file}")
    try:
        lines = file.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"vocabulary {file} is no UTF-8 ({error.reason} at byte {error.start})") from error
    if lines[-1] == "":
        lines.pop()
    vocabulary: dict[str, int] = {}
    for line in lines:
        vocabulary.setdefault(line.strip(), len(vocabulary))
    if missing := [token for token in (CLS, SEP, UNK) if token not in vocabulary]:
        raise ValueError(f"vocabulary {file} has no {', '.join(missing)}")
    return vocabulary


def wordpiece_tokenizer(vocabulary: dict[str, int], lower_case: bool, max_length: int) -> PreTrainedTokenizerBase:
    """Build BERT's tokenizer by the official rules.

    Args:
        vocabulary: ids by token.
        lower_case: whether to lower-case and to strip accents.
        max_length: most tokens of a pair, recorded for users who let `transformers` truncate.

    Returns:
        a fast tokenizer.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    # The steps of the official code: clean and fold the text, split it at spaces and punctuation, look up the pieces.
    backend = Tokenizer(WordPiece(vocabulary, unk_token=UNK, max_input_chars_per_word=LONGEST_WORD))
    backend.normalizer = _normalizers(lower_case)
    backend.pre_tokenizer = _pre_tokenizers()
    backend.post_processor = TemplateProcessing(
        single=f"{CLS}:0 $A:0 {SEP}:0",
        pair=f"{CLS}:0 $A:0 {SEP}:0 $B:1 {SEP}:1",
        special_tokens=[(CLS, vocabulary[CLS]), (SEP, vocabulary[SEP])],
    )
    padding = next(token for token, index in vocabulary.items() if index == PADDING_ID)
    specials = {"unk_token": UNK, "pad_token": padding, **({"mask_token": MASK} if MASK in vocabulary else {})}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **specials, **_common(max_length))


def _normalizers(lower_case: bool) -> Normalizers:
    from tokenizers import Regex
    from tokenizers.normalizers import NFD, Lowercase, Replace, Sequence

    clean = [Replace(Regex(r"[\t\n\r\p{Zs}]"), " "), Replace(Regex(r"[\p{Cc}\p{Cf}\x{FFFD}]"), "")]
    fold = [Replace(Regex(FINAL_SIGMA), "ς"), Lowercase(), NFD(), Replace(Regex(r"\p{Mn}"), "")]
    return Sequence(clean + (fold if lower_case else []))


def _pre_tokenizers() -> PreTokenizers:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Sequence, Split, WhitespaceSplit

    return Sequence([WhitespaceSplit(), Split(Regex(f"[{IDEOGRAPHS}{PUNCTUATION}]"), "isolated")])


def sentencepiece_tokenizer(file: Path, max_length: int) -> PreTrainedTokenizerBase:
    """Build the tokenizer of the BLEURT-20 family around its SentencePiece model.

    Args:
        file: model file of SentencePiece (.model).
        max_length: most tokens of a pair, recorded for users who let `transformers` truncate.

    Returns:
        a tokenizer whose ids are those of `SentencePieceProcessor`.

    Raises:
        ValueError: if SentencePiece is not installed, or the file is missing or damaged, or has no [CLS] and [SEP].
    """
    from transformers import SentencePieceBackend

    pieces = _sentencepiece_model(file)
    for token in (CLS, SEP):
        if pieces.PieceToId(token) == pieces.unk_id():
            raise ValueError(f"SentencePiece model {file} has no {token}")
    specials = {"unk_token": pieces.IdToPiece(pieces.unk_id()), "pad_token": pieces.IdToPiece(PADDING_ID)}
    # The class keeps no record of these, so they are recorded for it.
    layout = {"special_tokens_pattern": "cls_sep", "token_type_ids_pattern": "bert_style"}
    tokenizer = SentencePieceBackend(vocab_file=str(file), **specials, **_common(max_length), **layout)
    tokenizer.init_kwargs.update(layout)
    return tokenizer


def _sentencepiece_model(file: Path) -> Any:
    if not file.is_file():
        raise ValueError(f"no SentencePiece model {file}")
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise ValueError("the BLEURT-20 family takes SentencePiece: pip install sentencepiece") from error
    try:
        return SentencePieceProcessor(model_file=str(file))
    except Exception as error:
        raise ValueError(f"SentencePiece model {file} cannot be read ({first_line(error)})") from error


def _common(max_length: int) -> dict[str, Any]:
    return {
        "cls_token": CLS,
        "sep_token": SEP,
        "model_max_length": max_length,
        "split_special_tokens": True,  # what looks like a special token in text is text
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
    }
