"""The recipe: the paper's defaults, YAML, and what is refused."""

from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.synthetic.config import DEFAULT_INPUT, LanguagePair, SyntheticConfig, read_config


def test_the_defaults_are_the_papers():
    config = SyntheticConfig()
    assert (config.beam_size, config.max_masks, config.masks_per_pass, config.dropping_rate) == (8, 15, 1, 0.3)
    # A.1: candidates by an English-German translator; A.3: likelihoods of two language pairs
    assert (config.pivots, config.likelihood_pivots) == (("de",), ("fr", "de"))
    assert config.perturbations_per_segment is None
    assert config.bertscore_model == "google-bert/bert-large-uncased"
    assert (config.rouge_implementation, config.rouge_order) == ("seq2seq", 2)
    assert config.entailment_model == "yoshitomo-matsubara/bert-large-uncased-mnli"
    assert len(config.signals) == 6


def test_ready_recipes():
    paper, small = read_config("paper"), read_config("small")
    assert (paper.beam_size, paper.max_segments, paper.split_sentences) == (8, 1_800_000, True)
    assert (paper.masked_lm, paper.bertscore_model) == (
        "google-bert/bert-base-uncased",
        "google-bert/bert-large-uncased",
    )
    assert (DEFAULT_INPUT, paper.subset, paper.column) == ("wikimedia/wikipedia", "20231101.en", "text")
    names = (
        "rouge_implementation",
        "entailment_model",
        "translators",
        "pivots",
        "likelihood_pivots",
        "perturbations_per_segment",
    )
    for name in names:
        assert getattr(paper, name) == getattr(SyntheticConfig(), name)
    assert [(pair.language, pair.forward, pair.backward) for pair in paper.translators] == [
        ("fr", "Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en"),
        ("de", "Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"),
    ]
    assert (small.beam_size, small.masks_per_pass) == (4, 2)
    assert (small.pivots, small.perturbations_per_segment) == (("fr", "de"), 3)
    assert small.rouge_implementation == "rouge-score"


def test_only_the_translators_that_pivots_and_likelihoods_need_are_opened():
    def languages(**options):
        return list(SyntheticConfig(**options).language_pairs())

    assert languages() == ["fr", "de"]
    assert languages(signals=("bleu",)) == ["de"]
    assert languages(likelihood_pivots=("de",)) == ["de"]
    assert languages(pivots=("fr",), likelihood_pivots=("de",)) == ["fr", "de"]
    assert languages(pivots=(), signals=("bleu",)) == []


def test_a_recipe_survives_its_record(tmp_path):
    import yaml

    options = {"pivots": ("es",), "likelihood_pivots": ("es",), "translators": (LanguagePair("es", "a", "b"),)}
    config = SyntheticConfig(seed=3, max_segments=5, **options)
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(config.to_dict()))
    assert read_config(path) == config


def test_options_replace_what_is_given():
    config = SyntheticConfig().with_options(seed=4, masked_lm=None, translator="mt")
    assert config.seed == 4 and config.masked_lm == SyntheticConfig().masked_lm
    assert config.translators == (
        LanguagePair("fr", "mt", "mt", ">>fr<< ", ">>en<< "),
        LanguagePair("de", "mt", "mt", ">>de<< ", ">>en<< "),
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam": 4}, "unknown keys beam: expected any of seed, "),
        ({"translators": [{"lang": "fr"}]}, "translators has unknown keys lang: expected any of language, "),
        ({"translators": [{"language": "fr"}]}, "missing 2 required"),
        ({"translators": ["fr"]}, "must be keys and values, found 'fr'"),
        ({"translators": [{"language": "fr", "forward": "a", "backward": "b"}] * 2}, "of different languages"),
        ({"pivots": [{"language": "fr"}]}, r"pivots must be tuple.*, found .*language"),
        ({"pivots": ["fr", "es"]}, r"pivots must be of fr, de, found \['es'\]"),
        ({"likelihood_pivots": ["es"]}, r"likelihood_pivots must be of fr, de, found \['es'\]"),
        ({"signals": "bleu"}, "signals must be tuple.*, found 'bleu'"),
        ({"max_segments": "5"}, r"max_segments must be int \| None, found '5'"),
        ({"dropping_rate": True}, "dropping_rate must be float, found True"),
        ({"beam_size": "8"}, "beam_size must be int, found '8'"),
        ({"beam_size": 0}, "beam_size must be at least 1, found 0"),
        ({"beam_size": True}, "beam_size must be int"),
        ({"dropping_rate": 1.5}, "dropping_rate must be between 0 and 1, found 1.5"),
        ({"mask_strategies": ["random"]}, "mask_strategies must be of mask_filling_scattered, .*found ..random"),
        ({"signals": ["bleurt"]}, "signals must be of bleu, "),
        ({"mask_strategies": [], "pivots": []}, "not both empty"),
        ({"likelihood_pivots": []}, "without back_translation_likelihood if there are no likelihood_pivots"),
        ({"perturbations_per_segment": 4}, "perturbations_per_segment must be 1 to 3, or null, found 4"),
        ({"unit_segments": 10, "segments_per_part": 25}, "a multiple of unit_segments .10., found 25"),
        ([], "must be keys and values, found list"),
    ],
)
def test_what_is_refused(values, message):
    with pytest.raises(ValueError, match=f"my.yaml.*{message}"):
        SyntheticConfig.from_dict(values, "my.yaml")


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no recipe large: give a YAML file, or one of paper, small"):
        read_config("large")
    (tmp_path / "a.yaml").write_text("seed: [")
    with pytest.raises(ValueError, match="is not YAML"):
        read_config(tmp_path / "a.yaml")
