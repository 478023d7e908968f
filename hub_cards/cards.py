"""Draw the card of a checkpoint from measured results and from nothing else.

The templates are Jinja files beside this one; `huggingface_hub` fills them and writes the metadata above them. What no
results file says is "not measured", "not recorded" or "not stated" on the card.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.files.tables import markdown_table
from bleurt_repro.metric.install import install_command, package_source
from bleurt_repro.metric.layout import Layout, separators_of
from bleurt_repro.training.results import Result, repeating_command

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from bleurt_repro.metric.scorer import BleurtScorer

TEMPLATES = Path(__file__).parent / "templates"
# The Hub's word for a licence that nobody has stated: https://huggingface.co/docs/hub/repositories-licenses
UNKNOWN = "unknown"
DOMAIN = "those of the ratings it was trained on; elsewhere it is untested unless a table below says so."
PAIR = {"candidate": "A cat was sitting on the mat.", "reference": "The cat sat on the mat."}
SOURCE = "Die Katze saß auf der Matte."
# The settings of a stage of training that a card shows, a row each.
SETTINGS_SHOWN = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "layer_decay", "frozen_layers", "dropout",
    "num_train_epochs", "max_steps", "global_batch_size", "max_length", "bf16", "seed",
)  # fmt: skip
PRETRAINING, FINETUNING = "Pre-training", "Fine-tuning"
# The pairs of the sanity experiment, in which one candidate is better by construction.
SANITY_TABLES = {
    "minimal_pairs": "a correct candidate, and the same with an error",
    "near_copies": "a correct candidate in other words, and the reference with an error",
    "swapped_roles": "a correct candidate, and the same with two participants exchanged",
    "free_paraphrases": "a free paraphrase, and the same with its meaning changed",
}
# Digits that the metadata keep: enough that rounding them again gives what rounding the figure itself gives.
DIGITS = 6


def draw_model_card(
    folder: str | Path,
    *,
    training: Sequence[str | Path] = (),
    results: Sequence[str | Path] = (),
    repo_id: str | None = None,
    recipe: str | None = None,
    license: str | None = None,
    data_terms: str | None = None,
    domain: str | None = None,
    base_model: str | None = None,
    datasets: Sequence[str] = (),
    source: str | None = None,
) -> str:
    """Draw a checkpoint's card.

    Args:
        folder: the checkpoint.
        training: results.json of each stage of training, in order.
        results: results.json of the experiments `agreement`, `sanity`, `adversarial` and `webnlg` that hold a row of this
            checkpoint, and the report of `bleurt-repro calibrate --reliability`.
        repo_id: where it will be published.
        recipe: where the commands that make it are described, a link or a sentence.
        license: of the weights, by the Hub's name for it.
        data_terms: on what terms the training data were obtained, a sentence.
        domain: which languages and kinds of text it is for, a sentence.
        base_model: the encoder that training started from, by its Hub id.
        datasets: Hub ids of the training data.
        source: the address that pip fetches the package by; see `metric.install.package_source`.

    Returns:
        Markdown with metadata, `model-index` included.

    Raises:
        ValueError: if a results file has no row with this checkpoint's content hash, or is of another kind.
    """
    from huggingface_hub import ModelCard, ModelCardData

    from bleurt_repro.metric.loading.open import IN_CLONES, embedded_names
    from bleurt_repro.metric.scorer import BleurtScorer

    folder = Path(folder)
    scorer = BleurtScorer(str(folder), device="cpu")
    measured = _by_kind(results, scorer.signature)
    stages = [stage for path in training for stage in stages_of(Result.read(path))]
    name = folder.resolve().name
    address = repo_id or placeholder(name)
    layout = Layout.from_config(scorer.model.config)
    data = ModelCardData(
        language="en",
        license=license or UNKNOWN,
        library_name="transformers",
        pipeline_tag="text-classification",
        base_model=base_model,
        datasets=list(datasets) or None,
        tags=["bleurt", "evaluation", "metric", "regression"],
        model_name=name,
        eval_results=list(_eval_results(measured, scorer.signature)) or None,
    )
    card = ModelCard.from_template(
        data,
        template_path=str(TEMPLATES / "model_card.md"),
        name=name,
        short_name=repo_id or (name if name in embedded_names() and name not in IN_CLONES else address),
        address=address,
        install=install_command(source=source),
        in_clone=package_source(source) is None,
        pair=PAIR,
        source_text=SOURCE if layout.reads_sources else None,
        score=_example_score(scorer),
        plain=_plain_use(folder) if _is_plain_pair(scorer) else None,
        summary=_summary(scorer, layout, measured, stages, license),
        layout=layout,
        calibration=scorer.calibration,
        untrained_head=bool(stages) and stages[-1]["title"] == PRETRAINING,
        domain=domain or DOMAIN,
        agreement=[_agreement(found) for found in measured["agreement"]],
        sanity=[_sanity(found, scorer.signature) for found in measured["sanity"]],
        adversarial=[_adversarial(found) for found in measured["adversarial"]],
        webnlg=[_webnlg(found) for found in measured["webnlg"]],
        reliability=[_reliability(found) for found in measured["reliability"]],
        training=stages,
        settings=settings_table(stages),
        recipe=recipe,
        data_terms=data_terms,
        license=license,
        signature=scorer.signature,
    )
    return card.content + "\n"


def placeholder(name: str) -> str:
    """Return what a card calls a checkpoint that is not published yet; publishing replaces it by the Hub id."""
    return f"path/to/{name}"


def fill_in(text: str, folder: Path, repo_id: str, source: str | None = None) -> str:
    """Put the address of a publication into a card that was drawn before it was known.

    Args:
        text: the card.
        folder: that it was drawn for.
        repo_id: where the folder is published.
        source: the address that pip fetches the package by, if the card is to name one.
    """
    text = text.replace(placeholder(folder.resolve().name), repo_id)
    if package_source(source):
        text = re.sub(
            r"^pip install -c constraints\.txt \..*$", install_command(source=source), text, flags=re.MULTILINE
        )
    return text


# --- how to use it -------------------------------------------------------------------------------------------------


def _example_score(scorer: BleurtScorer) -> float:
    """Score the pair of the card's examples."""
    layout = scorer.layout
    references = [PAIR["reference"]] if "reference" in layout.inputs else None
    sources = [SOURCE] if layout.reads_sources else None
    return scorer.score(candidates=[PAIR["candidate"]], references=references, sources=sources)[0]


def _is_plain_pair(scorer: BleurtScorer) -> bool:
    """Check whether the tokenizer's own way to join two texts is the one that the checkpoint reads."""
    layout = scorer.layout
    return list(layout.inputs) == ["reference", "candidate"] and layout.separators == separators_of(scorer.tokenizer)


def _plain_use(folder: Path) -> dict[str, Any]:
    """Open a checkpoint with `transformers` alone: the arithmetic that it opens in, and the example's score in float32."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    opened = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(PAIR["reference"], PAIR["candidate"], return_tensors="pt", truncation=True)
    score = opened.float().eval()(**inputs).logits.item()
    return {"dtype": str(opened.config.dtype or "torch.float32"), "score": score}


def _summary(
    scorer: BleurtScorer, layout: Layout, measured: Mapping[str, Any], stages: Sequence[Any], license: str | None
) -> str:
    """Lay out what a reader looks for first."""
    size = sum(weight.numel() for weight in scorer.model.parameters()) / 1e6
    rows = [
        ["reads", f"{', '.join(layout.inputs)}; at most {layout.max_length} tokens in all"],
        ["parameters", f"{size:.1f} million"],
        ["stages of training", str(len(stages)) if stages else "not recorded"],
        ["licence of the weights", license or "not stated"],
    ]
    for results in measured["agreement"]:
        for measure, value in _row(results["rows"], scorer.signature)["average"].items():
            rows.append([f"{_words(measure).capitalize()}, {results['title']}", f"{100 * value:.1f}"])
    return markdown_table(["", ""], rows)


# --- what was measured ---------------------------------------------------------------------------------------------


def _by_kind(paths: Sequence[str | Path], signature: str) -> dict[str, list[Result]]:
    """Read results files, and check that each has a row of the checkpoint."""
    measured: dict[str, list[Result]] = {
        "agreement": [],
        "sanity": [],
        "adversarial": [],
        "webnlg": [],
        "reliability": [],
    }
    for path in paths:
        results = Result.read(path)
        if results.kind not in measured:
            raise ValueError(f"{path} holds results of {results.kind}: a card shows those of {', '.join(measured)}")
        if results.kind == "reliability":
            named = [{"kind": "checkpoint", "signature": one} for one in results.signatures.values()]
            _row(named, signature)
            measured["reliability"].append(results)
            continue
        for rows in [results["rows"]] if "rows" in results else [part["rows"] for part in results["conditions"]]:
            _row(rows, signature)
        measured[results.kind].append(results)
    return measured


def _row(rows: Sequence[Mapping[str, Any]], signature: str) -> Mapping[str, Any]:
    """Find the checkpoint's row by its content hash: the name may belong to other weights by now."""
    content = _hash(signature)
    for row in rows:
        if row["kind"] == "checkpoint" and _hash(row["signature"]) == content:
            return row
    raise ValueError(f"the results have no row of the checkpoint with hash {content}: measure it again")


def _hash(signature: str) -> str:
    return dict(field.partition(":")[::2] for field in signature.split("|"))["hash"]


def _eval_results(measured: Mapping[str, Sequence[Result]], signature: str) -> Iterator[EvalResult]:
    """Describe the figures for the metadata: those of each group, and their average."""
    for results in measured["agreement"]:
        row = _row(results["rows"], signature)
        for group, figures in row["groups"].items():
            for measure, figure in figures.items():
                yield _eval_result(results["title"], group, measure, figure["value"])
        for measure, value in row["average"].items():
            yield _eval_result(results["title"], "average", measure, value)
    for results in measured["webnlg"]:
        for aspect, rows in _untrained(results).items():
            for measure, value in _row(rows, signature)["average"].items():
                yield _eval_result(results["title"], aspect, measure, value)
    for results in measured["sanity"]:
        for table, found in _row(results["rows"], signature)["tables"].items():
            yield _eval_result("Sanity checks", _words(table), "accuracy", found["shares"]["overall"]["share"])


def _eval_result(title: str, group: str, measure: str, value: float) -> EvalResult:
    from huggingface_hub import EvalResult

    return EvalResult(
        task_type="text-classification",
        task_name="agreement with human ratings" if measure != "accuracy" else "better candidate scores higher",
        dataset_type=re.sub(r"\W+", "-", title.lower()),
        dataset_name=title,
        dataset_config=group,
        metric_type=measure,
        metric_value=round(value, DIGITS),
        metric_name=_words(measure),
    )


def _agreement(results: Result) -> dict[str, Any]:
    from bleurt_repro.training.experiments.report import draw_table

    found = {name: results[name] for name in ("title", "confidence", "resamples", "seed", "command")}
    return {**found, "records": results["data"]["records"], "text": draw_table(results)}


def _sanity(results: Result, signature: str) -> dict[str, Any]:
    """Lay out the shares of pairs judged rightly: of each table by metric, and of each type of error by table."""
    rows, own = results["rows"], _row(results["rows"], signature)["tables"]
    overall = [
        [_words(table), SANITY_TABLES.get(table, ""), str(own[table]["shares"]["overall"]["n"])]
        + [_percent(row["tables"][table]["shares"]["overall"]) for row in rows]
        for table in own
    ]
    types = dict.fromkeys(kind for table in own.values() for kind in table["shares"] if kind != "overall")
    by_type = [
        [
            _words(kind),
            *(_percent(table["shares"][kind]) if kind in table["shares"] else "-" for table in own.values()),
        ]
        for kind in types
    ]
    return {
        "confidence": results["confidence"],
        "command": results["command"],
        "overall": markdown_table(["pairs", "what they are", "count", *(row["name"] for row in rows)], overall),
        "by_type": markdown_table(["error", *map(_words, own)], by_type),
    }


def _adversarial(results: Result) -> dict[str, Any]:
    """Lay out how often each metric is fooled: three lines that sum it up, and all kinds of candidates."""
    from bleurt_repro.training.experiments.adversarial import BEST_RANDOM, RANDOM_WORD, TURNED, shares_table

    rows = results["rows"]
    summary = (TURNED, RANDOM_WORD, BEST_RANDOM)
    return {
        "margin": next(row["margin"] for row in rows if row["kind"] == "checkpoint"),
        "references": results["references"],
        "command": results["command"],
        "overall": shares_table(rows, summary),
        "by_kind": shares_table(rows, [kind for kind in rows[0]["kinds"] if kind not in summary]),
    }


def _webnlg(results: Result) -> dict[str, Any]:
    """Lay out the agreement on data-to-text without training on it, a column an aspect."""
    columns = _untrained(results)
    names = [row["name"] for row in next(iter(columns.values()))]
    cells = [[name] + [_interval(rows[i]) for rows in columns.values()] for i, name in enumerate(names)]
    return {
        **{name: results[name] for name in ("title", "outputs", "resamples", "command")},
        "text": markdown_table(["Kendall tau x 100", *columns], cells),
    }


def _reliability(results: Result) -> dict[str, Any]:
    """Lay out how reliable P(people prefer a system) is, as tested on the first ratings of the report."""
    from bleurt_repro.training.reliability.report import draw_bins, draw_needed

    name, figures = next(iter(results["tests"].items()))
    return {
        "command": results["command"],
        "ratings": figures["ratings"],
        "name": name,
        "preference": figures["preference"],
        "needed": draw_needed(results["fitted"]["preference"]),
        "diagram": draw_bins(figures["preference"], "comparisons"),
    }


def _untrained(results: Result) -> dict[str, list[dict[str, Any]]]:
    """Choose the rows of each aspect that were measured without training on the data."""
    found = {part["aspect"]: part["rows"] for part in results["conditions"] if not part["training_records"]}
    if not found:
        raise ValueError(
            f"the results of {results['title']} have no part without training: measure with --training-systems 0"
        )
    return found


def _interval(row: Mapping[str, Any]) -> str:
    low, high = row["average_intervals"]["kendall_tau"]
    shown = f"{100 * row['average']['kendall_tau']:.1f}"
    return shown if low is None else f"{shown} [{100 * low:.1f}, {100 * high:.1f}]"


def _percent(figure: Mapping[str, float]) -> str:
    return f"{100 * figure['share']:.1f} [{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"


def _words(name: str) -> str:
    return name.replace("_", " ")


# --- how it was trained --------------------------------------------------------------------------------------------


def stages_of(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Describe a run as one stage; an average as the runs of its members.

    Args:
        results: of a results.json of `pretrain`, `finetune` or `average`.

    Returns:
        for each stage "title", "summary", "data" (sentences), "command" and "settings".

    Raises:
        ValueError: if nothing is recorded of a member's training, or these are no results of training.
    """
    if "average" not in results:
        return [_stage(results)]
    stages = []
    for member in results["average"]:
        if member["training"] is None:
            raise ValueError(f"nothing is recorded of the training of {member['checkpoint']}, a member of the average")
        share = f"weight {member['weight']:.3g} of the average of {len(results['average'])} runs"
        stages += [{**stage, "summary": f"{stage['summary']}; {share}"} for stage in stages_of(member["training"])]
    return stages


def settings_table(stages: Sequence[Mapping[str, Any]]) -> str:
    """Lay out the settings that matter, a column a stage."""
    headers = ["setting", *(str(number) for number in range(1, len(stages) + 1))]
    settings = [stage["settings"] for stage in stages]
    known = [key for key in SETTINGS_SHOWN if any(key in given for given in settings)]
    return markdown_table(headers, [[key, *(str(given.get(key, "")) for given in settings)] for key in known])


def _stage(results: Mapping[str, Any]) -> dict[str, Any]:
    """Sum a training run up in words."""
    if not {"data", "settings", "best", "steps"} <= set(results):
        raise ValueError(
            f"these are no results of training: expected data, settings, best and steps, found {', '.join(results)}"
        )
    data, settings, best = results["data"], dict(results["settings"]), results["best"]
    kind = "ratings" if "train_ratings" in data else "pairs"
    count = data.get("train_ratings", data.get("train_pairs"))
    summary = (
        f"{count:,} {kind}, {results['epochs']:g} epochs, {results['steps']:,} steps in {results['seconds'] / 60:.0f} minutes "
        f"({results['examples_per_second']:g} a second)"
    )
    if best["value"] is None:
        summary += "; validation not measured"
    else:
        # the Trainer notes no step where it saved nothing on its way
        place = "; the weights are those of the end" if best["step"] is None else f" at step {best['step']:,}"
        summary += f"; best validation {_words(best['measure'])} {best['value']:.3f}{place}"
    return {
        "title": FINETUNING if kind == "ratings" else PRETRAINING,
        "summary": summary,
        "data": _data(data),
        "command": repeating_command(f"bleurt-repro {'finetune' if kind == 'ratings' else 'pretrain'}", settings),
        "settings": settings,
    }


def _data(data: Mapping[str, Any]) -> list[str]:
    """Name what was trained on, so that it cannot be confused with other data."""
    sentences = [f"`{item['file']}`, SHA-256 `{item['sha256']}`" for item in data.get("files", [])]
    if pairs := data.get("pairs"):
        sentences.append(f"synthetic pairs `{pairs['folder']}`, {len(pairs['parts'])} parts")
    if signals := data.get("signals"):
        sentences.append(f"signals: {', '.join(signals)}")
    if "truncated" in data:
        sentences.append(f"{data['truncated']:,} texts were cut to the maximum length")
    return sentences
