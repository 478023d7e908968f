"""The `evaluate` module: a thin layer over `bleurt_repro.BleurtScorer`."""

from __future__ import annotations

import inspect
import re
from typing import Any

import datasets
import evaluate

import bleurt_repro
from bleurt_repro.metric.inputs import check_list, check_references, check_same_length, check_texts
from bleurt_repro.metric.install import package_source

_DESCRIPTION = """\
BLEURT is a learned metric for generated text: it reads a reference and a candidate and predicts how a person would rate
the candidate. This module scores with checkpoints of bleurt_repro, in PyTorch, offline once they are installed.
"""

_PAPER = "https://aclanthology.org/2020.acl-main.704"

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
    references (list of str, or list of lists of str): one reference per candidate, or several; omitted for checkpoints
        that read no references.
    sources (list of str, optional): the texts that the candidates were made from, for checkpoints that read them.
    checkpoint (str, optional): name of an embedded or official checkpoint, a folder, or a Hub id with an optional
        @revision. It may also be the second argument of `evaluate.load`. Default: "bleurt-repro-mini".
    aggregate (str): how to combine the scores of several references, "max" or "mean". Default: "max".
    calibrated (bool): return percentiles of human ratings (0 to 100), if the checkpoint has a calibration.
        Default: False.
    batch_tokens (int, optional): number of padded tokens per batch.
    device (str, optional): "cpu", "cuda", "mps". Default: the best one available.
    return_std (bool): return "std" as well, for ensembles. Default: False.

Returns:
    scores (list of float): one score per candidate, on the scale of standardised human ratings (not limited to 0..1).
    mean_score (float): the mean of the scores, which is the score of the system; None without candidates.
    signature (str): everything the scores depend on. Report it with any number that you publish.
    truncated (int): number of pairs longer than the checkpoint reads.
    unknown (int): number of pairs with characters that the checkpoint does not know.
    warnings (list of str): warnings about the scores, such as texts in a language that the checkpoint does not read.
    std (list of float, with return_std): standard deviation of the standardised scores of an ensemble's members.

`evaluate.evaluator` and `evaluate.EvaluationSuite` fail with transformers 5, for any metric. Instead, generate the
candidates and pass them to `compute`:

    predictions = [output[0]["generated_text"] for output in pipe(texts, return_full_text=False)]
    results = evaluate.load("bleurt_repro").compute(predictions=predictions, references=references)

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
    >>> two_references = bleurt.compute(predictions=["Hi there."], references=[["Good bye.", "Hi there."]])
    >>> one_reference = bleurt.compute(predictions=["Hi there."], references=["Hi there."])
    >>> abs(two_references["mean_score"] - one_reference["mean_score"]) < 1e-5
    True
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class BleurtRepro(evaluate.Metric):
    """BLEURT scores through `evaluate`; an unknown argument is an error."""

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
        named_checkpoint = None if config_name == "default" else config_name
        if named_checkpoint and checkpoint and named_checkpoint != checkpoint:
            raise ValueError(f"two checkpoints are named, {named_checkpoint!r} and {checkpoint!r}: give one")
        self.checkpoint = checkpoint or named_checkpoint
        self._scorer: bleurt_repro.BleurtScorer | None = None
        self._scorer_options: dict[str, Any] = {}
        self._columns: list[str] = []  # of the texts that were added
        super().__init__(
            # evaluate makes a folder of this name, which must not be the path of a checkpoint
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
        references = ({"references": text}, {"references": datasets.Sequence(text)})
        repository = (package_source() or "").removeprefix("git+")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            # The first one that has the columns of a batch is taken.
            features=[
                *(datasets.Features({"predictions": text, **column}) for column in references),
                *(datasets.Features({"predictions": text, **column, "sources": text}) for column in references),
                datasets.Features({"predictions": text, "sources": text}),
            ],
            homepage=repository or _PAPER,
            license="Apache-2.0",
            codebase_urls=[*([repository] if repository else []), "https://github.com/google-research/bleurt"],
            reference_urls=[_PAPER, "https://aclanthology.org/2021.wmt-1.114"],
        )

    def compute(
        self, *, predictions: Any = None, references: Any = None, sources: Any = None, **kwargs: Any
    ) -> dict[str, Any] | None:
        """Score the texts that are passed, after those that `add` and `add_batch` were passed."""
        names = list(inspect.signature(self._compute).parameters)
        if unknown := sorted(set(kwargs) - set(names)):
            raise TypeError(f"compute() has no argument {', '.join(unknown)}; it takes {', '.join(names)}")
        if self.writer is None and self.num_process == 1 and predictions is not None:
            # No other texts and no other process: evaluate would write the texts to disk, and read them again
            return self._compute(predictions, references, sources, **kwargs)
        columns = {"predictions": predictions, "references": references, "sources": sources}
        if any(column is not None for column in columns.values()):
            self.add_batch(**columns)
        try:
            return evaluate.Metric.compute(self, **kwargs)
        finally:
            self._columns = []

    def add_batch(self, *, predictions: Any = None, references: Any = None, sources: Any = None) -> None:
        """Add candidates, their references and sources, to score later."""
        # Left alone, evaluate reads a bare string letter by letter and lets None through.
        columns = {"predictions": check_texts("predictions", predictions)}
        if references is not None:
            columns["references"] = check_list("references", references)
            check_references(columns["references"])
        if sources is not None:
            columns["sources"] = check_texts("sources", sources)
        check_same_length({name: len(column) for name, column in columns.items()})
        self._choose_columns(columns)
        if self.writer is not None:
            # before version 5, datasets writes a batch in front of the single pairs that it holds back
            self.writer.write_examples_on_file()
        evaluate.Metric.add_batch(self, **columns)

    def add(self, *, prediction: Any = None, reference: Any = None, source: Any = None, **kwargs: Any) -> None:
        """Add one candidate, its reference or references and its source, to score later.

        Args:
            prediction, reference, source: the texts.
            kwargs: the same texts by the names predictions, references and sources, as evaluate passes them.
        """
        texts = {"predictions": prediction, "references": reference, "sources": source}
        if unknown := sorted(set(kwargs) - set(texts)):
            raise TypeError(f"add() has no argument {', '.join(unknown)}; it takes prediction, reference, source")
        columns = {name: text for name, text in {**texts, **kwargs}.items() if text is not None}
        for name, text in columns.items():
            check_references([text]) if name == "references" else check_texts(name, [text])
        self._choose_columns(columns)
        evaluate.Metric.add(self, **columns)

    def _choose_columns(self, columns: dict[str, Any]) -> None:
        """Take the columns of the first texts, which all others must have as well."""
        if self.writer is not None and list(columns) != self._columns:
            raise ValueError(
                f"all batches must have the same texts, found {', '.join(columns)} after {', '.join(self._columns)}"
            )
        self._columns = list(columns)

    def _feature_names(self) -> list[str]:
        """Return the columns of the texts that were added; before that, those that the checkpoint reads."""
        if self.writer is None and not self._columns:  # evaluate.combine asks before it adds anything
            inputs = self._scorer_for(checkpoint=self.checkpoint).layout.inputs
            return ["predictions", *(f"{role}s" for role in ("reference", "source") if role in inputs)]
        return self._columns

    def _infer_feature_from_example(self, example: dict[str, Any]) -> datasets.Features:
        """Return the features that fit the columns of an example."""
        is_list = not isinstance(example.get("references", ""), str)
        for features in self.features:
            column = features.get("references")
            if features.keys() == example.keys() and (column is None or isinstance(column, datasets.Value) != is_list):
                return features
        raise ValueError(f"expected predictions with references or sources, found {', '.join(example) or 'nothing'}")

    def _compute(
        self,
        predictions: Any,
        references: Any = None,
        sources: Any = None,
        checkpoint: str | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        batch_tokens: int | None = None,
        device: str | None = None,
        return_std: bool = False,
    ) -> dict[str, Any]:
        predictions = check_texts("predictions", predictions)  # errors have the names of evaluate
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
        """Return the scorer with these options, which is kept for the next call."""
        options = {name: value for name, value in options.items() if value is not None}
        if self._scorer is None or options != self._scorer_options:
            self._scorer = bleurt_repro.BleurtScorer(**options)
            self._scorer_options = options
        return self._scorer
