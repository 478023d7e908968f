"""The `evaluate` module: a thin layer between `compute()` and `bleurt_repro.BleurtScorer`."""

from __future__ import annotations

import inspect
import re
from typing import Any

import datasets
import evaluate

import bleurt_repro
from bleurt_repro.metric.inputs import check_list, check_references, check_same_length, check_texts

_DESCRIPTION = """\
BLEURT is a learned metric of generated text: it reads a reference and a candidate and predicts the rating that a
person would give. This module scores with checkpoints of bleurt_repro, in PyTorch, offline once they are installed.
"""

_CITATION = """\
@inproceedings{sellam-etal-2020-bleurt,
    title = {{BLEURT}: Learning Robust Metrics for Text Generation},
    author = {Sellam, Thibault and Das, Dipanjan and Parikh, Ankur},
    booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
    year = {2020},
    pages = {7881--7892},
    url = {https://aclanthology.org/2020.acl-main.704},
}
"""

_INPUTS = """
Args:
    predictions (list of str): the candidates.
    references (list of str, or list of lists of str): one reference a candidate, or several; left out for checkpoints
        that read none.
    sources (list of str, optional): what the candidates were made from, for checkpoints that read it.
    checkpoint (str, optional): an embedded or official name, a folder, or a Hub id with an optional @revision. May
        also be given as the second argument of `evaluate.load`. Default: "bleurt-repro-mini".
    aggregate (str): with several references, "max" or "mean" of their scores. Default: "max".
    calibrated (bool): return percentiles of human ratings (0 to 100) instead of raw scores, if the checkpoint has a
        calibration. Default: False.
    batch_tokens (int, optional): padded tokens in a batch.
    device (str, optional): "cpu", "cuda", "mps". Default: the best there is.
    return_std (bool): with an ensemble, return "std", too: the standard deviation of its members' standardised
        scores. Default: False.

Returns:
    scores (list of float): one a candidate, on the scale of standardised human ratings (not bounded to 0..1).
    mean_score (float): their mean, the score of the system; None if there are no candidates.
    signature (str): what the scores depend on; put it beside any number you publish.
    truncated (int): how many pairs were longer than the checkpoint reads.
    unknown (int): how many pairs have pieces that the checkpoint does not know.
    warnings (list of str): what a reader of the scores must know, such as that they are of a language that the checkpoint
        does not read.

Examples:
    >>> import evaluate
    >>> bleurt = evaluate.load("bleurt_repro")
    >>> results = bleurt.compute(
    ...     predictions=["The cat sat on the mat.", "Stock prices fell sharply on Monday."],
    ...     references=["The cat sat on the mat.", "The cat sat on the mat."],
    ... )
    >>> results["scores"][0] > results["scores"][1]
    True
    >>> results["truncated"]
    0
    >>> several = bleurt.compute(predictions=["Hi there."], references=[["Good bye.", "Hi there."]])
    >>> alone = bleurt.compute(predictions=["Hi there."], references=["Hi there."])
    >>> abs(several["mean_score"] - alone["mean_score"]) < 1e-5
    True
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class BleurtRepro(evaluate.Metric):
    """BLEURT scores through `evaluate`; an argument it does not know is an error."""

    def __init__(
        self,
        config_name: str | None = None,
        checkpoint: str | None = None,
        keep_in_memory: bool = False,
        cache_dir: str | None = None,
        num_process: int = 1,
        process_id: int = 0,
        seed: int | None = None,
        experiment_id: str | None = None,
        hash: str | None = None,
        max_concurrent_cache_files: int = 10000,
        timeout: float = 100,
    ) -> None:
        chosen = None if config_name == "default" else config_name
        if chosen and checkpoint and chosen != checkpoint:
            raise ValueError(f"two checkpoints are named, {chosen!r} and {checkpoint!r}: give one")
        self.checkpoint = checkpoint or chosen
        self._scorer: bleurt_repro.BleurtScorer | None = None
        self._scorer_options: dict[str, Any] = {}
        super().__init__(
            # evaluate makes a folder of this name: a path or a Hub id must not lead it elsewhere
            config_name=re.sub(r"[^\w.-]+", "_", self.checkpoint).strip(".") if self.checkpoint else None,
            keep_in_memory=keep_in_memory,
            cache_dir=cache_dir,
            num_process=num_process,
            process_id=process_id,
            seed=seed,
            experiment_id=experiment_id,
            hash=hash,
            max_concurrent_cache_files=max_concurrent_cache_files,
            timeout=timeout,
        )

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=[
                datasets.Features({"predictions": text, "references": text}),
                datasets.Features({"predictions": text, "references": datasets.Sequence(text)}),
            ],
            license="Apache-2.0",
            reference_urls=["https://aclanthology.org/2020.acl-main.704", "https://aclanthology.org/2021.wmt-1.114"],
        )

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score what is passed, after what `add` and `add_batch` were passed."""
        known = list(inspect.signature(self._compute).parameters)
        unknown = sorted(set(kwargs) - set(known))
        if unknown:
            raise TypeError(f"compute() has no argument {', '.join(unknown)}; it takes {', '.join(known)}")
        if self.writer is None and self.num_process == 1 and predictions is not None:
            # Nothing was added and no other process adds: no need to write it to disk as evaluate does
            return self._compute(predictions, references, **kwargs)
        return evaluate.Metric.compute(self, predictions=predictions, references=references, **kwargs)

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add candidates and references to score later."""
        # Left alone, evaluate reads a bare string letter by letter and lets None through.
        predictions = check_texts("predictions", predictions)
        references = check_list("references", references)
        check_references(references)
        check_same_length({"predictions": len(predictions), "references": len(references)})
        if self.writer is not None:
            # before version 5, datasets writes a batch in front of the single pairs that it holds back
            self.writer.write_examples_on_file()
        evaluate.Metric.add_batch(self, predictions=predictions, references=references, **kwargs)

    def _compute(
        self,
        predictions: Any,
        references: Any,
        sources: list[str] | None = None,
        checkpoint: str | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        batch_tokens: int | None = None,
        device: str | None = None,
        return_std: bool = False,
    ) -> dict[str, Any]:
        predictions = check_texts("predictions", predictions)  # here, where they are called so; the scorer trusts it
        if references is not None:
            references = check_list("references", references)
            check_same_length({"predictions": len(predictions), "references": len(references)})
        scorer = self._scorer_for(checkpoint=checkpoint or self.checkpoint, batch_tokens=batch_tokens, device=device)
        result = scorer.compute(
            references=references,
            candidates=predictions,
            sources=sources,
            aggregate=aggregate,
            calibrated=calibrated,
            return_std=return_std,
        )
        return {
            **({"std": result.std} if return_std else {}),
            "scores": result.scores,
            "mean_score": result.mean_score,
            "signature": result.signature,
            "truncated": result.truncated,
            "unknown": result.unknown,
            "warnings": list(result.warnings),
        }

    def _scorer_for(self, **options: Any) -> bleurt_repro.BleurtScorer:
        """Load the scorer that is asked for, and keep it for the next call."""
        options = {name: value for name, value in options.items() if value is not None}
        if self._scorer is None or options != self._scorer_options:
            self._scorer = bleurt_repro.BleurtScorer(**options)
            self._scorer_options = options
        return self._scorer
