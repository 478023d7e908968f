"""A BERT or MPNet scorer opened without `transformers`: the same tokens and scores, or left to `transformers`."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward.encoding import PairEncoder
from bleurt_repro.metric.forward.packed import PackedForward
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER
from bleurt_repro.metric.loading.light import open_light
from bleurt_repro.metric.loading.open import load_checkpoint, open_checkpoint, open_trainable
from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer
from bleurt_repro.training.finetune import training_layout
from tests.conftest import make_tiny_scorer
from tests.tiny_robertas import make_tiny_encoder

MINI = EMBEDDED_FOLDER / "bleurt-repro-mini"
TEXTS = {
    "references": ["The cat sat on the mat.", "", "[SEP] [CLS] ünïcode Σας \u200b 猫", "word " * 400],
    "candidates": ["A cat was sitting on the mat.", "cat", "[MASK] \U0001f408 naïve", "Word, " * 300],
}


def opened(folder):
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return open_light(folder, settings)


@pytest.fixture(scope="module", params=["bleurt-repro-mini", "bleurt-repro-base"])
def both(request):
    """A checkpoint as opened without `transformers`, and by `transformers`."""
    return open_checkpoint(request.param, light=True).models[0].light, load_checkpoint(request.param)


@pytest.fixture(scope="module")
def tiny_mpnet(tmp_path_factory):
    model, tokenizer = open_trainable(make_tiny_encoder(tmp_path_factory.mktemp("encoder"), "mpnet"))
    prepare_scorer(model, tokenizer, training_layout(model, tokenizer))
    folder = tmp_path_factory.mktemp("mpnet")
    save_scorer(model, tokenizer, folder, max_shard_size="50KB")
    return folder


def test_scores_do_not_import_what_they_do_not_use(tmp_path):
    (tmp_path / "texts.txt").write_text("a cat\nthe cat\n")
    code = """if True:
        import sys, torch
        from bleurt_repro import BleurtScorer
        from bleurt_repro.metric.bulk.scoring import ScoreOptions, score_files
        state = torch.get_rng_state()
        for name in ("bleurt-repro-mini", "bleurt-repro-base"):
            BleurtScorer(name, device="cpu").score(references=["a cat"], candidates=["the cat"])
        score_files(ScoreOptions(), references="texts.txt", candidates="texts.txt", output="scores.txt")
        assert torch.equal(state, torch.get_rng_state()), "random numbers were drawn"
        unused = "transformers huggingface_hub torch._dynamo datasets evaluate pandas matplotlib sacrebleu onnxruntime gradio"
        sys.exit(str([name for name in unused.split() if name in sys.modules] or ""))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "[" not in done.stderr and "Error" not in done.stderr, done.stderr
    assert len((tmp_path / "scores.txt").read_text().split()) == 2


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("bleurt-repro-mini", "float32"), ("tiny", "bfloat16"), ("tiny mpnet in shards", "float32")],
)
@pytest.mark.filterwarnings("ignore")
def test_scores_are_those_of_the_weights_that_transformers_opens(name, dtype, tiny_scorer, tiny_mpnet):
    folders = {"tiny": str(tiny_scorer), "tiny mpnet in shards": str(tiny_mpnet)}
    scorer = BleurtScorer(folders.get(name, name), device="cpu", dtype=dtype)
    own = scorer.members[0].forward._checkpoint
    assert own.is_light
    scores = scorer.score(**TEXTS)
    architecture = "MPNetForSequenceClassification" if "mpnet" in name else "BertForSequenceClassification"
    assert type(scorer.model).__name__ == architecture and not own.is_light
    assert scorer.score(**TEXTS) == scores and scorer.model.dtype == getattr(torch, dtype)
    with torch.inference_mode():
        getattr(scorer.model.classifier, "out_proj", scorer.model.classifier).bias.add_(1)
    assert scorer.score(**TEXTS) == pytest.approx([score + 1 for score in scores], abs=0.02)


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_tokens_are_those_of_transformers(both, texts):
    light, full = both
    made, expected = (PairEncoder(one, Layout()).tokenize(texts) for one in (light.tokenizer, full.tokenizer))
    assert made == expected


def test_what_the_encoder_asks_of_a_tokenizer_is_the_same(both):
    light, full = (PairEncoder(one.tokenizer, Layout()) for one in both)
    for name in ("_first", "_separator", "_unknown", "_longest_word", "scripts"):
        assert getattr(light, name) == getattr(full, name)
    assert light.tokenizer.pad_token_id == full.tokenizer.pad_token_id
    assert light.tokenizer.get_vocab() == full.tokenizer.get_vocab()
    with torch.inference_mode():
        pairs = light.encode_all(list(zip(*TEXTS.values(), strict=True))[:3])
        assert torch.equal(PackedForward(both[0].model)(pairs), PackedForward(both[1].model)(pairs))


def test_a_missing_or_additional_shard_is_left_to_transformers(tiny_mpnet, tmp_path):
    folder = shutil.copytree(tiny_mpnet, tmp_path / "scorer")
    assert opened(folder) is not None
    (folder / "more.safetensors").touch()
    assert opened(folder) is None
    (folder / "more.safetensors").unlink()
    sorted(folder.glob("model-*.safetensors"))[0].unlink()
    assert opened(folder) is None


def changed(file, **settings):
    def change(folder):
        path = folder / file
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | settings))

    return change


def changed_weights(change):
    def write(folder):
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})

    return write


def put_nan(weights):
    weights["classifier.bias"] = torch.tensor([math.nan])


def cut(weights):
    weights["classifier.bias"] = torch.zeros(2)


OTHERS = {
    "another architecture": changed("config.json", architectures=["BertForMaskedLM"]),
    "a decoder": changed("config.json", is_decoder=True),
    "relative positions": changed("config.json", position_embedding_type="relative_key"),
    "another activation": changed("config.json", hidden_act="relu"),
    "a setting left out": changed("config.json", layer_norm_eps=None),
    "three labels": changed("config.json", id2label={"0": "a", "1": "b", "2": "c"}),
    "heads that do not divide": changed("config.json", num_attention_heads=3),
    "quantised": changed("config.json", quantization_config={}),
    "another tokenizer": changed("tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast"),
    "cased": changed("tokenizer_config.json", do_lower_case=False),
    "accents": changed("tokenizer_config.json", strip_accents=True),
    "another special token": changed("tokenizer_config.json", sep_token="</s>"),
    "further tokens": changed("tokenizer_config.json", extra_special_tokens=["<x>"]),
    "no normalisation": changed("tokenizer.json", normalizer=None),
    "further tokens in the vocabulary": changed("tokenizer.json", added_tokens=[]),
    "no tokenizer.json": lambda folder: (folder / "tokenizer.json").unlink(),
    "a file of tokens": lambda folder: (folder / "added_tokens.json").write_text("{}"),
    "a weight missing": changed_weights(lambda weights: weights.pop("classifier.bias")),
    "a weight too many": changed_weights(lambda weights: weights.update(more=torch.zeros(1))),
    "a weight of another shape": changed_weights(cut),
    "a damaged file": lambda folder: (folder / "model.safetensors").write_bytes(b"no"),
    "shards": lambda folder: (folder / "model.safetensors.index.json").write_text("{}"),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_what_is_no_plain_scorer_is_left_to_transformers(change, tiny_scorer, tmp_path):
    folder = shutil.copytree(tiny_scorer, tmp_path / "scorer")
    assert opened(folder) is not None
    change(folder)
    assert opened(folder) is None


def test_weights_are_checked_in_the_arithmetic_that_they_are_scored_in(tmp_path):
    folder = make_tiny_scorer(tmp_path / "scorer")
    (folder / "checksums.json").unlink()
    changed_weights(lambda weights: weights["classifier.bias"].fill_(1e6))(folder)
    assert open_checkpoint(str(folder), light=True).models[0].is_light
    for light in (True, False):
        with pytest.raises(ValueError, match="NaN or infinite weights in classifier.bias: it cannot score"):
            open_checkpoint(str(folder), torch.float16, light)
    changed_weights(put_nan)(folder)
    with pytest.raises(ValueError, match="NaN or infinite weights in classifier.bias: it cannot score"):
        open_checkpoint(str(folder), light=True)


def test_a_folder_that_was_written_over_is_not_mixed_with_what_was_opened(tmp_path):
    folder = make_tiny_scorer(tmp_path / "scorer")
    scorer = BleurtScorer(str(folder), device="cpu")
    scorer.score(**{name: texts[:1] for name, texts in TEXTS.items()})
    make_tiny_scorer(folder, spread=0.2)
    with pytest.raises(ValueError, match="is not what it was when it was opened: open it again"):
        assert scorer.model
