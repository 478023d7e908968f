"""Draw the card of a checkpoint from results files, and from nothing else.

The templates are Jinja files in templates/; `huggingface_hub` fills them and adds the metadata. What no results file
contains is "not measured", "not recorded" or "not stated" on the card.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.files.tables import markdown_table
from bleurt_repro.metric.install import SOURCE_VARIABLE, install_command, package_source
from bleurt_repro.metric.layout import Layout, separators_of
from bleurt_repro.training.results import RESULTS, Result

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from bleurt_repro.metric.scorer import BleurtScorer

TEMPLATES = Path(__file__).parent / "templates"
# The Hub's name for a licence that is not stated: https://huggingface.co/docs/hub/repositories-licenses
UNKNOWN = "unknown"
DOMAIN = "those of the ratings it was trained on; untested elsewhere, unless a table below says so."
PAIR = {"candidate": "A cat was sitting on the mat.", "reference": "The cat sat on the mat."}
SOURCE = "Die Katze saß auf der Matte."
PRETRAINING, FINETUNING = "Pre-training", "Fine-tuning"
# Kinds of results files that a card shows, and what they measure.
EVALUATIONS = {
    "agreement": "agreement with human ratings",
    "reliability": "reliability of differences between systems",
    "webnlg": "data-to-text",
    "sanity": "sanity checks",
    "adversarial": "adversarial candidates",
}
# Tables of the sanity experiment. The first candidate of each pair is better by construction.
SANITY_PAIRS = {
    "minimal_pairs": "a correct candidate, or the same with an error",
    "near_copies": "a correct paraphrase, or the reference with an error",
    "swapped_roles": "a correct candidate, or the same with two participants exchanged",
    "free_paraphrases": "a paraphrase, or the same with a changed meaning",
}
# Candidates of the adversarial experiment that sum it up.
ADVERSARIAL_CANDIDATES = {
    "turned_meanings": "reference with one word that changes its meaning",
    "random_word": "reference with one random word",
    "best_random_word": "highest-scored of many random words",
}
# The installation line of a card that was drawn without a public address of the package.
CLONE_INSTALL = re.compile(r"^pip install -c constraints\.txt \..*$", re.MULTILINE)
# Measures of agreement that the metadata hold, the first of a results file; the card's tables show the first alone.
MEASURES_RECORDED = 2
# Digits in the metadata: enough to give the same number when rounded again.
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
    language: Sequence[str] = ("en",),
    known_language: Sequence[str] = (),
    base_model: str | None = None,
    datasets: Sequence[str] = (),
    source: str | None = None,
) -> str:
    """Draw the card of a checkpoint.

    Args:
        folder: folder of the checkpoint.
        training: results.json of each stage of training, in order.
        results: results.json of the experiments `agreement`, `sanity`, `adversarial` and `webnlg` that contain this
            checkpoint, and the report of `bleurt-repro calibrate --reliability`.
        repo_id: repository where it will be published.
        recipe: where the commands that make it are described, a link or a sentence.
        license: licence of the weights by the Hub's name for it.
        data_terms: sentence on the terms of use of the training data.
        domain: sentence on the languages and kinds of text it is for.
        language: codes of the languages of the candidates whose ratings it was trained on.
        known_language: codes of further languages that its encoder was trained on.
        base_model: Hub id of the encoder that training started from.
        datasets: Hub ids of the training data.
        source: address that pip installs the package from; see `metric.install.package_source`.

    Returns:
        Markdown with metadata, including the `model-index`.

    Raises:
        ValueError: if a results file is of another kind, or has no row with this checkpoint's content hash.
    """
    from huggingface_hub import ModelCard, ModelCardData

    from bleurt_repro.metric.loading.find import IN_CLONES, embedded_names
    from bleurt_repro.metric.scorer import BleurtScorer

    folder = Path(folder)
    scorer = BleurtScorer(str(folder), device="cpu")
    measured = _read_results(results, scorer.signature)
    stages = [stage for path in training for stage in training_stages(Result.read(path))]
    name = folder.resolve().name
    address = repo_id or placeholder(name)
    layout = Layout.from_config(scorer.model.config)
    data = ModelCardData(
        language=[*language, *known_language] if known_language or len(language) > 1 else language[0],
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
        plain=_score_with_transformers(folder) if _is_plain_pair(scorer) else None,
        summary=_summary(scorer, layout, measured, license),
        inputs=_inputs(layout),
        layout=layout,
        calibration=scorer.calibration,
        untrained_head=bool(stages) and stages[-1]["stage"] == PRETRAINING,
        domain=domain or DOMAIN,
        language=language,
        known_language=known_language,
        agreement=[_agreement(results, scorer.signature) for results in measured["agreement"]],
        reliability=[_reliability(results) for results in measured["reliability"]],
        webnlg=[_webnlg(results) for results in measured["webnlg"]],
        sanity=[_sanity(results, scorer.signature) for results in measured["sanity"]],
        adversarial=[_adversarial(results) for results in measured["adversarial"]],
        not_measured=[title for kind, title in EVALUATIONS.items() if not measured[kind]],
        training=training_table(stages) if stages else None,
        has_record=bool(recorded_stages(folder)),
        recipe=recipe,
        data_terms=data_terms,
        license=license,
        signature=scorer.signature,
    )
    return card.content + "\n"


def placeholder(name: str) -> str:
    """Return what a card calls a checkpoint before it is published; publishing replaces it by the Hub id."""
    return f"path/to/{name}"


def fill_in(text: str, folder: Path, repo_id: str, source: str | None = None) -> str:
    """Return a card with the addresses that were not known when it was drawn.

    Args:
        text: the card.
        folder: folder of the checkpoint or dataset.
        repo_id: repository where it is published.
        source: address that pip installs the package from.

    Raises:
        ValueError: if the card tells readers to install the package and its address is not known.
    """
    text = text.replace(placeholder(folder.resolve().name), repo_id)
    if CLONE_INSTALL.search(text):
        require_source(source)
        text = CLONE_INSTALL.sub(lambda match: install_command(source=source), text)
    return text


def require_source(source: str | None = None) -> None:
    """Check that the address of the package is known, which the readers of a published card need.

    Raises:
        ValueError: if it is not.
    """
    if package_source(source) is None:
        raise ValueError(
            "the card must say where pip installs the package from: give --source git+https://HOST/ORG/NAME, or set "
            f"{SOURCE_VARIABLE}"
        )


# --- usage -----------------------------------------------------------------------------------------------------------


def _example_score(scorer: BleurtScorer) -> float:
    """Score the pair of the card's examples."""
    layout = scorer.layout
    references = [PAIR["reference"]] if "reference" in layout.inputs else None
    sources = [SOURCE] if layout.reads_sources else None
    return scorer.score(candidates=[PAIR["candidate"]], references=references, sources=sources)[0]


def _is_plain_pair(scorer: BleurtScorer) -> bool:
    """Return whether the tokenizer alone joins a reference and a candidate as the checkpoint reads them."""
    layout = scorer.layout
    return list(layout.inputs) == ["reference", "candidate"] and layout.separators == separators_of(scorer.tokenizer)


def _score_with_transformers(folder: Path) -> dict[str, Any]:
    """Return the data type that `transformers` alone loads a checkpoint in, and the example's score in float32."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from bleurt_repro.metric.loading.quiet import quiet_transformers

    with quiet_transformers():
        model = AutoModelForSequenceClassification.from_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(PAIR["reference"], PAIR["candidate"], return_tensors="pt", truncation=True)
    score = model.float().eval()(**inputs).logits.item()
    return {"dtype": str(model.config.dtype or "torch.float32"), "score": score}


def _summary(scorer: BleurtScorer, layout: Layout, measured: Mapping[str, Any], license: str | None) -> str:
    """Draw the table of what readers look for first."""
    size = sum(weight.numel() for weight in scorer.model.parameters()) / 1e6
    rows = [
        ["Inputs", ", ".join(layout.inputs)],
        ["Maximum length", f"{layout.max_length} tokens in total; longer texts are truncated with a warning"],
        ["Parameters", f"{size:.1f} million"],
        ["Licence of the weights", license or "not stated"],
    ]
    for results in measured["agreement"]:
        measure, value = next(iter(_find_row(results["rows"], scorer.signature)["average"].items()))
        rows.append([f"{_label(measure)} x 100, {results['title']}", f"{100 * value:.1f}"])
    return markdown_table(["", ""], rows)


def _inputs(layout: Layout) -> str:
    """Return what a checkpoint reads, such as "the source, the reference and the candidate"."""
    if layout.optional:
        return "the candidate beside the reference, the source, or both"
    *first, last = (f"the {name}" for name in layout.inputs)
    return f"{', '.join(first)} and {last}" if first else last


# --- evaluation ------------------------------------------------------------------------------------------------------


def _read_results(paths: Sequence[str | Path], signature: str) -> dict[str, list[Result]]:
    """Read results files by kind, and check that each contains the checkpoint."""
    measured: dict[str, list[Result]] = {kind: [] for kind in EVALUATIONS}
    for path in paths:
        results = Result.read(path)
        if results.kind not in measured:
            raise ValueError(f"{path} holds results of {results.kind}: a card shows those of {', '.join(measured)}")
        if results.kind == "reliability":
            tables = [[{"kind": "checkpoint", "signature": tested} for tested in results.signatures.values()]]
        elif results.kind == "webnlg":
            tables = [condition["rows"] for condition in results["conditions"]]
        else:
            tables = [results["rows"]]
        for rows in tables:
            _find_row(rows, signature)
        measured[results.kind].append(results)
    return measured


def _find_row(rows: Sequence[Mapping[str, Any]], signature: str) -> Mapping[str, Any]:
    """Return the checkpoint's row by its content hash, since the name may stand for other weights by now."""
    content = _content_hash(signature)
    for row in rows:
        if row["kind"] == "checkpoint" and _content_hash(row["signature"]) == content:
            return row
    raise ValueError(f"the results have no row of the checkpoint with hash {content}: measure it again")


def _content_hash(signature: str) -> str:
    return dict(field.partition(":")[::2] for field in signature.split("|"))["hash"]


def _eval_results(measured: Mapping[str, Sequence[Result]], signature: str) -> Iterator[EvalResult]:
    """Return the figures for the metadata: those of each group, and their average."""
    for results in measured["agreement"]:
        row, measures = _find_row(results["rows"], signature), results["measures"][:MEASURES_RECORDED]
        for group, figures in row["groups"].items():
            for measure in measures:
                yield _eval_result(results["title"], group, measure, figures[measure]["value"])
        for measure in measures:
            yield _eval_result(results["title"], "average", measure, row["average"][measure])
    for results in measured["webnlg"]:
        for aspect, rows in _untrained_rows(results).items():
            for measure, value in _find_row(rows, signature)["average"].items():
                yield _eval_result(results["title"], aspect, measure, value)
    for results in measured["sanity"]:
        for table, figures in _find_row(results["rows"], signature)["tables"].items():
            share = figures["shares"]["overall"]["share"]
            yield _eval_result("Sanity checks", table.replace("_", " "), "accuracy", share)


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
        metric_name=measure.replace("_", " "),
    )


def _agreement(results: Result, signature: str) -> dict[str, Any]:
    """Draw the averages over groups by the first measure: rows of the checkpoint and of baselines, not of others."""
    measures = results["measures"][:1]
    notes = list(dict.fromkeys(note for row in results["rows"] for note in row.get("columns", {})))
    level = f"{100 * results['confidence']:.0f} % interval"
    headers = ["metric", *(header for measure in measures for header in (f"{_label(measure)} x 100", level)), *notes]
    content = _content_hash(signature)
    shown = [  # of the checkpoint, there are several rows if it can leave inputs out
        row for row in results["rows"] if row["kind"] != "checkpoint" or _content_hash(row["signature"]) == content
    ]
    rows = []
    for row in shown:
        cells = [row["name"]]
        for measure in measures:
            low, high = row["average_intervals"][measure]
            cells.append(f"{100 * row['average'][measure]:.1f}")
            cells.append("-" if low is None else f"{100 * low:.1f}–{100 * high:.1f}")
        rows.append([*cells, *(row.get("columns", {}).get(note, "-") for note in notes)])
    return {
        "title": results["title"],
        "records": results["data"]["records"],
        "groups": len(results["rows"][0]["groups"]),
        "table": markdown_table(headers, rows),
        "overlaps": [_overlap(row) for row in shown if (row.get("training_references") or {}).get("seen")],
        "command": results["command"],
    }


def _overlap(row: Mapping[str, Any]) -> str:
    """Return the sentence on a checkpoint that was fine-tuned on references of the ratings it was measured on."""
    overlap = row["training_references"]
    return (
        f"**{row['name']} was fine-tuned on {overlap['seen']} of the {overlap['references']} different references of these "
        "ratings: its agreement is too high.**"
    )


def _reliability(results: Result) -> dict[str, Any]:
    """Draw the differences between systems that are needed, and how well P was calibrated on the first test."""
    from bleurt_repro.training.reliability.report import draw_needed

    return {
        "table": draw_needed(results["fitted"]["preference"]),
        "tested": next(iter(results["tests"].values()), None),
        "command": results["command"],
    }


def _webnlg(results: Result) -> dict[str, Any]:
    """Draw the agreement on data-to-text without training on it, with one column per aspect."""
    columns = _untrained_rows(results)
    names = [row["name"] for row in next(iter(columns.values()))]
    rows = [
        [name, *(f"{100 * aspect[i]['average']['kendall_tau']:.1f}" for aspect in columns.values())]
        for i, name in enumerate(names)
    ]
    return {
        "title": results["title"],
        "outputs": results["outputs"],
        "table": markdown_table(["Kendall tau x 100", *columns], rows),
        "command": results["command"],
    }


def _untrained_rows(results: Result) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each aspect that were measured without training on the data."""
    conditions = results["conditions"]
    rows = {condition["aspect"]: condition["rows"] for condition in conditions if not condition["training_records"]}
    if not rows:
        raise ValueError(
            f"the results of {results['title']} have no condition without training: measure with --training-systems 0"
        )
    return rows


def _sanity(results: Result, signature: str) -> dict[str, Any]:
    """Draw the shares of pairs whose better candidate scores higher, with one column per metric."""
    tables = _find_row(results["rows"], signature)["tables"]
    rows = []
    for table, figures in tables.items():
        shares = [row["tables"][table]["shares"]["overall"]["share"] for row in results["rows"]]
        pairs = SANITY_PAIRS.get(table, table.replace("_", " "))
        rows.append([pairs, str(figures["shares"]["overall"]["n"]), *(f"{100 * share:.1f}" for share in shares)])
    headers = ["pairs", "count", *(row["name"] for row in results["rows"])]
    return {"table": markdown_table(headers, rows), "command": results["command"]}


def _adversarial(results: Result) -> dict[str, Any]:
    """Draw how many candidates score higher than the average real output, with one column per metric."""
    rows = []
    for kind, description in ADVERSARIAL_CANDIDATES.items():
        shares = [row["kinds"][kind]["above_output"] for row in results["rows"]]
        count = str(results["rows"][0]["kinds"][kind]["n"])
        rows.append([description, count, *(f"{100 * share['share']:.1f}" if share else "-" for share in shares)])
    headers = ["candidate", "count", *(row["name"] for row in results["rows"])]
    return {
        "references": results["references"],
        "table": markdown_table(headers, rows),
        "command": results["command"],
    }


def _label(measure: str) -> str:
    return measure.replace("_", " ").capitalize()


# --- training --------------------------------------------------------------------------------------------------------


def training_stages(results: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the stages of training in a results file: one for a run, and those of all members for an average.

    Args:
        results: results.json of `pretrain`, `finetune` or `average`.

    Returns:
        For each stage its cells in the card's table, by column.

    Raises:
        ValueError: if the training of a member is not recorded, or these are not results of training.
    """
    if "average" not in results:
        return [_training_stage(results)]
    stages = []
    for member in results["average"]:
        if member["training"] is None:
            raise ValueError(f"the training of {member['checkpoint']}, a member of the average, is not recorded")
        stages += training_stages(member["training"])
    return stages


def recorded_stages(folder: Path) -> list[dict[str, str]]:
    """Return the stages of training in the results.json of a checkpoint; none if it has no such record."""
    try:
        return training_stages(Result.read(folder / RESULTS))
    except (OSError, ValueError):  # there is no file, or it holds other results
        return []


def training_table(stages: Sequence[Mapping[str, str]]) -> str:
    """Draw the table of the stages of training; runs that differ in their seeds alone share a row."""
    columns = [column for column in stages[0] if column != "validation"]
    rows = []
    for cells, runs in itertools.groupby(stages, lambda stage: [stage[column] for column in columns]):
        validations = [run["validation"] for run in runs]
        rows.append([*cells, str(len(validations)), ", ".join(dict.fromkeys(validations))])
    return markdown_table([*columns, "runs", "validation"], rows)


def _training_stage(results: Mapping[str, Any]) -> dict[str, str]:
    if not {"data", "settings", "best", "steps"} <= set(results):
        raise ValueError(
            f"these are not results of training: expected data, settings, best and steps, found {', '.join(results)}"
        )
    data, settings, best = results["data"], results["settings"], results["best"]
    measure = "" if best["measure"] == "kendall_tau" else f"{best['measure']} "
    return {
        "stage": FINETUNING if "train_ratings" in data else PRETRAINING,
        "from": f"`{settings['model']}`",
        "examples": f"{data.get('train_ratings', data.get('train_pairs')):,}",
        "epochs": f"{results['epochs']:g}",
        "learning rate": f"{settings['learning_rate']:g}",
        "validation": f"{measure}{best['value']:.3f}" if best["value"] is not None else "-",
    }
