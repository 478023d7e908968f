"""The multilingual checkpoint of a clone: its size, its three inputs, scripts of all kinds, and the page on other languages."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER
from tests.pages import ROOT, run_page

FOLDER = EMBEDDED_FOLDER / "bleurt-repro-multi"
PAGE = ROOT / "docs" / "how-to" / "other-languages.md"
# A source, a reference, a good candidate and a candidate that says something else.
SOURCE = "The train to the capital leaves tomorrow morning at eight."
TRANSLATIONS = {
    "German": ("Der Zug in die Hauptstadt fährt morgen früh um acht.", "Morgen früh um acht fährt der Zug in die Hauptstadt ab.", "Meine Schwester kocht gern mit ihren Freunden."),
    "Russian": ("Поезд в столицу отправляется завтра утром в восемь.", "Завтра утром в восемь поезд отправляется в столицу.", "Моя сестра любит готовить с друзьями."),
    "Chinese": ("开往首都的火车明天早上八点出发。", "明天早上八点，火车开往首都。", "我的妹妹喜欢和朋友一起做饭。"),
    "Japanese": ("首都行きの列車は明日の朝八時に出発します。", "明日の朝八時に首都行きの列車が出ます。", "妹は友達と料理をするのが好きです。"),
    "Arabic, right to left": ("يغادر القطار إلى العاصمة غدا صباحا في الثامنة.", "القطار إلى العاصمة يغادر صباح الغد في الساعة الثامنة.", "أختي تحب الطبخ مع أصدقائها."),
    "Hebrew, right to left": ("הרכבת לבירה יוצאת מחר בבוקר בשמונה.", "מחר בבוקר בשמונה יוצאת הרכבת לבירה.", "אחותי אוהבת לבשל עם חברים."),
    "Hindi": ("राजधानी की ट्रेन कल सुबह आठ बजे रवाना होती है।", "कल सुबह आठ बजे राजधानी के लिए ट्रेन चलेगी।", "मेरी बहन को दोस्तों के साथ खाना बनाना पसंद है।"),
    "mixed scripts": ("Der Zug nach 東京 (Токио) fährt morgen um 8 Uhr.", "Morgen um 8 Uhr fährt der Zug nach 東京 (Токио).", "Meine Schwester kocht gern 寿司 mit Иван."),
}  # fmt: skip


@pytest.fixture(scope="module")
def scorer():
    if not FOLDER.exists():
        pytest.skip("bleurt-repro-multi is in clones only")
    return BleurtScorer("bleurt-repro-multi", device="cpu")


def test_it_is_small_and_stored_in_8_bits(scorer):
    shards = sorted(FOLDER.glob("*.safetensors"))
    assert sum(shard.stat().st_size for shard in shards) <= 55_000_000
    kinds = set()
    for shard in shards:
        with safe_open(shard, "pt") as file:
            kinds |= {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
    assert "F8_E4M3" in kinds and kinds <= {"F8_E4M3", "BF16", "F32"}


def test_the_signature_says_which_texts_were_read(scorer):
    reference, candidate, _ = TRANSLATIONS["German"]
    texts = {"references": [reference], "sources": [SOURCE]}
    for names, inputs in (
        (["references"], "candidate+reference"),
        (["sources"], "source+candidate"),
        (["references", "sources"], "source+candidate+reference"),
    ):
        result = scorer.compute(candidates=[candidate], **{name: texts[name] for name in names})
        assert f"|inputs:{inputs}|" in result.signature
    with pytest.raises(ValueError, match="reference"):
        scorer.score(candidates=[candidate])


@pytest.mark.parametrize("given", ["references", "sources", "both"])
@pytest.mark.parametrize("language", TRANSLATIONS)
def test_a_translation_scores_higher_than_another_sentence(scorer, language, given):
    reference, *candidates = TRANSLATIONS[language]
    source = "The train to 東京 (Токио) leaves tomorrow at 8." if language == "mixed scripts" else SOURCE
    texts = {"references": [reference] * 2, "sources": [source] * 2}
    chosen = texts if given == "both" else {given: texts[given]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # all of it is read
        good, other = scorer.score(candidates=candidates, **chosen)
    assert good > other + 0.1


def test_a_script_that_it_does_not_know_is_reported(scorer):
    with pytest.warns(UserWarning, match="does not read"):
        scorer.score(references=["ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᎴ ᎤᏬᏂᏒ"], candidates=["ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ"])


@pytest.mark.parametrize("source", ["", SOURCE])
def test_plain_transformers_scores_as_it_does(scorer, source):
    model = AutoModelForSequenceClassification.from_pretrained(FOLDER).eval()
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    reference, candidate, _ = TRANSLATIONS["German"]
    first, *others = tokenizer([source, candidate, reference], add_special_tokens=False)["input_ids"]
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    begin = [start, *first, end]
    rest = [token for tokens in others for token in (end, *tokens, end)]
    types = [0] * len(begin) + [1] * len(rest)
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([begin + rest]), token_type_ids=torch.tensor([types])).logits.item()
    texts = {"candidates": [candidate], "references": [reference], **({"sources": [source]} if source else {})}
    assert scorer.score(**texts) == pytest.approx([expected], abs=1e-5)


def test_its_card_has_the_languages_and_the_figures_of_the_results(scorer):
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert scorer.signature.split("|")[1] in card
    assert "| in the ratings that it learned from | en, cs, de" in card
    for name in ("multi-wmt18", "multi-mlqe", "multi-mqm21-en-de", "multi-mqm21", "multi-wmt22"):
        results = json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text())
        rows = [row for row in results["rows"] if row["kind"] == "checkpoint"]
        assert scorer.signature.split("|")[1] in rows[0]["signature"]  # measured on these very weights
        assert f"value: {round(rows[0]['average']['kendall_tau'], 6)}" in card


@pytest.mark.long
def test_the_page_on_other_languages_does_what_it_shows(scorer, tmp_path):
    folder = tmp_path / "clone"
    (folder / "metric").mkdir(parents=True)
    (folder / "metric" / "checkpoint").symlink_to(EMBEDDED_FOLDER)
    run_page(PAGE, folder, Path(sys.executable), tmp_path)
