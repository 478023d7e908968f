"""The `evaluate` module: loaded by path and by name, fed in every way that evaluate knows."""

from __future__ import annotations

import doctest
import errno
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import datasets
import evaluate
import pytest
from evaluate.loading import CachedEvaluationModuleFactory

from bleurt_repro import BleurtScorer, register
from tests.conftest import SPACE, make_tiny_scorer

REFERENCES = ["the cat sat on the mat", "it rains", "good bye", "hi"]
CANDIDATES = ["the cat sat", "the dog rains", "good bye", ""]


@pytest.fixture
def metric(tiny_scorer):
    return evaluate.load(str(SPACE), str(tiny_scorer))


@pytest.fixture(scope="module")
def expected(tiny_scorer):
    return BleurtScorer(str(tiny_scorer)).compute(references=REFERENCES, candidates=CANDIDATES)


def test_compute(metric, expected):
    results = metric.compute(predictions=CANDIDATES, references=REFERENCES)
    assert set(results) == {"scores", "mean_score", "signature", "truncated", "unknown", "warnings"}
    assert results["scores"] == pytest.approx(expected.scores, abs=1e-6)
    assert results["mean_score"] == pytest.approx(expected.mean_score, abs=1e-6)
    assert (results["signature"], results["truncated"]) == (expected.signature, 0)


def test_several_references(metric, tiny_scorer):
    references = [["a cat", "the mat"], ["it rains"]]
    scorer = BleurtScorer(str(tiny_scorer))
    for aggregate in ("max", "mean"):
        scores = metric.compute(predictions=["a", "b"], references=references, aggregate=aggregate)["scores"]
        assert scores == pytest.approx(
            scorer.score(references=references, candidates=["a", "b"], aggregate=aggregate), abs=1e-6
        )


def test_add_and_add_batch(metric, expected):
    metric.add(prediction=CANDIDATES[0], reference=REFERENCES[0])
    metric.add_batch(predictions=CANDIDATES[1:3], references=REFERENCES[1:3])
    metric.add(prediction=CANDIDATES[3], reference=REFERENCES[3])
    assert metric.compute()["scores"] == pytest.approx(expected.scores, abs=1e-6)


def test_single_pairs_are_written_before_a_batch(metric, monkeypatch):
    held_back = []
    add_batch = evaluate.Metric.add_batch
    monkeypatch.setattr(
        evaluate.Metric,
        "add_batch",
        lambda self, **given: (held_back.append(len(self.writer.current_examples)), add_batch(self, **given)),
    )
    metric.add(prediction=CANDIDATES[0], reference=REFERENCES[0])
    assert len(metric.writer.current_examples) == 1
    metric.add_batch(predictions=CANDIDATES[1:], references=REFERENCES[1:])
    assert held_back == [0], "datasets 4 would write them after the batch: scores in another order than pairs"
    assert len(metric.compute()["scores"]) == len(CANDIDATES)


def test_in_memory(tiny_scorer, expected):
    metric = evaluate.load(str(SPACE), str(tiny_scorer), keep_in_memory=True)
    assert metric.compute(predictions=CANDIDATES, references=REFERENCES)["scores"] == pytest.approx(expected.scores)


def test_combine(metric, tiny_scorer, expected):
    both = evaluate.combine([metric, evaluate.load(str(SPACE), str(tiny_scorer))], force_prefix=True)
    results = both.compute(predictions=CANDIDATES, references=REFERENCES)
    assert results["bleurt_repro_0_scores"] == pytest.approx(expected.scores, abs=1e-6)
    assert results["bleurt_repro_1_scores"] == results["bleurt_repro_0_scores"]


def compute_in_two_processes(checkpoint, folder, **texts):
    """Score half of the texts in each of two processes."""

    def shard(process: int):
        options = {"num_process": 2, "process_id": process, "experiment_id": "two", "cache_dir": str(folder)}
        metric = evaluate.load(str(SPACE), str(checkpoint), **options)
        half = slice(2 * process, 2 * process + 2)
        return metric.compute(**{name: column[half] for name, column in texts.items()})

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(shard, range(2))
    assert second is None
    return first["scores"]


def test_two_processes(tiny_scorer, expected, tmp_path):
    scores = compute_in_two_processes(tiny_scorer, tmp_path, predictions=CANDIDATES, references=REFERENCES)
    assert scores == pytest.approx(expected.scores, abs=1e-6)


SOURCES = ["hi", "good bye", "the cat", "it rains"]
# Texts that checkpoints of different layouts read, beside the candidates.
LAYOUTS = {
    ("source", "candidate", "reference"): {"references": REFERENCES, "sources": SOURCES},
    ("source", "reference", "candidate"): {"references": [[text, "a dog"] for text in REFERENCES], "sources": SOURCES},
    ("source", "candidate"): {"sources": SOURCES},
    ("candidate", "reference"): {"references": REFERENCES},
}


@pytest.mark.parametrize(
    "inputs", [pytest.param(inputs, marks=pytest.mark.long if number else ()) for number, inputs in enumerate(LAYOUTS)]
)
def test_texts_of_every_layout_in_every_way(tmp_path, inputs):
    """All texts a checkpoint reads are features of the module: added one by one, in batches, from processes, combined."""
    checkpoint = make_tiny_scorer(tmp_path / "scorer", inputs=inputs)
    texts = {"predictions": CANDIDATES, **LAYOUTS[inputs]}
    scorer = BleurtScorer(str(checkpoint))
    expected = pytest.approx(scorer.score(candidates=CANDIDATES, **LAYOUTS[inputs]), abs=1e-6)
    metric = evaluate.load(str(SPACE), str(checkpoint))
    for _ in range(2):  # nothing is left of the first time
        assert metric.compute(**texts)["scores"] == expected
        metric.add_batch(**{name: column[:2] for name, column in texts.items()})
        metric.add(**{name.removesuffix("s"): column[2] for name, column in texts.items()})
        metric.add_batch(**{name: column[3:] for name, column in texts.items()})
        assert metric.compute()["scores"] == expected
    metric.add_batch(**{name: column[:1] for name, column in texts.items()})
    assert metric.compute(**{name: column[1:] for name, column in texts.items()})["scores"] == expected
    assert compute_in_two_processes(checkpoint, tmp_path / "cache", **texts) == expected
    both = evaluate.combine([metric, evaluate.load(str(SPACE), str(checkpoint))], force_prefix=True)
    both.add_batch(**texts)
    assert both.compute()["bleurt_repro_1_scores"] == expected
    both.add(**{name.removesuffix("s") if name != "sources" else name: column[0] for name, column in texts.items()})
    assert len(both.compute()["bleurt_repro_0_scores"]) == 1


def test_batches_of_different_texts_are_refused(tiny_source_scorer):
    metric = evaluate.load(str(SPACE), str(tiny_source_scorer))
    metric.add_batch(predictions=["a"], references=["b"], sources=["c"])
    with pytest.raises(ValueError, match="found predictions, references after predictions, references, sources"):
        metric.add_batch(predictions=["a"], references=["b"])
    with pytest.raises(ValueError, match="must be equally long, found 1 predictions, 1 references, 2 sources"):
        metric.add_batch(predictions=["a"], references=["b"], sources=["c", "d"])
    with pytest.raises(TypeError, match=r"sources\[0\] must be a string, found None"):
        metric.add_batch(predictions=["a"], references=["b"], sources=[None])
    with pytest.raises(TypeError, match="has no argument source_text; it takes prediction, reference, source"):
        metric.add(prediction="a", reference="b", source_text="c")
    assert len(metric.compute()["scores"]) == 1


def test_a_blank_reference_is_left_out_and_counted_if_alone(metric):
    lists = {"predictions": ["a cat", "a dog"], "references": [["the cat", " "], ["", "it rains"]]}
    expected = metric.compute(predictions=lists["predictions"], references=["the cat", "it rains"])["scores"]
    metric.add_batch(**lists)
    assert metric.compute()["scores"] == metric.compute(**lists)["scores"] == pytest.approx(expected, abs=1e-6)
    with pytest.warns(UserWarning, match="1 of 2 pairs have a blank reference"):
        assert len(metric.compute(predictions=["a", "b"], references=["", "c"])["warnings"]) == 1


def test_empty_lists(metric):
    for _ in range(2):
        results = metric.compute(predictions=[], references=[])
        assert (results["scores"], results["mean_score"], results["truncated"]) == ([], None, 0)
    assert len(metric.compute(predictions=["a"], references=[["b", "c"]])["scores"]) == 1


def test_sources(tiny_source_scorer):
    metric = evaluate.load(str(SPACE), checkpoint=str(tiny_source_scorer))
    texts = {"predictions": ["a"], "references": ["b"]}
    results = metric.compute(**texts, sources=["hi"])
    assert results["scores"] != metric.compute(**texts, sources=["good bye"])["scores"]
    with pytest.raises(ValueError, match="reads the source of each candidate"):
        metric.compute(**texts)


def test_the_checkpoint_can_be_chosen_in_each_way(tiny_scorer, tiny_source_scorer, expected):
    texts = {"predictions": CANDIDATES, "references": REFERENCES}
    by_load = evaluate.load(str(SPACE), checkpoint=str(tiny_scorer)).compute(**texts)
    by_compute = evaluate.load(str(SPACE), str(tiny_source_scorer)).compute(**texts, checkpoint=str(tiny_scorer))
    assert by_load["scores"] == by_compute["scores"] == pytest.approx(expected.scores, abs=1e-6)
    with pytest.raises(ValueError, match="two checkpoints are named"):
        evaluate.load(str(SPACE), "one", checkpoint="other")


def test_a_checkpoint_path_does_not_lead_the_cache_elsewhere(metric, tiny_scorer):
    before = sorted(path.name for path in tiny_scorer.iterdir())
    metric.compute(predictions=["a"], references=["b"])
    assert sorted(path.name for path in tiny_scorer.iterdir()) == before
    assert not Path(metric.data_dir).is_relative_to(tiny_scorer)


def test_the_model_is_loaded_once(metric, monkeypatch):
    metric.compute(predictions=["a"], references=["b"])
    first = metric._scorer
    metric.compute(predictions=["c"], references=["d"])
    assert metric._scorer is first
    metric.compute(predictions=["c"], references=["d"], batch_tokens=100)
    assert metric._scorer is not first


BAD_INPUT = [
    ({"predictions": ["a"], "references": ["b"], "chekpoint": "x"}, TypeError, "compute.. has no argument chekpoint; it takes"),
    ({"predictions": "abc", "references": "abc"}, TypeError, "predictions must be a list of strings, found a single str"),
    ({"predictions": ["abc"], "references": "a"}, TypeError, "references must be a list of strings, found a single str"),
    ({"predictions": [None], "references": ["a"]}, TypeError, r"predictions\[0\] must be a string, found None"),
    ({"predictions": ["a", 2], "references": ["a", "b"]}, TypeError, r"predictions\[1\] must be a string, found int"),
    ({"predictions": ["a", "b"], "references": ["a"]}, ValueError, "must be equally long, found 2 predictions, 1 references"),
    ({"predictions": ["a"], "references": [[]]}, ValueError, r"references\[0\] is empty"),
    ({"predictions": ["a"], "references": ["a"], "sources": ["s"]}, ValueError, "reads no sources"),
    ({"predictions": ["a"], "references": ["a"], "checkpoint": "unheard-of"}, ValueError, "unknown checkpoint"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_INPUT)
def test_bad_input_gets_one_clear_error_and_leaves_the_metric_usable(metric, expected, arguments, error, message):
    with pytest.raises(error, match=message):
        metric.compute(**arguments)
    results = metric.compute(predictions=CANDIDATES, references=REFERENCES)
    assert results["scores"] == pytest.approx(expected.scores, abs=1e-6)


def test_candidates_are_checked_once(metric, monkeypatch):
    from bleurt_repro.metric import inputs

    looks, check_list = [], inputs.check_list
    monkeypatch.setattr(inputs, "check_list", lambda name, values: looks.append(name) or check_list(name, values))
    metric.compute(predictions=["a cat", "a dog"], references=["a cat", "a dog"])
    assert [name for name in looks if name != "references"] == ["predictions"]


def test_an_unknown_argument_to_load_is_an_error():
    with pytest.raises(TypeError, match="chekpoint"):
        evaluate.load(str(SPACE), chekpoint="x")


def test_info(metric):
    assert metric.info.module_name == "bleurt_repro"
    assert "sellam-etal-2020-bleurt" in metric.citation
    assert [list(features) for features in metric.features] == [
        *[["predictions", "references"]] * 2,
        *[["predictions", "references", "sources"]] * 2,
        ["predictions", "sources"],
    ]
    assert metric.homepage and metric.codebase_urls


def test_the_repository_is_the_homepage(monkeypatch):
    monkeypatch.setenv("BLEURT_REPRO_SOURCE", "git+https://example.org/bleurt")
    info = evaluate.load(str(SPACE)).info
    assert info.homepage == info.codebase_urls[0] == "https://example.org/bleurt"


def test_evaluators_still_need_the_replacement_that_is_documented(metric, expected):
    """Once this fails, evaluate works with transformers 5: take the note out of the module, the card and the pages."""

    class Pipe:
        task = "text-generation"

        def __call__(self, texts, **options):
            return [[{"generated_text": text}] for text in texts]

    pipe, texts, references = Pipe(), CANDIDATES, REFERENCES
    data = datasets.Dataset.from_dict({"text": texts, "label": references})
    with pytest.raises(AttributeError, match="TFPreTrainedModel"):
        evaluate.evaluator("text-generation").compute(model_or_pipeline=pipe, data=data, metric=metric)
    [predictions_line] = [line for line in metric.inputs_description.splitlines() if "pipe(" in line]
    variables = {"pipe": pipe, "texts": texts}
    exec(predictions_line.strip(), variables)
    results = metric.compute(predictions=variables["predictions"], references=references)
    assert results["scores"] == pytest.approx(expected.scores, abs=1e-6)
    assert predictions_line.strip() in (SPACE / "README.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_load_by_name_from_any_folder(tmp_path, monkeypatch):
    path = register()
    assert path.read_bytes() == (SPACE / "bleurt_repro.py").read_bytes()
    assert register() == path
    script = (
        "import evaluate\n"
        "metric = evaluate.load('bleurt_repro')\n"
        "cat = 'The cat sat on the mat.'\n"
        "others = ['A cat was sitting on the mat.', 'The cat did not sit on the mat.', 'Stock prices fell sharply on Monday.']\n"
        "print(*metric.compute(predictions=[cat, *others], references=[cat] * 4)['scores'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    identical, reworded, negated, unrelated = map(float, done.stdout.split())
    assert identical > reworded > negated > unrelated


@pytest.mark.long
def test_as_bleurt_it_takes_the_place_of_evaluates_own_module(tmp_path):
    def run(*words):
        offline = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
        own = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**own, **offline})

    load = (
        "import evaluate\n"
        "metric = evaluate.load('bleurt', 'bleurt-base-512', module_type='metric')\n"
        "print(type(metric).__name__, metric.module_type, metric.__module__, metric.config_name)"
    )
    assert run("-c", load).returncode != 0  # evaluate's own needs the network, and the package of official BLEURT
    registered = run("-m", "bleurt_repro", "register", "--as", "bleurt")
    assert registered.returncode == 0 and str(tmp_path) in registered.stdout, registered.stderr
    loaded = run("-c", load)
    assert loaded.returncode == 0, loaded.stderr
    name, kind, module, config = loaded.stdout.split()
    assert (kind, config) == ("metric", "bleurt-base-512") and module.startswith("evaluate_modules.metrics.")
    assert name == "BleurtRepro"


def test_registering_again_brings_an_older_version_back(tmp_path, monkeypatch):
    from bleurt_repro.metric import register as module

    newer = tmp_path / "bleurt_repro.py"
    newer.write_text((SPACE / "bleurt_repro.py").read_text() + "\n# a later version\n")
    ours = register()
    monkeypatch.setattr(module, "SCRIPT", newer)
    theirs = register()
    monkeypatch.setattr(module, "SCRIPT", SPACE / "bleurt_repro.py")
    assert register() == ours != theirs
    assert [path.parent.name for path in ours.parents[1].glob("*/bleurt_repro.py")] == [ours.parent.name]


class Killed(BaseException):
    """Stands for a process that ends at this moment."""


@pytest.mark.parametrize("registered", [[], [0], [0, 1], [1, 0]])
def test_a_kill_while_registering_leaves_the_old_module_or_the_new_one(tmp_path, monkeypatch, registered):
    """Also where one of the two was registered before and is registered again, and where both are there."""
    from bleurt_repro.metric import register as module

    scripts = []
    for number in range(2):
        scripts.append(tmp_path / f"{number}" / "bleurt_repro.py")
        scripts[-1].parent.mkdir()
        scripts[-1].write_text((SPACE / "bleurt_repro.py").read_text() + f"\n# version {number}\n")
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    replace, calls = os.replace, []

    def register_version(number, killed_at=None):
        def replace_or_die(source, target):
            calls.append(target)
            if len(calls) == killed_at:
                raise Killed
            replace(source, target)

        calls.clear()
        monkeypatch.setattr(module, "SCRIPT", scripts[number])
        monkeypatch.setattr(os, "replace", replace_or_die)
        return register()

    def loaded():
        """The script that evaluate would load, as it finds it."""
        path = str(tmp_path / "modules" / "evaluate_modules")
        factory = CachedEvaluationModuleFactory("evaluate-metric--bleurt_repro", "metrics", dynamic_modules_path=path)
        return (
            Path(path) / "metrics" / "evaluate-metric--bleurt_repro" / factory.get_module().hash / "bleurt_repro.py"
        ).read_text()

    old = scripts[registered[-1]].read_text() if registered else None
    for step in range(1, 5):
        shutil.rmtree(tmp_path / "modules", ignore_errors=True)
        for number in registered:
            register_version(number)
        try:
            register_version(1, killed_at=step)
        except Killed:
            if old is not None or step > 1:
                assert loaded() in (old, scripts[1].read_text())
        else:
            assert step > 1
            break
    register_version(1)
    assert loaded() == scripts[1].read_text()
    versions = tmp_path / "modules" / "evaluate_modules" / "metrics" / "evaluate-metric--bleurt_repro"
    assert len([path for path in versions.iterdir() if len(path.name) == 64]) == 1


def test_a_disk_that_is_full_leaves_the_old_module(monkeypatch, tmp_path):
    import evaluate.loading

    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = register()
    monkeypatch.setattr("bleurt_repro.metric.register.SCRIPT", tmp_path / "bleurt_repro.py")
    (tmp_path / "bleurt_repro.py").write_text("# another version\n")
    monkeypatch.setattr(evaluate.loading.shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left on device: '.*evaluate-metric--bleurt_repro'"):
        register()
    assert path.read_bytes() == (SPACE / "bleurt_repro.py").read_bytes()
    assert not list(path.parents[2].glob("*.tmp"))


def test_the_documented_examples_hold():
    register()
    metric = evaluate.load("bleurt_repro")
    test = doctest.DocTestParser().get_doctest(metric.inputs_description, {}, "inputs", None, 0)
    assert len(test.examples) > 1
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_the_examples_of_the_card_hold():
    register()
    card = (SPACE / "README.md").read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(card.split("### Examples")[1].split("\n## ")[0], {}, "card", None, 0)
    assert len(test.examples) > 3
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
