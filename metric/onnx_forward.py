"""The forward pass by ONNX Runtime on a CPU, in float32 or int8."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bleurt_repro.metric.encoding import Encoded


class OnnxForward:
    """Scores pairs by a graph that `onnx_export` wrote.

    Args:
        graph: the file.
    """

    def __init__(self, graph: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._names = [given.name for given in self._session.get_inputs()]

    def __call__(self, pairs: Sequence[Encoded]) -> Tensor:
        """Score pairs; each run of equal lengths is one call of the graph.

        Args:
            pairs: the model's inputs.

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
