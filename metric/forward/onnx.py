"""Score on a CPU with ONNX Runtime: the checkpoint is written as a graph once, exact in float32 or mostly in int8.

A batch of the graph holds pairs of one length, so it has neither padding nor mask; of models shaped as BERT, RemBERT
or MPNet the last layer is computed for [CLS] only. int8 means weights of one scale per output channel and activations
scaled batch by batch (https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html).
"""

from __future__ import annotations

import importlib.util
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bleurt_repro.metric.files.writing import durable_replace, error_context, temporary_folder
from bleurt_repro.metric.forward.encoding import Encoded
from bleurt_repro.metric.install import install_hint
from bleurt_repro.metric.loading.checksums import check_sums, write_checksums
from bleurt_repro.metric.options import cache_folder, make_cache

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LIBRARIES = ("onnx", "onnxscript", "onnxruntime")
FILES = {"onnx": "float32.onnx", "onnx-int8": "int8.onnx"}
# Part of the folder's name: raise it when graphs are written differently.
GRAPH_VERSION = 5
OPSET = 18
# A protocol buffer holds less than 2 GiB: larger weights are in a file beside the graph.
LARGEST_FILE = 1_900_000_000


class OnnxForward:
    """Score pairs by a graph that `export_graph` wrote.

    Args:
        graph: file of the graph.
    """

    def __init__(self, graph: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._names = [graph_input.name for graph_input in self._session.get_inputs()]

    def __call__(self, pairs: Sequence[Encoded]) -> Tensor:
        """Score pairs; each run of equal lengths is one call of the graph.

        Args:
            pairs: inputs of the model.

        Returns:
            (pairs,) float32.
        """
        groups = (list(group) for _, group in groupby(pairs, key=lambda pair: len(pair.ids)))
        return torch.from_numpy(np.concatenate([self._run(group) for group in groups]))

    def _run(self, pairs: list[Encoded]) -> np.ndarray:
        inputs = {
            "input_ids": np.array([pair.ids for pair in pairs]),
            "token_type_ids": np.array([pair.segments for pair in pairs]),
        }
        return self._session.run(None, {name: inputs[name] for name in self._names})[0]


def export_graph(model: PreTrainedModel, content: str, backend: str) -> Path:
    """Return the file of a checkpoint's graph, which is made if the cache has none.

    Args:
        model: model of the checkpoint, in float32 and on the CPU.
        content: content hash, which names the checkpoint in the cache.
        backend: key of `FILES`.

    Raises:
        ValueError: if a library is missing.
        OSError: if the cache cannot be written.
    """
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"backend {backend} needs {', '.join(missing)}: install them with {install_hint('onnx')}")
    folder = cache_folder() / "onnx" / f"{content}-{GRAPH_VERSION}"
    for name in ("onnx", "onnx-int8") if backend == "onnx-int8" else ("onnx",):
        if not _is_whole(folder / name, FILES[name]):
            _make(model, folder, name)
    return folder / backend / FILES[backend]


def _make(model: PreTrainedModel, folder: Path, backend: str) -> None:
    """Write a graph and its weights to the cache in one step."""
    make_cache(folder)
    with temporary_folder(folder / backend) as workspace:
        unfinished = workspace / backend
        unfinished.mkdir()
        with _quiet(), error_context(folder):
            if backend == "onnx":
                _write_graph(model, unfinished / FILES[backend])
            else:
                _quantise(folder / "onnx" / FILES["onnx"], unfinished / FILES[backend])
        write_checksums(unfinished, sorted(unfinished.iterdir()))
        try:
            durable_replace(unfinished, folder / backend)
        except OSError:  # another process was faster
            if not (folder / backend / FILES[backend]).is_file():
                raise


def _is_whole(folder: Path, file: str) -> bool:
    """Return whether the cache has a graph as it was written; a damaged one is removed, with a warning."""
    if not (folder / file).is_file():
        return False
    try:
        check_sums(folder)
    except ValueError as error:
        warnings.warn(f"a graph in the cache is made anew: {error}", stacklevel=2)
        shutil.rmtree(folder, ignore_errors=True)
        return False
    return True


def _write_graph(model: PreTrainedModel, file: Path) -> None:
    import torch

    ids = torch.ones((2, 7), dtype=torch.long)
    names = ["input_ids", "token_type_ids"]
    axes = {0: torch.export.Dim("pairs"), 1: torch.export.Dim("length")}
    with torch.no_grad():
        torch.onnx.export(
            _equal_lengths(model).eval(),
            (ids, torch.zeros_like(ids)),
            str(file),
            input_names=names,
            output_names=["scores"],
            dynamic_shapes=dict.fromkeys(names, axes),
            opset_version=OPSET,
            external_data=_large(model),
            dynamo=True,
            verbose=False,
        )


def _equal_lengths(model: PreTrainedModel) -> torch.nn.Module:
    """Wrap the model as a map from (pairs, length) token and segment ids to (pairs,) scores."""
    import torch

    from bleurt_repro.metric.forward.packed import Group, PackedForward, can_pack

    packed = PackedForward(model, laid_out=False) if can_pack(model) else None
    reads_segments = getattr(model.config, "type_vocab_size", 0) > 1

    class EqualLengths(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor) -> torch.Tensor:
            pairs, length = input_ids.shape
            if packed is not None:
                ids, segments = input_ids.reshape(-1), token_type_ids.reshape(-1)
                return packed.score(ids, segments, [Group(0, pairs, length)], any_size=True)
            inputs: dict[str, Any] = {"token_type_ids": token_type_ids} if reads_segments else {}
            return self.model(input_ids=input_ids, **inputs).logits[:, 0]

    return EqualLengths()


def _quantise(exact: Path, file: Path) -> None:
    """Write a graph with the matrix products with weights in int8; attention between tokens stays in float32."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(str(exact))
    large = sum(len(tensor.raw_data) for tensor in graph.graph.initializer) > LARGEST_FILE
    del graph.graph.value_info[:]  # the exporter's shapes, which the quantiser's own inference takes for faults
    with tempfile.TemporaryDirectory(dir=file.parent) as bare:
        onnx.save(graph, f"{bare}/bare.onnx", save_as_external_data=large)
        quantize_dynamic(
            f"{bare}/bare.onnx",
            str(file),
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Gemm"],
            nodes_to_exclude=_narrowing(graph.graph),
            use_external_data_format=large,
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
        )


def _narrowing(graph: Any) -> list[str]:
    """List the products that read more numbers than they return, such as the one after each GELU, by name.

    They stay in float32: a few of their inputs are so large that one scale for all leaves the others little.
    """
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    names = []
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm") and len(shape := shapes.get(node.input[1], ())) == 2:
            transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            inputs, outputs = shape[::-1] if transposed else shape
            if inputs > outputs:
                names += [node.name, f"{node.name}_MatMul"]  # the quantiser renames a Gemm before it looks
    return names


def _large(model: PreTrainedModel) -> bool:
    return sum(weight.nbytes for weight in model.parameters()) > LARGEST_FILE


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the libraries' advice to their own developers."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
