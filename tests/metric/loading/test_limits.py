"""Checkpoints that would take any memory or time, end the process or never end: refused when they are opened, in one line."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import resource
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import transformers
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.loading.limits import StoredSize, longest_mapping, size_limit
from bleurt_repro.metric.loading.open import load_checkpoint

TEXTS = {"references": ["a cat"], "candidates": ["the dog"]}
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
TINY |= {"max_position_embeddings": 64}
# By model type: a small configuration, and what makes it large.
BOMBS = {
    "albert": (
        TINY | {"embedding_size": 16},
        [{"inner_group_num": 300_000}, {"num_hidden_groups": 300_000}, {"embedding_size": 4_000_000}],
    ),
    "bert": (TINY, [{"num_hidden_layers": 900}, {"vocab_size": 9_000_000}, {"type_vocab_size": 9_000_000}]),
    "roberta": (TINY, [{"type_vocab_size": 40_000_000}, {"type_vocab_size": 9_000_000}]),
    "electra": (TINY | {"embedding_size": 16}, [{"embedding_size": 9_000_000}]),
    "distilbert": (
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64},
        [{"n_layers": 300_000}, {"max_position_embeddings": 9_000_000, "sinusoidal_pos_embds": True}],
    ),
    "mobilebert": (
        TINY | {"embedding_size": 32, "intra_bottleneck_size": 32},
        [{"num_feedforward_networks": 300_000}, {"intra_bottleneck_size": 9_000_000}],
    ),
    "t5": (
        {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
        [{"num_decoder_layers": 300_000}, {"num_layers": 300_000}, {"d_ff": 9_000_000}],
    ),
}
LONGEST_SECONDS, MOST_MEGABYTES = 20, 200


@pytest.fixture(scope="module", params=BOMBS)
def sound(request, tiny_scorer, tmp_path_factory):
    """A model of a type, and what makes it large."""
    settings, bombs = BOMBS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = AutoTokenizer.from_pretrained(tiny_scorer)
    config = transformers.AutoConfig.for_model(request.param, vocab_size=len(tokenizer), num_labels=1, **settings)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, bombs


def test_a_model_of_its_own_size_opens_and_a_larger_one_is_refused_before_it_takes_memory(sound, tmp_path):
    folder, bombs = sound
    assert load_checkpoint(str(folder)).model.config.num_labels == 1
    copy = shutil.copytree(folder, tmp_path / "copy")
    for bomb in bombs:
        change(copy / "config.json", **json.loads((folder / "config.json").read_text()) | bomb)
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(
            ValueError, match=r"checkpoint .*copy cannot be opened \(config.json (describes|sets) "
        ) as error:
            BleurtScorer(str(copy), device="cpu")
        assert "\n" not in str(error.value)
        assert time.monotonic() - start < LONGEST_SECONDS, bomb
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MOST_MEGABYTES, bomb


def change(file, **settings):
    """Set entries of a JSON file."""
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | settings), encoding="utf-8")


@pytest.fixture
def copy(tiny_scorer, tmp_path):
    """A scorer whose tokenizer.json `transformers` reads as it is."""
    folder = shutil.copytree(tiny_scorer, tmp_path / "copy")
    (folder / "checksums.json").unlink()
    change(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    return folder


def test_many_labels_and_a_large_config_are_refused(copy):
    for count, message in (
        (20_000, "config.json has 20000 labels; a scorer has one"),
        (200_000, "config.json cannot be"),
    ):
        change(copy / "config.json", id2label={str(label): f"label {label}" for label in range(count)})
        with pytest.raises(ValueError, match=message):
            BleurtScorer(str(copy))


def large_model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(10_000, 10_000, device="meta"))


def test_the_limit_is_of_the_block_and_of_its_thread():
    with ThreadPoolExecutor() as pool, size_limit(StoredSize(1, 1)):
        assert isinstance(pool.submit(large_model).result(), torch.nn.Module)
        with pytest.raises(ValueError, match="describes a larger model than the 1 weights in 1 tensors"):
            large_model()
    large_model()


def test_a_pipe_is_not_waited_for(copy):
    for name in ("model.safetensors", "tokenizer.json", "model-00002-of-00002.safetensors", "vocab.txt"):
        path = copy / name
        content = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        with pytest.raises(ValueError, match=f"checkpoint .*copy: {name} is no plain file"):
            BleurtScorer(str(copy))
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    assert BleurtScorer(str(copy)).score(**TEXTS)


def replace_pattern(pattern, content):
    return {"normalizer": {"type": "Replace", "pattern": pattern, "content": content}}


def split_at(regex):
    return {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}}


def charsmap(content):
    return {"normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(content).decode()}}


DOUBLED = replace_pattern({"String": "a"}, "aa")["normalizer"]
TOKENIZERS = {
    "an id beyond the vocabulary": (
        {"model": {"vocab": {"cat": 10**6}}},
        "a token with id 1000000, but the model has",
    ),
    "an unknown unk_token": ({"model": {"unk_token": "[NONE]"}}, "cannot read a text"),
    "a pattern that blows up": (split_at("(a+)+$"), "cannot read a text"),
    "a normalizer that blows up": (replace_pattern({"Regex": "(a|aa)+$"}, ""), "cannot read a text"),
    "a pattern that is none": (split_at("(a"), "cannot be opened"),
    "a long replacement": (replace_pattern({"String": "a"}, "b" * 600), "up to 600 characters of one"),
    "many replacements": ({"normalizer": {"type": "Sequence", "normalizers": [DOUBLED] * 32}}, "characters of one"),
    "a long insertion": (replace_pattern({"Regex": "(?=a)"}, "b" * 600), "up to 601 characters of one"),
    "a long prefix": ({"normalizer": {"type": "Prepend", "prepend": "b" * 600}}, "up to 601 characters of one"),
    "more tokens than characters": (replace_pattern({"String": " "}, "!" * 300), "more than 4 tokens of a byte"),
    "a normalizer without a type": ({"normalizer": {}}, "cannot be opened"),
    "no character map": (charsmap(b""), "character map of its normalizer is damaged"),
    "a cut character map": (charsmap(b"\0\4\0\0abcd"), "character map of its normalizer is damaged"),
    "an endless character map": (charsmap(b"\xff\xff\xff\xffabcd"), "character map of its normalizer is damaged"),
    "a damaged character map": (
        charsmap(b"\0\4\0\0" + random.Random(0).randbytes(1024) + b"a\0"),
        "character map of its normalizer is damaged",
    ),
}


@pytest.mark.parametrize(("settings", "message"), TOKENIZERS.values(), ids=TOKENIZERS)
def test_a_tokenizer_that_does_harm_is_refused_in_one_line(copy, settings, message, capsys):
    tokenizer = json.loads((copy / "tokenizer.json").read_text(encoding="utf-8"))
    for name, value in settings.items():
        if name == "model":
            tokenizer["model"]["vocab"] |= value.get("vocab", {})
            tokenizer["model"] |= {key: entry for key, entry in value.items() if key != "vocab"}
        else:
            tokenizer[name] = value
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    start = time.monotonic()
    with pytest.raises(ValueError, match=message) as error:
        BleurtScorer(str(copy))
    assert str(error.value).startswith(f"checkpoint {copy}: its tokenizer ") and "\n" not in str(error.value)
    assert time.monotonic() - start < LONGEST_SECONDS
    (copy.parent / "texts.txt").write_text("a cat\n")
    texts = str(copy.parent / "texts.txt")
    with pytest.raises(SystemExit) as ended:
        main(["score", "-r", texts, "-c", texts, "--checkpoint", str(copy)])
    printed = capsys.readouterr()
    assert ended.value.code not in (0, None) and printed.out == ""
    assert len(printed.err.splitlines()) == 1 and message in printed.err


def test_a_text_that_a_tokenizer_cannot_read_is_one_line(copy):
    change(copy / "tokenizer.json", **split_at("(x+)+$"))
    scorer = BleurtScorer(str(copy), device="cpu")
    with pytest.raises(ValueError, match=r"checkpoint copy: its tokenizer cannot read a text \(Onig: .*retry-limit"):
        scorer.score(references=["a cat"], candidates=["x" * 40 + "y"])


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])
def test_the_character_maps_of_sentencepiece_are_sound(rule):
    content = character_map(rule)
    assert longest_mapping(base64.b64encode(content).decode()) == 33  # the bytes of U+FDFA in letters
    size = int.from_bytes(content[:4], "little")
    for cut in (content[:3], content[: size // 2], content[: 4 + size]):
        with pytest.raises(ValueError, match="is damaged"):
            longest_mapping(base64.b64encode(cut).decode())


def character_map(rule: str) -> bytes:
    """Return one of the maps that SentencePiece has built in."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a cat sat on the mat", "it rains again today"] * 20),
        model_writer=model,
        vocab_size=25,
        hard_vocab_limit=False,
        normalization_rule_name=rule,
        minloglevel=2,
    )
    return sentencepiece_model_pb2.ModelProto.FromString(model.getvalue()).normalizer_spec.precompiled_charsmap
