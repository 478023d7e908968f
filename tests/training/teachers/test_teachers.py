"""Teachers: each script learns, measures, goes on after a kill, and says what is wrong with its input."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertModel,
)

from bleurt_repro.training.run import Stopwatch
from bleurt_repro.training.teachers import entailment, masked_lm, translator
from bleurt_repro.training.teachers.common import set_dropout
from tests.tiny_teachers import SENTENCES, make_masked_lm

FAST = ["--save_steps", "1000", "--logging_steps", "1000", "--disable_tqdm", "true"]


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the next training after so many steps, as a signal would."""

    def stop(self, args, state, control, **_) -> None:
        if state.global_step == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(Stopwatch, "on_step_end", stop)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT without a head."""
    folder = make_masked_lm(tmp_path_factory.mktemp("encoder"))
    BertModel.from_pretrained(folder).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    path.write_text("\n".join([*SENTENCES, "", SENTENCES[0]]) + "\n", encoding="utf-8")
    return path


def masked_lm_options(encoder: Path, text_file: Path, output: Path, *more: str) -> list[str]:
    options = f"--model {encoder} --train_file {text_file} --output_dir {output} --held_out_texts 2 --max_length 48"
    return [*options.split(), *FAST, "--learning_rate", "1e-2", "--per_device_train_batch_size", "10", *more]


class TestMaskedLM:
    @pytest.mark.long
    def test_learns_its_text(self, encoder: Path, text_file: Path, tmp_path: Path) -> None:
        masked_lm.main(masked_lm_options(encoder, text_file, tmp_path, "--max_steps", "300", "--dropout", "0"))

        model = AutoModelForMaskedLM.from_pretrained(tmp_path)
        tokenizer = AutoTokenizer.from_pretrained(tmp_path)
        arguments = masked_lm.MaskedLMArguments(str(encoder), str(text_file), held_out_texts=2)
        texts, held_out, _ = masked_lm.read_texts(arguments, seed=1)
        assert not set(texts) & set(held_out)
        known = masked_lm.masked_accuracy(
            model, masked_lm.encode(texts, tokenizer, 48), masked_lm.WordMasker(tokenizer), seed=5, batch_size=4
        )
        assert all(figures["accuracy"] > 30 for figures in known.values())  # 3 before training
        assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
        assert len(tokenizer("word " * 60)["input_ids"]) > 48  # what the run cut to does not stay with the tokenizer

        found = results(tmp_path)
        assert found["quality"]["masked_accuracy"]["mask_filling_scattered"]["masks"] > 1
        assert found["data"]["train_texts"] == 10
        assert found["data"]["left_out"] == {"unreadable": 0, "blank or repeated": 2, "beyond max_texts": 0}
        assert (found["steps"], found["examples"], found["seed"]) == (300, 3000, 1)
        assert found["settings"]["train_file"] == "sentences.txt"

    def test_goes_on_after_a_kill(
        self, encoder: Path, text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = masked_lm_options(encoder, text_file, tmp_path, "--max_steps", "8", "--save_steps", "2")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            kill_at(5, patch)
            masked_lm.main(options)
        assert not (tmp_path / "results.json").exists()
        (tmp_path / "checkpoint-6").mkdir()  # a checkpoint that the kill left unfinished

        with pytest.raises(ValueError, match="holds a run already .checkpoint-4.: add --resume"):
            masked_lm.main(options)
        masked_lm.main([*options, "--resume"])
        state = json.loads((tmp_path / "checkpoint-8" / "trainer_state.json").read_text())
        assert state["global_step"] == results(tmp_path)["steps"] == 8

    def test_new_head_begins_with_the_frequencies_of_tokens(self, encoder: Path, text_file: Path) -> None:
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        texts = masked_lm.encode([*SENTENCES], tokenizer, 48)
        bias = masked_lm.open_masked_lm(str(encoder), tokenizer, texts).get_output_embeddings().bias
        often, never = tokenizer.convert_tokens_to_ids(["the", "##q"])
        assert bias[often] > bias[never] + 1
        assert torch.logsumexp(bias, 0).item() == pytest.approx(0, abs=1e-4)

    def test_masks_whole_words_and_no_more_than_allowed(self, encoder: Path) -> None:
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        masker = masked_lm.WordMasker(tokenizer, max_masks=5)
        texts = masked_lm.encode(SENTENCES, tokenizer, 64)
        batch = masker([texts[i] for i in range(len(texts))])
        masked = batch["labels"] != masked_lm.NO_LABEL
        assert torch.equal(masked, batch["input_ids"] == tokenizer.mask_token_id)
        assert 1 <= masked.sum(dim=1).min() and masked.sum(dim=1).max() <= 5
        for row, text in enumerate(texts):
            words = torch.tensor(text["word"])
            for word in set(text["word"]):
                assert len(set(masked[row, : len(words)][words == word].tolist())) == 1

    def test_head_at_the_masks_only_gives_the_same_logits(self, encoder: Path) -> None:
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        model = masked_lm.open_masked_lm(str(encoder), tokenizer, masked_lm.encode(SENTENCES, tokenizer, 64)).eval()
        inputs = tokenizer(SENTENCES[:3], padding=True, return_tensors="pt")
        wanted = inputs["input_ids"] % 3 == 0
        torch.testing.assert_close(masked_lm.logits_at(model, inputs, wanted), model(**inputs).logits[wanted])

    @pytest.mark.parametrize(
        ("more", "error", "message"),
        [
            (["--held_out_texts", "12"], ValueError, "12 different texts, and 12 are to be held out"),
            (["--train_file", "absent.txt"], FileNotFoundError, "absent.txt"),
            (["--model", "./absent"], FileNotFoundError, "encoder: there is no folder ./absent"),
            (["--mask_rate", "1"], ValueError, "unknown option --mask_rate"),
            (["--max_length", "65"], ValueError, "max_length 65 is more than the 64 tokens that"),
        ],
    )
    def test_errors(self, encoder: Path, text_file: Path, tmp_path: Path, more, error, message: str) -> None:
        with pytest.raises(error, match=message):
            masked_lm.main(masked_lm_options(encoder, text_file, tmp_path, *more))


def entailment_rows() -> list[str]:
    """Pairs whose label can be told by one word of the hypothesis."""
    rows = []
    for number in range(60):
        premise = f"The museum, {number}."
        for label, word in (("entailment", "river"), ("neutral", "because"), ("contradiction", "never")):
            rows.append(f"{'own' if number % 2 else 'other'}\ttrain\t{label}\t{premise}\tthe {word}")
        rows.append(f"two\ttrain\t{'entailment' if number % 2 else 'not_entailment'}\t{premise}\tthe book")
    return [*rows, "hard\ttest\tcontradiction\tThe blue fence.\tnever"]


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("\n".join(entailment_rows()) + "\n", encoding="utf-8")
    return path


def entailment_options(encoder: Path, pairs_file: Path, output: Path, *more: str) -> list[str]:
    options = f"--model {encoder} --pairs_file {pairs_file} --output_dir {output} --held_out_pairs 20"
    options += " --held_out_source own --test_sources hard --learning_rate 3e-3 --num_train_epochs 15 --max_length 64"
    return [*options.split(), *FAST, *more]


class TestEntailment:
    def test_learns_and_measures_on_other_premises(self, encoder: Path, pairs_file: Path, tmp_path: Path) -> None:
        entailment.main(entailment_options(encoder, pairs_file, tmp_path))
        found = results(tmp_path)
        assert found["quality"]["held_out"]["accuracy"] > 90
        assert found["quality"]["held_out"]["pairs"] == 21  # three a premise
        assert found["quality"]["hard"]["pairs"] == 1
        assert found["data"]["train_pairs"] == {"own": 69, "other": 90}
        assert found["data"]["left_out"]["two-label sources"] == 60
        config = AutoModelForSequenceClassification.from_pretrained(tmp_path).config
        assert config.id2label == {0: "entailment", 1: "neutral", 2: "contradiction"}
        assert AutoTokenizer.from_pretrained(tmp_path).is_fast

    def test_goes_on_after_a_kill(
        self, encoder: Path, pairs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = entailment_options(encoder, pairs_file, tmp_path, "--max_steps", "4", "--save_steps", "2")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            kill_at(3, patch)
            entailment.main(options)
        entailment.main([*options, "--resume"])
        assert results(tmp_path)["steps"] == 4

    @pytest.mark.parametrize("seed", range(5))
    def test_no_premise_on_both_sides(self, pairs_file: Path, seed: int) -> None:
        arguments = entailment.EntailmentArguments(
            "", str(pairs_file), held_out_pairs=30, test_sources=["hard"], source_shares=["other=0.5"]
        )
        pairs = entailment.read_table(pairs_file, entailment.COLUMNS)
        split = entailment.split_pairs(pairs, arguments, seed)
        measured = {pair["premise"] for pair in [*split.held_out, *split.tests["hard"]]}
        assert len(split.held_out) >= 30
        assert not measured & {pair["premise"] for pair in split.train}
        kept = len(split.train) + len(split.held_out) + len(split.tests["hard"]) + split.left_out.total()
        assert kept == len(pairs)
        assert 10 < split.left_out["beyond the source's share"] < 60

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["--test_sources", "absent"], "no source absent in .*; it has hard, other, own, two"),
            (["--source_shares", "own=much"], "--source_shares own=much: expected a number"),
            (["--source_shares", "own"], "--source_shares own: expected NAME=VALUE"),
            (["--held_out_pairs", "90"], "90 pairs are to be held out of 90, and some must remain"),
            (["--held_out_source", "two"], "source two has two labels and cannot be measured on"),
            (["--source_shares", "own=0", "other=0"], "nothing remains to train on"),
        ],
    )
    def test_errors(self, encoder: Path, pairs_file: Path, tmp_path: Path, more: list[str], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            entailment.main(entailment_options(encoder, pairs_file, tmp_path, *more))

    def test_unknown_label(self, encoder: Path, tmp_path: Path) -> None:
        (tmp_path / "pairs.tsv").write_text("own\ttrain\tmaybe\tA b.\tC d.\n")
        with pytest.raises(ValueError, match="pair 1: label 'maybe'; expected entailment, neutral, contradiction or"):
            entailment.main(entailment_options(encoder, tmp_path / "pairs.tsv", tmp_path))


WORDS = {"red": "rouge", "cat": "chat", "big": "grand", "dog": "chien", "sea": "mer", "bread": "pain", "eats": "mange"}


@pytest.fixture(scope="module")
def parallel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of a language that is English word for word."""
    choose = random.Random(0)
    rows = []
    for number in range(330):
        words = choose.sample(list(WORDS), choose.randint(2, 4))
        split = "test" if number < 20 else "dev" if number < 30 else "train"
        rows.append(f"toy\t{split}\t{' '.join(words)}\t{' '.join(WORDS[word] for word in words)}")
    path = tmp_path_factory.mktemp("parallel") / "toy.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def translator_options(parallel_file: Path, output: Path, *more: str) -> list[str]:
    options = f"--parallel_files fr={parallel_file} --output_dir {output} --vocabulary_size 330 --width 32 --heads 2"
    options += " --encoder_layers 1 --decoder_layers 1 --dropout 0 --batch_tokens 256 --learning_rate 3e-3"
    words = options.split()
    if "--parallel_files" in more:  # given twice, the files would be joined
        place = words.index("--parallel_files")
        del words[place : place + 2]
    return [*words, *FAST, *more]


class TestTranslator:
    @pytest.mark.long
    def test_learns_to_translate_both_ways(self, parallel_file: Path, tmp_path: Path) -> None:
        translator.main(translator_options(parallel_file, tmp_path, "--max_steps", "400"))
        found = results(tmp_path)
        assert found["quality"]["bleu"]["en-fr"]["toy"]["bleu"] > 50
        assert found["quality"]["bleu"]["fr-en"]["toy"]["bleu"] > 50
        assert found["quality"]["bleu"]["fr-en"]["toy"]["sentences"] == 20
        assert "tok:13a" in found["quality"]["signature"]
        assert found["data"]["left_out"]["of split dev"] == 10
        assert found["examples"] == sum(found["data"]["drawn"].values()) > 1000
        assert found["settings"]["parallel_files"] == ["fr=toy.tsv"]

        tokenizer = AutoTokenizer.from_pretrained(tmp_path)
        model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
        inputs = tokenizer([">>fr<< big cat eats", ">>en<< grand chat mange"], return_tensors="pt", padding=True)
        written = model.generate(**inputs, max_new_tokens=12, num_beams=1)
        assert tokenizer.batch_decode(written, skip_special_tokens=True) == ["grand chat mange", "big cat eats"]

    def test_the_same_weights_after_a_kill(
        self, parallel_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = ["--max_steps", "6", "--save_steps", "2"]
        translator.main(translator_options(parallel_file, tmp_path / "whole", *steps))
        killed = translator_options(parallel_file, tmp_path / "killed", *steps)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            kill_at(5, patch)
            translator.main(killed)
        translator.main([*killed, "--resume"])
        whole, resumed = (
            AutoModelForSeq2SeqLM.from_pretrained(tmp_path / name).state_dict() for name in ("whole", "killed")
        )
        for name, weights in whole.items():
            torch.testing.assert_close(resumed[name], weights)

    def test_a_kill_leaves_the_translator_that_was_there(
        self, parallel_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = ["--max_steps", "2", "--save_strategy", "no"]
        translator.main(translator_options(parallel_file, tmp_path, *steps))
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        other = translator_options(parallel_file, tmp_path, *steps, "--parallel_files", f"de={parallel_file}")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            kill_at(1, patch)
            translator.main(other)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
        translator.main(other)
        assert AutoTokenizer.from_pretrained(tmp_path).supported_language_codes == [">>en<<", ">>de<<"]

    def test_copied_text_is_drawn_in_its_share(self, parallel_file: Path, tmp_path: Path) -> None:
        (tmp_path / "names.txt").write_text("\n".join(f"Anna Kowalska, {n}" for n in range(50)))
        options = ["--copied_file", str(tmp_path / "names.txt"), "--copied_share", "0.3", "--max_steps", "60"]
        translator.main(translator_options(parallel_file, tmp_path / "out", *options, "--length_power", "0"))
        drawn = results(tmp_path / "out")["data"]["drawn"]
        assert drawn["copied"] / sum(drawn.values()) == pytest.approx(0.3, abs=0.06)

    @pytest.mark.parametrize(
        ("more", "error", "message"),
        [
            (["--parallel_files", "toy.tsv"], ValueError, "--parallel_files toy.tsv: expected NAME=VALUE"),
            (["--parallel_files", "fr=absent.tsv"], FileNotFoundError, "no file absent.tsv: expected a TSV file"),
            (["--source_weights", "toy=-1"], ValueError, "toy=-1: expected a number that is not negative"),
            (["--source_weights", "toys=1"], ValueError, "no source toys; there are toy"),
            (["--source_weights", "toy=0"], ValueError, "every pair of fr has the weight 0"),
            (["--max_steps", "0"], ValueError, "max_steps must be at least 1, found 0"),
            (["--vocabulary_size", "40"], ValueError, "no vocabulary of 40 tokens can be made"),
        ],
    )
    def test_errors(self, parallel_file: Path, tmp_path: Path, more, error, message: str) -> None:
        with pytest.raises(error, match=message):
            translator.main(translator_options(parallel_file, tmp_path, "--max_steps", "2", *more))


def test_set_dropout_is_for_the_run_only(encoder: Path) -> None:
    model = BertModel.from_pretrained(encoder)
    set_dropout(model, None)
    assert model.embeddings.dropout.p == 0.1
    set_dropout(model, 0.0)
    assert {m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)} == {0.0}
    assert model.config.hidden_dropout_prob == 0.1
