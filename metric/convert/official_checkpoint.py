"""Read an official BLEURT checkpoint as a scorer: its settings, its tokenizer, and its variables as torch tensors.

Format: https://github.com/google-research/bleurt/blob/master/bleurt/checkpoint.py. TensorFlow is used to read files
and nothing else: no graph is built, loaded or run. It is imported here only, and only when a checkpoint is converted.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.install import install_hint
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.architecture import (
    GELU_NAMES,
    check_weights,
    is_rembert,
    scorer_config,
    scorer_model,
    weight_shapes,
)
from bleurt_repro.metric.loading.limits import StoredSize, read_settings
from bleurt_repro.metric.loading.official_tokenizer import (
    read_vocabulary,
    sentencepiece_tokenizer,
    wordpiece_tokenizer,
)
from bleurt_repro.metric.loading.quiet import first_line

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SETTINGS = "bleurt_config.json"
# A SentencePiece model may have a few pieces fewer than the embeddings have rows, as where rows are set aside.
SPARE_ROWS = 0.01
VARIABLES = Path("variables") / "variables"
GRAPH = "saved_model.pb"
# What training leaves beside the weights: the step counter and the optimizer's averages.
NO_WEIGHTS = re.compile(r"global_step|.*/(adam|Adam)\w*|beta[12]_power")
EXTRA_LAYER = re.compile(r"dense_\d+/(kernel|bias)")
# Nothing is computed with TensorFlow here, so its remarks on processors and arithmetic are of no use.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
DAMAGED = "the checkpoint is damaged or incomplete: download it again"


def load_official(folder: Path, gelu: str = "auto") -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load an official checkpoint as a scorer with the official tokenizer.

    Args:
        folder: folder with bleurt_config.json, the files that it names, and variables/.
        gelu: "tanh", "erf", or "auto": what the graph says, else the official code's tanh.

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
    weights = read_variables(folder, weight_shapes(config, _stored_size(folder)))
    return scorer_model(config, weights), tokenizer


def _max_length(settings: dict[str, Any]) -> int:
    length = settings.get("max_seq_length")
    if isinstance(length, bool) or not isinstance(length, int):
        raise ValueError(f"{SETTINGS} needs max_seq_length, a whole number; found {length!r}")
    return length


def _activation(bert: dict[str, Any], folder: Path, gelu: str) -> str:
    activation = bert.get("hidden_act", "gelu")
    if activation != "gelu":
        raise ValueError(f"its layers compute {activation!r}; official checkpoints compute 'gelu'")
    if gelu == "auto":
        gelu = graph_gelu(folder) or "tanh"
    return GELU_NAMES[gelu]


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
    """Compare the model with the list of its pieces in the same folder."""
    listed = listing.read_bytes().count(b"\n") if listing.is_file() else pieces
    if listed != pieces:
        raise ValueError(f"{listing.name} has {listed} pieces but {listing.stem}.model has {pieces}")


def _check_vocabulary(tokens: int, rows: int, spare: float) -> None:
    if not rows * (1 - spare) <= tokens <= rows:
        raise ValueError(f"its vocabulary has {tokens} tokens but its model has {rows}")


def _named(folder: Path, name: Any) -> Path:
    """Return a file that the settings name; they come from elsewhere and must not lead to another folder."""
    if not isinstance(name, str) or Path(name).name != name or "\\" in name:
        raise ValueError(f"{SETTINGS} names {name!r}, which is no plain file name")
    return folder / name


# --- the variables -------------------------------------------------------------------------------------------------


def read_variables(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    """Read the weights of a scorer from a TensorFlow SavedModel's variables.

    Args:
        folder: official checkpoint.
        shapes: shapes in `transformers` of the weights to read, by their names there.

    Returns:
        the weights by those names, float32.

    Raises:
        ValueError: if TensorFlow is not installed, a file is missing or damaged, a variable is missing, unknown or of
            another shape, or the checkpoint has hidden layers between the pooler and the score.
    """
    import torch
    from tqdm.auto import tqdm

    names = {official_name(weight): weight for weight in shapes}
    reader = _reader(folder)
    expected = {name: _official_shape(name, shapes[weight]) for name, weight in names.items()}
    _check_variables(_variable_shapes(reader), expected)
    weights = {}
    for name in tqdm(sorted(names), desc="read", unit="variable", disable=None):
        weight = torch.from_numpy(_read(reader, folder, name)).to(torch.float32)
        weights[names[name]] = weight.T.contiguous() if name.endswith("/kernel") else weight
    return weights


def _variable_shapes(reader: Any) -> dict[str, tuple[int, ...]]:
    """List the variables that are weights, with their shapes."""
    shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    return {name: shape for name, shape in shapes.items() if not NO_WEIGHTS.fullmatch(name)}


def _stored_size(folder: Path) -> StoredSize:
    shapes = _variable_shapes(_reader(folder)).values()
    return StoredSize(len(shapes), sum(map(math.prod, shapes)))


def official_name(weight: str) -> str:
    """Return the TensorFlow name of a weight.

    Args:
        weight: name of the weight in `BertForSequenceClassification` or `RemBertForSequenceClassification`.
    """
    name = re.sub(r"^rembert\.", "bert.", weight)
    name = re.sub(r"^classifier\.", "dense.", name)
    name = re.sub(r"\.layer\.(\d+)\.", r".layer_\1.", name)
    name = re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", name)
    name = re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", name)
    name = re.sub(r"_embeddings\.weight$", "_embeddings", name)
    return re.sub(r"\.weight$", ".kernel", name).replace(".", "/")


def graph_gelu(folder: Path) -> str | None:
    """Return which GELU the checkpoint's own graph computes, by the operations that it lists.

    Args:
        folder: official checkpoint.

    Returns:
        "erf", "tanh", or None if the folder holds no saved_model.pb.

    Raises:
        ValueError: if the file is damaged.
    """
    file = folder / GRAPH
    if not file.is_file():
        return None
    _import_tensorflow()
    from tensorflow.core.protobuf import saved_model_pb2

    saved_model = saved_model_pb2.SavedModel()
    try:
        saved_model.ParseFromString(file.read_bytes())
    except Exception as error:
        raise ValueError(f"{file} cannot be read ({first_line(error)}): {DAMAGED}") from error
    operations: set[str] = set()
    for meta_graph in saved_model.meta_graphs:
        operations.update(node.op for node in meta_graph.graph_def.node)
        for function in meta_graph.graph_def.library.function:
            operations.update(node.op for node in function.node_def)
    if operations & {"Erf", "Erfc"}:
        return "erf"
    return "tanh" if "Tanh" in operations else None


def _official_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Transpose the shape of a dense layer's matrix, which TensorFlow stores as (inputs, outputs)."""
    return shape[::-1] if name.endswith("/kernel") else shape


def _check_variables(shapes: dict[str, tuple[int, ...]], expected: dict[str, tuple[int, ...]]) -> None:
    head = shapes.get("dense/kernel")
    if any(EXTRA_LAYER.fullmatch(name) for name in shapes) or (head and head[-1:] != (1,)):
        raise ValueError(
            "the checkpoint has hidden layers between the pooler and the score (n_hidden_layers > 0), "
            "which no class of transformers has: it cannot be converted"
        )
    try:
        check_weights(shapes, expected)
    except ValueError as error:
        raise ValueError(f"variable {error}: the checkpoint is damaged or of another kind") from error


def _reader(folder: Path) -> Any:
    if not (folder / f"{VARIABLES}.index").is_file():
        raise ValueError(f"no {VARIABLES}.index in {folder}: {DAMAGED}")
    tensorflow = _import_tensorflow()
    try:
        return tensorflow.train.load_checkpoint(str(folder / VARIABLES))
    except Exception as error:  # TensorFlow's own classes, which differ by fault and version
        raise ValueError(f"{folder / VARIABLES}.index cannot be read ({first_line(error)}): {DAMAGED}") from error


def _read(reader: Any, folder: Path, name: str) -> Any:
    try:
        return reader.get_tensor(name)
    except Exception as error:
        raise ValueError(
            f"variable {name} of {folder / VARIABLES} cannot be read ({first_line(error)}): {DAMAGED}"
        ) from error


def _import_tensorflow() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    with contextlib.suppress(ImportError):
        import triton  # noqa: F401 -- part of torch for CUDA; loaded after TensorFlow it ends in a segmentation fault
    try:
        import tensorflow
    except ImportError as error:
        raise ValueError(f"reading an official checkpoint takes TensorFlow: {install_hint('convert')}") from error
    return tensorflow
