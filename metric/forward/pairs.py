"""From texts to scores in bulk: each different pair once, in windows, tokenised beside the computation.

Batches hold pairs of about equal length within a budget of tokens, so that little is computed on padding; where memory
runs short, they are halved until they fit.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from bleurt_repro.metric.forward.encoding import Encoded, PairEncoder
from bleurt_repro.metric.forward.score_cache import ScoreCache, Scored
from bleurt_repro.metric.inputs import Item
from bleurt_repro.metric.loading.quiet import one_line_errors
from bleurt_repro.metric.loading.torch_defaults import torch_defaults

if TYPE_CHECKING:
    from torch import Tensor

    from bleurt_repro.metric.forward.packed import PackedForward
    from bleurt_repro.metric.loading.open import Checkpoint
    from bleurt_repro.metric.options import Computing

Forward = Callable[[Sequence[Encoded]], "Tensor"]
# Pairs that are tokenised and sorted by length together: enough that neighbours are of one length, few enough that
# their tokens take some tens of megabytes. A GPU takes larger batches, and computes each length of a batch separately.
WINDOW, GPU_WINDOW = 8192, 32768
EXCERPT = 60  # characters of a text in a message
# Of torch's CPU allocator, of CUDA where it is no OutOfMemoryError (pinned memory), of oneDNN and of ONNX Runtime.
MEMORY_MESSAGES = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "failed to allocate memory",
    "bad_alloc",
    "bad allocation",
)


class ModelForward:
    """Choose the forward pass of a model: the fast one if it computes what the model's own does, else the model's own.

    Args:
        checkpoint: opened checkpoint; graphs are cached by its content hash.
        backend: one of `options.BACKENDS`.
    """

    def __init__(self, checkpoint: Checkpoint, backend: str) -> None:
        self._checkpoint, self._backend = checkpoint, backend
        self._packed: PackedForward | None = None
        self._graph: Forward | None = None
        self._process = os.getpid()

    def __call__(self) -> Forward:
        """Return the function that scores a batch of inputs; (pairs,) float32."""
        from bleurt_repro.metric.forward.packed import PackedForward, packed_forward
        from bleurt_repro.metric.forward.plain import PlainForward

        checkpoint = self._checkpoint
        if self._backend == "compile":
            return self._compiled()
        if self._backend != "torch":
            return self._onnx()
        if checkpoint.is_light and checkpoint.light is not None:
            self._packed = self._packed or PackedForward(checkpoint.light.model)
            return self._packed
        self._packed = packed_forward(checkpoint.model, self._packed)
        return self._packed or PlainForward(checkpoint.model, checkpoint.tokenizer.pad_token_id)

    def _compiled(self) -> Forward:
        from bleurt_repro.metric.forward.packed import PACKED, packed_forward

        packed = packed_forward(self._checkpoint.model, self._packed, compiled=True)
        if packed is None:
            names = ", ".join(name.removesuffix("ForSequenceClassification") for name in PACKED)
            raise ValueError(f"backend compile is for checkpoints of {names}: leave backend out")
        if packed is not self._packed:
            # it is compiled at the first call
            with one_line_errors("backend compile does not work on this machine", "leave backend out"):
                packed([Encoded((0, 0), (0, 0), False)])
            self._packed = packed
        return packed

    def _onnx(self) -> Forward:
        from bleurt_repro.metric.forward.onnx import OnnxForward, export_graph

        if self._graph is None or self._process != os.getpid():  # a graph's threads do not survive a fork
            self._process = os.getpid()
            self._graph = OnnxForward(export_graph(self._checkpoint.model, self._checkpoint.content, self._backend))
        return self._graph


class PairScorer:
    """Score the texts of pairs with one model, by PyTorch's own defaults whatever the caller has set.

    Args:
        name: name of the checkpoint, for messages.
        encoder: makes the model's inputs.
        forward: returns, at each call to `score`, the function that scores a batch of inputs; (pairs,) float32.
        batch_tokens: most tokens of a batch, padding included.
        cache: scores of earlier runs.
        window: number of pairs that are tokenised and sorted together.
    """

    def __init__(
        self,
        name: str,
        encoder: PairEncoder,
        forward: Callable[[], Forward],
        batch_tokens: int,
        cache: ScoreCache | None = None,
        window: int = WINDOW,
    ) -> None:
        self.name, self.encoder, self.forward = name, encoder, forward
        self.batch_tokens, self.cache, self.window = batch_tokens, cache, window
        self._ran_short = False

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, computing: Computing, cache: ScoreCache | None = None
    ) -> PairScorer:
        """Make the scorer of an opened checkpoint, and move its model to the device of the options."""
        _survive_forks()
        if checkpoint.light is None:
            with torch_defaults():
                checkpoint.model.to(computing.device)  # type: ignore[arg-type]  # its decorator hides the signature
        tokenizer = checkpoint.tokenizer if checkpoint.light is None else checkpoint.light.tokenizer
        forward = ModelForward(checkpoint, computing.backend)
        encoder = PairEncoder(tokenizer, checkpoint.layout, checkpoint.name)
        window = GPU_WINDOW if computing.device.type == "cuda" else WINDOW
        return cls(checkpoint.name, encoder, forward, computing.batch_tokens, cache, window)

    def score(
        self,
        items: Sequence[Item],
        report: Callable[[int], object] = lambda count: None,
        batch_size: int | None = None,
    ) -> list[Scored]:
        """Score each different item once.

        Args:
            items: texts of each pair in the layout's order.
            report: called with the number of items that have been scored since the last call.
            batch_size: most items of a batch; by default as many as fit.

        Returns:
            one result per item, in order.

        Raises:
            MemoryError: if one item alone does not fit into memory.
            ValueError: naming the item whose score is no finite number, or the checkpoint if its tokenizer or model
                fails.
        """
        repeats = dict.fromkeys(items, 0)
        for item in items:
            repeats[item] += 1
        results = self.cache.find(list(repeats)) if self.cache else {}
        report(sum(repeats[item] for item in results))
        unscored = [item for item in repeats if item not in results]
        report_batch = lambda batch: report(sum(repeats[item] for item in batch))  # noqa: E731
        with torch_defaults():
            for window, scored in self._windows(unscored, report_batch, batch_size):
                fresh = dict(zip(window, scored, strict=True))
                if self.cache:
                    self.cache.add(fresh)
                results.update(fresh)
        return [results[item] for item in items]

    def _windows(
        self, items: list[Item], report: Callable[[list[Item]], object], batch_size: int | None
    ) -> Iterator[tuple[list[Item], list[Scored]]]:
        """Score window after window, while a thread tokenises the next one (tokenizers leave the interpreter free)."""
        windows = [items[start : start + self.window] for start in range(0, len(items), self.window)]
        if not windows:
            return
        forward = self.forward()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenize") as thread:
            upcoming = thread.submit(self.encoder.encode_all, windows[0])
            for number, window in enumerate(windows, start=1):
                encoded = upcoming.result()
                if number < len(windows):
                    upcoming = thread.submit(self.encoder.encode_all, windows[number])
                yield window, self._score_encoded(forward, window, encoded, report, batch_size)

    def _score_encoded(
        self,
        forward: Forward,
        items: list[Item],
        encoded: list[Encoded],
        report: Callable[[list[Item]], object],
        batch_size: int | None,
    ) -> list[Scored]:
        """Score a window in batches of about equal length.

        Args:
            forward: scores a batch of inputs; (pairs,) float32.
            items: texts of the pairs.
            encoded: inputs of the same pairs.
            report: called with the items of each batch.
            batch_size: most items of a batch.
        """
        import torch

        # The longest pairs are last in the list, from whose end batches are taken: memory runs short at once or not at
        # all.
        waiting = batches_by_tokens([len(pair.ids) for pair in encoded], self.batch_tokens, batch_size)[::-1]
        order: list[int] = []
        computed = []  # kept on the device until the end, so that a GPU is never waited for in between
        with torch.inference_mode():
            while waiting:
                batch = waiting.pop()
                with one_line_errors(f"checkpoint {self.name}: its model cannot score"):
                    scored = score_if_it_fits(forward, [encoded[i] for i in batch])
                if scored is None:
                    waiting = self._halved([*waiting, batch], encoded, batch_size)
                    continue
                computed.append(scored)
                order += batch
                report([items[i] for i in batch])
            gathered = torch.cat(computed).tolist()
        scores = dict(zip(order, gathered, strict=True))
        if damaged := [i for i in order if not math.isfinite(scores[i])]:
            raise ValueError(_no_number(items[damaged[0]], scores[damaged[0]]))
        return [Scored(scores[i], pair.truncated, pair.unknown, pair.unread) for i, pair in enumerate(encoded)]

    def _halved(self, waiting: list[list[int]], encoded: list[Encoded], batch_size: int | None) -> list[list[int]]:
        """Halve the budget, from now on, and divide what waits into batches of it; the longest pairs stay at the end.

        Raises:
            MemoryError: if the batch that did not fit, the last, is a single pair.
        """
        failed = waiting[-1]
        longest = len(encoded[failed[0]].ids)
        if len(failed) == 1:
            raise MemoryError(
                f"one pair of {longest} tokens does not fit into memory: free some, or take another device"
            )
        # Never above half of what failed, or a budget far beyond it would be halved for long.
        self.batch_tokens = max(1, min(self.batch_tokens, len(failed) * longest) // 2)
        if not self._ran_short:
            self._ran_short = True
            warnings.warn(
                "memory ran short: batches are halved until they fit, and scores stay the same; give fewer "
                f"batch_tokens than {len(failed) * longest} to begin with what fits",
                stacklevel=2,
            )
        unscored = [i for batch in reversed(waiting) for i in batch]  # the longest first
        batches = batches_by_tokens([len(encoded[i].ids) for i in unscored], self.batch_tokens, batch_size)
        return [[unscored[j] for j in batch] for batch in batches][::-1]


@cache
def _survive_forks() -> None:
    """Let forked processes, such as those of `datasets.map(num_proc=2)`, compute in one thread.

    OpenMP's threads do not survive a fork: a process that asked for several would wait for them forever.
    """
    import torch

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def _no_number(item: Item, score: float) -> str:
    texts = ", ".join(repr(text if len(text) <= EXCERPT else f"{text[:EXCERPT]}...") for text in item)
    return (
        f"the score of the pair {texts} is {score}, which is no number: compute in float32, or check the checkpoint's "
        "config.json and weights"
    )


def batches_by_tokens(lengths: Sequence[int], batch_tokens: int, batch_size: int | None = None) -> list[list[int]]:
    """Group items of similar length so that each padded batch stays within a budget.

    Args:
        lengths: number of tokens of each item.
        batch_tokens: most tokens of a batch, padding included; a longer item is a batch alone.
        batch_size: most items of a batch.

    Returns:
        indices of the items of each batch, the longest items first (memory runs short at once or not at all).
    """
    batches: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        size = len(batches[-1]) + 1 if batches else 0
        if batches and size * lengths[batches[-1][0]] <= batch_tokens and (batch_size is None or size <= batch_size):
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran short, by whichever name a library gives it."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, Exception) and any(message in str(error).lower() for message in MEMORY_MESSAGES)


def score_if_it_fits(forward: Callable[[Sequence[Encoded]], Tensor], batch: Sequence[Encoded]) -> Tensor | None:
    """Score a batch, or return None if memory does not suffice for it; what was taken for it is then free again.

    Args:
        forward: returns (pairs,) scores.
        batch: inputs of the model.
    """
    import torch

    try:
        return forward(batch)
    except Exception as error:
        if not is_lack_of_memory(error):
            raise
    # Only here, for within the handler the error holds on to the tensors of what failed.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None
