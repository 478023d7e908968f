"""The translator: greedy steps, its memory, the likelihood of given translations, and lengths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from bleurt_repro.datasets_builders.translator import Translator
from tests.tiny_teachers import SENTENCES, make_classifier


@pytest.fixture()
def translator(tiny_teachers):
    return Translator(str(tiny_teachers.translator), device="cpu")


def slow_greedy(folder, text, limit=60):
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    source = torch.tensor([tokenizer(text)["input_ids"]])
    limit = min(2 * source.shape[1] + 8, 63)
    written = [model.config.decoder_start_token_id]
    while len(written) <= limit and written[-1] != tokenizer.eos_token_id:
        with torch.no_grad():
            logits = model(input_ids=source, decoder_input_ids=torch.tensor([written])).logits[0, -1]
        logits[model.config.decoder_start_token_id] = -torch.inf  # the padding token is never written
        written.append(int(logits.argmax()))
    return tokenizer.decode(written[1:], skip_special_tokens=True).strip()


def test_each_step_takes_the_likeliest_token(tiny_teachers, translator):
    texts = SENTENCES[:4]
    expected = [slow_greedy(tiny_teachers.translator, f">>fr<< {text}") for text in texts]
    assert len({*expected}) > 1
    assert translator.translate(texts, ">>fr<< ") == expected


def test_batches_do_not_change_translations(tiny_teachers, translator):
    small = Translator(str(tiny_teachers.translator), device="cpu", batch_tokens=64)
    assert small.translate(SENTENCES) == translator.translate(SENTENCES)


def test_the_prefix_counts_and_nothing_is_translated_twice(translator, monkeypatch):
    french, german = translator.translate(SENTENCES[:3], ">>fr<< "), translator.translate(SENTENCES[:3], ">>de<< ")
    assert french != german
    monkeypatch.setattr(translator, "_generate", lambda sources: pytest.fail("translated again"))
    assert translator.translate([SENTENCES[2], SENTENCES[0]], ">>fr<< ") == [french[2], french[0]]
    translator.forget()
    with pytest.raises(pytest.fail.Exception):
        translator.translate(SENTENCES[:1], ">>fr<< ")


def test_likelihood_is_the_mean_log_probability_of_the_tokens(tiny_teachers, translator):
    model = AutoModelForSeq2SeqLM.from_pretrained(tiny_teachers.translator).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_teachers.translator)
    sources, targets = SENTENCES[:5], [*SENTENCES[5:9], ""]
    expected = []
    for source, target in zip(sources, targets, strict=True):
        inputs = tokenizer(">>en<< " + source, text_target=target, return_tensors="pt")
        with torch.no_grad():
            expected.append(-model(**inputs).loss.item())
    means = translator.log_likelihoods(sources, targets, ">>en<< ")
    np.testing.assert_allclose(means, expected, atol=1e-5)
    small = Translator(str(tiny_teachers.translator), device="cpu", batch_tokens=64)
    np.testing.assert_allclose(small.log_likelihoods(sources, targets, ">>en<< "), expected, atol=1e-5)


def test_a_blank_target_has_the_likelihood_of_ending_at_once(translator):
    assert translator.log_likelihoods(["x"], [""]).shape == (1,)
    assert translator.log_likelihoods(["x"], [""])[0] < 0
    assert translator.log_likelihoods([], []).shape == (0,)


def test_long_texts_are_cut_and_counted(translator):
    long = " ".join(SENTENCES)
    assert translator.count_tokens(long) > translator.max_tokens == 64
    translator.translate([long, SENTENCES[0]])
    assert translator.truncated == 1
    assert len(translator._encode([long])[0]) == 64
    assert translator._encode([long])[0][-1] == translator._tokenizer.eos_token_id


def test_another_kind_of_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="translator en-fr .* cannot be opened"):
        Translator(str(make_classifier(tmp_path)), "translator en-fr", device="cpu")
