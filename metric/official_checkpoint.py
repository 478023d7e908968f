"""Read an official BLEURT checkpoint: what its settings name, put together as a scorer.

Format: https://github.com/google-research/bleurt/blob/master/bleurt/checkpoint.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.architecture import (
    GELUS,
    is_rembert,
    read_settings,
    scorer_config,
    scorer_model,
    weight_shapes,
)
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.official_tokenizer import read_vocabulary, sentencepiece_tokenizer, wordpiece_tokenizer
from bleurt_repro.metric.official_variables import graph_gelu, read_variables

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SETTINGS = "bleurt_config.json"
# A SentencePiece model may have a few pieces fewer than the embeddings have rows, as where rows are set aside.
SPARE_ROWS = 0.01


def load_official(folder: Path, gelu: str = "auto") -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load an official checkpoint as a scorer with the official tokenizer.

    Args:
        folder: bleurt_config.json and what it names, and variables/.
        gelu: as for `convert`.

    Returns:
        the model, a `BertForSequenceClassification` or `RemBertForSequenceClassification` in evaluation mode whose
        config records the layout, and its tokenizer.

    Raises:
        ValueError: if TensorFlow is not installed or the checkpoint is damaged or of another kind.
    """
    settings = read_settings(folder / SETTINGS)
    bert = read_settings(_named(folder, settings.get("bert_config_file", "bert_config.json")))
    layout = Layout(max_length=_max_length(settings))
    config = scorer_config(bert, layout, _activation(bert, folder, gelu))
    tokenizer = _tokenizer(folder, settings, layout.max_length)
    _check_vocabulary(len(tokenizer), config.vocab_size, SPARE_ROWS if is_rembert(bert) else 0)
    weights = read_variables(folder, weight_shapes(config))
    return scorer_model(config, weights), tokenizer


def _max_length(settings: dict[str, Any]) -> int:
    length = settings.get("max_seq_length")
    if isinstance(length, bool) or not isinstance(length, int):
        raise ValueError(f"{SETTINGS} needs max_seq_length, a whole number; found {length!r}")
    return length


def _activation(bert: dict[str, Any], folder: Path, gelu: str) -> str:
    named = bert.get("hidden_act", "gelu")
    if named != "gelu":
        raise ValueError(f"its layers compute {named!r}; official checkpoints compute 'gelu'")
    if gelu == "auto":
        gelu = graph_gelu(folder) or "tanh"
    return GELUS[gelu]


def _tokenizer(folder: Path, settings: dict[str, Any], max_length: int) -> PreTrainedTokenizerBase:
    if settings.get("vocab_file") and settings.get("do_lower_case") is not None:
        vocabulary = read_vocabulary(_named(folder, settings["vocab_file"]))
        return wordpiece_tokenizer(vocabulary, bool(settings["do_lower_case"]), max_length)
    if settings.get("sp_model"):
        file = _named(folder, f"{settings['sp_model']}.model")
        tokenizer = sentencepiece_tokenizer(file, max_length)
        _check_pieces(file.with_suffix(".vocab"), len(tokenizer))
        return tokenizer
    raise ValueError(f"{SETTINGS} names neither vocab_file with do_lower_case nor sp_model")


def _check_pieces(listing: Path, pieces: int) -> None:
    """Compare the model with the list of its pieces that lies beside it."""
    listed = listing.read_bytes().count(b"\n") if listing.is_file() else pieces
    if listed != pieces:
        raise ValueError(f"{listing.name} has {listed} pieces but {listing.stem}.model has {pieces}")


def _check_vocabulary(tokens: int, rows: int, spare: float) -> None:
    if not rows * (1 - spare) <= tokens <= rows:
        raise ValueError(f"its vocabulary has {tokens} tokens but its model has {rows}")


def _named(folder: Path, name: Any) -> Path:
    """Give a file that the settings name; they come from elsewhere and must not lead elsewhere."""
    if not isinstance(name, str) or Path(name).name != name or "\\" in name:
        raise ValueError(f"{SETTINGS} names {name!r}, which is no plain file name")
    return folder / name
