"""The code of docs/how-to/pandas-and-trainer.md runs as it stands there, with the reader's table, model and data."""

from __future__ import annotations

import pytest

from bleurt_repro import BleurtScorer
from tests.conftest import ROOT
from tests.test_documents import blocks

PAGE = ROOT / "docs" / "how-to" / "pandas-and-trainer.md"
REFERENCES = ["It rains.", "The cat sleeps.", "Hello.", "Good night."]


@pytest.fixture(scope="module")
def recipes() -> tuple[str, str]:
    of_pandas, of_the_trainer = (block.body for block in blocks(PAGE) if block.language == "python")
    return of_pandas, of_the_trainer


@pytest.fixture
def table():
    import pandas as pd

    candidates = ["It is raining.", "A cat is asleep.", "Stock prices fell.", "Good night."]
    return pd.DataFrame({"reference": REFERENCES, "candidate": candidates}, index=[7, 3, 5, 1])


def test_scores_become_a_column_in_the_order_of_the_rows(recipes, table):
    exec(recipes[0], {"table": table})
    expected = BleurtScorer().score(references=list(table["reference"]), candidates=list(table["candidate"]))
    assert table["bleurt"].tolist() == expected


def test_tables_and_missing_texts_are_refused(table):
    scorer = BleurtScorer()
    with pytest.raises(TypeError, match="DataFrame: pass one column"):
        scorer.score(references=table, candidates=table)
    table.loc[3, "candidate"] = None
    with pytest.raises(TypeError, match=r"candidates\[1\]"):
        scorer.score(references=table["reference"], candidates=table["candidate"])


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
    exec(recipes[1], names)
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
