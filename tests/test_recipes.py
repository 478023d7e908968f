"""The code of the pages on other tools runs as it stands there, with the reader's table, model, data and task."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys

import pytest

from bleurt_repro import BleurtScorer, register
from tests.conftest import ROOT
from tests.pages import read_blocks

HOW_TO = ROOT / "docs" / "how-to"
REFERENCES = ["It rains.", "The cat sleeps.", "Hello.", "Good night."]
CANDIDATES = ["It is raining.", "A cat is asleep.", "Stock prices fell.", "Good night."]
# extra of the tools that nothing else needs
EXTRA = 'pip install "bleurt-repro[tools]"'


def python_blocks(page: str) -> list[str]:
    """The Python code of a page, in order, without what it shows as a file."""
    return [block.body for block in read_blocks(HOW_TO / page) if block.language == "python" and not block.kind]


def files(page: str) -> dict[str, str]:
    """What a page shows as files, by their names."""
    return {block.note: block.body for block in read_blocks(HOW_TO / page) if block.kind == "file"}


@pytest.fixture
def expected():
    return BleurtScorer().score(references=REFERENCES, candidates=CANDIDATES)


@pytest.fixture
def as_module(tmp_path, monkeypatch):
    """Import code as a module of its own, as a reader's file is."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, code: str):
        (tmp_path / f"{name}.py").write_text(code)
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return make


# pandas, polars and the Trainer


@pytest.fixture(scope="module")
def recipes() -> list[str]:
    return python_blocks("pandas-and-trainer.md")


@pytest.fixture
def table():
    import pandas as pd

    return pd.DataFrame({"reference": REFERENCES, "candidate": CANDIDATES}, index=[7, 3, 5, 1])


def test_scores_become_a_column_in_the_order_of_the_rows(recipes, table, expected):
    exec(recipes[0], {"table": table})
    assert table["bleurt"].tolist() == expected


def test_tables_and_missing_texts_are_refused(table):
    scorer = BleurtScorer()
    with pytest.raises(TypeError, match="DataFrame: pass one column"):
        scorer.score(references=table, candidates=table)
    table.loc[3, "candidate"] = None
    with pytest.raises(TypeError, match=r"candidates\[1\]"):
        scorer.score(references=table["reference"], candidates=table["candidate"])


def test_columns_of_polars(recipes, expected):
    pl = pytest.importorskip("polars", reason=f"needs polars: {EXTRA}")
    names = {"table": pl.DataFrame({"reference": REFERENCES, "candidate": CANDIDATES})}
    exec(recipes[1], names)
    assert names["table"]["bleurt"].to_list() == expected

    several = pl.DataFrame({"reference": [[text, "Hello."] for text in REFERENCES], "candidate": CANDIDATES})
    both = BleurtScorer().score(references=several["reference"], candidates=several["candidate"])
    assert all(one >= other - 1e-5 for one, other in zip(both, expected, strict=True)) and both != expected
    scorer = names["scorer"]
    for refused in (several, several.lazy()):
        with pytest.raises(TypeError, match="Frame: pass one column"):
            scorer.score(references=refused, candidates=refused)
    with pytest.raises(TypeError, match=r"candidates\[0\]"):
        scorer.score(references=["a"], candidates=pl.Series([None], dtype=pl.String))


def test_a_trainer_keeps_the_checkpoint_with_the_best_score(recipes, tmp_path, monkeypatch):
    from datasets import Dataset
    from transformers import AutoTokenizer, DataCollatorForSeq2Seq, T5Config, T5ForConditionalGeneration

    monkeypatch.chdir(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "metric" / "checkpoint" / "bleurt-repro-mini")
    special = {
        "decoder_start_token_id": tokenizer.pad_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    model = T5ForConditionalGeneration(
        T5Config(vocab_size=len(tokenizer), d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2, **special)
    )
    ids = tokenizer(REFERENCES)["input_ids"]
    data = Dataset.from_dict({"input_ids": ids, "labels": ids})
    collator = DataCollatorForSeq2Seq(tokenizer, model)
    names = {
        "tokenizer": tokenizer,
        "model": model,
        "train_data": data,
        "eval_data": data,
        "data_collator": collator,
    }
    exec(recipes[2], names)
    logged = [entry["eval_bleurt"] for entry in names["trainer"].state.log_history if "eval_bleurt" in entry]
    assert len(logged) == 3
    assert names["trainer"].state.best_metric == max(logged)

    # labels in place of generated texts: all identical, so the score is that of the references with themselves
    import numpy as np
    from transformers import EvalPrediction

    width = max(len(row) for row in ids)
    labels = np.array([row + [-100] * (width - len(row)) for row in ids])
    found = names["compute_metrics"](EvalPrediction(predictions=labels, label_ids=labels))["bleurt"]
    lowered = [text.lower() for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]
    expected = BleurtScorer().compute(references=lowered, candidates=lowered).mean_score
    assert found == pytest.approx(expected, abs=1e-5)


# lm-eval, inspect_ai, torchmetrics


@pytest.fixture
def lm_eval(tmp_path, monkeypatch):
    """Run a task of lm-eval in a folder of the page's files, on a model that generates the candidates."""
    library = pytest.importorskip("lm_eval", reason=f"needs lm-eval: {EXTRA}")
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Candidates(LM):
        def generate_until(self, requests, disable_tqdm=False):
            return [CANDIDATES[REFERENCES.index(request.doc["summary"])] for request in requests]

        def loglikelihood(self, requests, disable_tqdm=False):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    monkeypatch.chdir(tmp_path)
    for name, text in files("evaluation-tools.md").items():
        (tmp_path / name).write_text(text)
    rows = [{"document": f"Text {i}.", "summary": reference} for i, reference in enumerate(REFERENCES)]
    (tmp_path / "my_summaries.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def run(name: str = "my_summaries", **replaced: str) -> dict[str, float]:
        task = tmp_path / "my_summaries.yaml"
        text = task.read_text()
        for old, new in replaced.items():
            assert old in text
            text = text.replace(old, new)
        task.write_text(text)
        manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
        found = library.simple_evaluate(Candidates(), tasks=[name], task_manager=manager, log_samples=False)
        return found["results"][name]

    return run


def test_a_task_of_lm_eval(lm_eval, expected):
    found = lm_eval()
    assert found["bleurt,none"] == pytest.approx(sum(expected) / len(expected), abs=1e-5)


def test_a_task_of_lm_eval_with_a_standard_error(lm_eval, expected):
    import statistics

    found = lm_eval(
        **{
            "!function my_metric.process_results": "!function my_metric_per_text.process_results",
            "!function my_metric.mean_bleurt": "mean",
        }
    )
    assert found["bleurt,none"] == pytest.approx(statistics.mean(expected), abs=1e-5)
    assert found["bleurt_stderr,none"] == pytest.approx(statistics.stdev(expected) / 2, abs=1e-5)


def test_a_task_of_lm_eval_that_names_the_metric(lm_eval, expected):
    register()
    found = lm_eval("with_hf_evaluate")
    assert found["mean_score,none"] == pytest.approx(sum(expected) / len(expected), abs=1e-5)
    assert found["signature,none"] == BleurtScorer().signature


# What tasks of lm-eval, such as meqsum, do.
AS_THEIRS = """\
import evaluate

bleurt = evaluate.load("bleurt", "bleurt-base-512", module_type="metric")


def process_results(doc, results):
    return {"bleurt": bleurt.compute(predictions=[results[0]], references=[doc["summary"]])["scores"][0]}
"""


def test_a_task_of_lm_eval_that_loads_bleurt_by_name(lm_eval, tmp_path, tiny_scorer):
    register("bleurt")
    shutil.copytree(tiny_scorer, tmp_path / "bleurt-base-512")
    (tmp_path / "their_metric.py").write_text(AS_THEIRS)
    found = lm_eval(
        **{
            "!function my_metric.process_results": "!function their_metric.process_results",
            "!function my_metric.mean_bleurt": "mean",
        }
    )
    scores = BleurtScorer(str(tiny_scorer)).score(references=REFERENCES, candidates=CANDIDATES)
    assert found["bleurt,none"] == pytest.approx(sum(scores) / len(scores), abs=1e-5)


def test_a_scorer_of_inspect_ai(as_module, expected, tmp_path):
    inspect_ai = pytest.importorskip("inspect_ai", reason=f"needs inspect_ai: {EXTRA}")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.solver import solver

    @solver
    def answers():
        async def solve(state, generate):  # in place of a model, whose tokens are counted by a file from the network
            state.output = ModelOutput.from_content("none", state.input_text)
            return state

        return solve

    bleurt = as_module("inspect_scorer", python_blocks("evaluation-tools.md")[0]).bleurt
    samples = [Sample(input=text, target=reference) for text, reference in zip(CANDIDATES, REFERENCES, strict=True)]
    samples[1].target = [REFERENCES[1], CANDIDATES[1]]
    task = inspect_ai.Task(dataset=samples, solver=answers(), scorer=bleurt())
    [log] = inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path / "logs"), display="none")
    assert log.status == "success"
    scores = [sample.scores["bleurt"] for sample in log.samples]
    values = [score.value for score in scores]
    assert values[:1] + values[2:] == pytest.approx(expected[:1] + expected[2:], abs=1e-5)
    assert values[1] > expected[1], "of several targets the best counts"
    assert {score.metadata["signature"] for score in scores} == {BleurtScorer().signature}
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(sum(values) / 4, abs=1e-5)


@pytest.fixture
def torchmetric(as_module):
    pytest.importorskip("torchmetrics", reason=f"needs torchmetrics: {EXTRA}")
    return as_module("torchmetric", python_blocks("evaluation-tools.md")[1]).Bleurt


def test_a_metric_of_torchmetrics(torchmetric, expected):
    import pickle

    from torchmetrics import MetricCollection
    from torchmetrics.text import CHRFScore

    metric = torchmetric()
    assert float(metric(CANDIDATES[:3], REFERENCES[:3])) == pytest.approx(sum(expected[:3]) / 3, abs=1e-5)
    metric.update(CANDIDATES[3:], [[REFERENCES[3]]])
    assert float(metric.compute()) == pytest.approx(sum(expected) / 4, abs=1e-5)
    assert float(pickle.loads(pickle.dumps(metric)).compute()) == float(metric.compute())
    metric.reset()
    assert int(metric.count) == 0

    both = MetricCollection({"bleurt": metric, "chrf": CHRFScore()})
    both.update(CANDIDATES, [[text] for text in REFERENCES])
    assert float(both.compute()["bleurt"]) == pytest.approx(sum(expected) / 4, abs=1e-5)


# Each process scores its half; both compute the mean of all.
TWO_PROCESSES = """
import json, sys
import torch.distributed as distributed
from torchmetric import Bleurt

distributed.init_process_group("gloo")
rank = distributed.get_rank()
references, candidates = json.loads(sys.argv[1])
metric = Bleurt()
metric.update(candidates[rank::2], references[rank::2])
print("mean", float(metric.compute()))
"""


@pytest.mark.long
def test_a_metric_of_torchmetrics_in_two_processes(torchmetric, expected, tmp_path):
    (tmp_path / "two.py").write_text(TWO_PROCESSES)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    texts = json.dumps([REFERENCES[:3], CANDIDATES[:3]])
    done = subprocess.run([*launch, "two.py", texts], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    means = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("mean ")]
    assert means == pytest.approx([sum(expected[:3]) / 3] * 2, abs=1e-5)


# Notebooks


def test_a_notebook_shows_results_as_tables():
    formatters = pytest.importorskip("IPython.core.formatters", reason=f"needs IPython: {EXTRA}")
    from bleurt_repro.metric.compare.compare import compare

    scorer = BleurtScorer()
    result = scorer.compute(references=REFERENCES, candidates=CANDIDATES)
    comparison = compare(scorer, REFERENCES, {"<b>A": CANDIDATES, "B": REFERENCES}, resamples=10)
    for value, texts in ((result, [f"{result.scores[0]:.4f}"]), (comparison, ["&lt;b&gt;A", "two-sided p"])):
        shown, _ = formatters.DisplayFormatter().format(value)
        assert shown["text/plain"] == repr(value) and len(repr(value)) < 300
        assert shown["text/html"].count("<table>") == shown["text/html"].count("</table>") > 0
        assert all(text in shown["text/html"] for text in texts) and "<b>" not in shown["text/html"]


# choosing among samples: generate, mbrs and TRL


@pytest.fixture(scope="module")
def choosing() -> list[str]:
    return python_blocks("choose.md")


@pytest.fixture(scope="module")
def tiny_language_model(tmp_path_factory):
    """Return a GPT-2 of random weights, and its tokenizer of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = ["<pad>", "<eos>", "<unk>", *dict.fromkeys(" ".join([*REFERENCES, *CANDIDATES]).split())]
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    config = GPT2Config(
        vocab_size=len(words), n_embd=16, n_layer=1, n_head=2, n_positions=128, eos_token_id=1, bos_token_id=1
    )
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("gpt2")
    GPT2LMHeadModel(config).save_pretrained(folder)
    return GPT2LMHeadModel.from_pretrained(folder), tokenizer


def test_samples_of_generate_are_chosen_from(choosing, tiny_language_model):
    model, tokenizer = tiny_language_model
    names = {"model": model, "tokenizer": tokenizer, "sources": REFERENCES[:2]}
    exec(choosing[0].replace("32", "6").replace("max_new_tokens=64", "max_new_tokens=12"), names)
    assert [len(segment) for segment in names["samples"]] == [6, 6]
    for segment, text in zip(names["samples"], names["best"], strict=True):
        matrix = names["scorer"].matrix(segment, segment)
        expected = [(row.sum() - row[i]) / 5 for i, row in enumerate(matrix)]
        assert expected[segment.index(text)] == pytest.approx(max(expected), abs=1e-5)


def test_the_metric_of_mbrs_gives_its_decoders_the_matrix(choosing, as_module, monkeypatch):
    """mbrs cannot be installed beside this package, so its protocol stands in: a class with `pairwise_scores`."""
    from abc import ABC, abstractmethod
    from types import ModuleType, SimpleNamespace

    class Metric(ABC):
        Config = SimpleNamespace

        def __init__(self, cfg):
            self.cfg = cfg

        @abstractmethod
        def score(self, hypothesis, reference, source=None): ...

        def expected_scores(self, hypotheses, references, source=None):
            return self.pairwise_scores(hypotheses, references, source).mean(dim=1)

    package, metrics = ModuleType("mbrs"), ModuleType("mbrs.metrics")
    metrics.Metric, metrics.register = Metric, lambda name: lambda registered: registered
    monkeypatch.setitem(sys.modules, "mbrs", package)
    monkeypatch.setitem(sys.modules, "mbrs.metrics", metrics)
    metric = as_module("mbrs_metric", choosing[1]).Bleurt(Metric.Config())
    expected = [metric.score("It rains.", reference) for reference in REFERENCES]
    assert metric.pairwise_scores(["It rains."], REFERENCES)[0].tolist() == pytest.approx(expected, abs=1e-5)
    assert int(metric.expected_scores(CANDIDATES, ["It rains."]).argmax()) == 0


def test_trl_trains_with_the_metric_as_its_reward(choosing, tiny_language_model, tmp_path, monkeypatch, expected):
    pytest.importorskip("trl", reason=EXTRA)
    from datasets import Dataset

    monkeypatch.chdir(tmp_path)
    model, tokenizer = tiny_language_model
    dataset = Dataset.from_dict({"prompt": CANDIDATES, "reference": REFERENCES})
    code = choosing[2].replace("max_steps=100", "max_steps=1, use_cpu=True, bf16=False, max_completion_length=8")
    names = {"model": model, "tokenizer": tokenizer, "dataset": dataset}
    exec(code, names)
    assert names["trainer"].state.global_step == 1
    rewards = [entry["reward"] for entry in names["trainer"].state.log_history if "reward" in entry]
    assert rewards and all(reward == reward for reward in rewards)
    # completions are strings, or the messages of a conversation
    messages = [[{"role": "assistant", "content": text}] for text in CANDIDATES]
    for completions in (CANDIDATES, messages):
        scores = names["bleurt_reward"](completions=completions, reference=REFERENCES, prompts=CANDIDATES)
        assert scores == pytest.approx(expected, abs=1e-5)
