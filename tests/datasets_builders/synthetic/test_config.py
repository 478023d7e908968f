"""The recipe: the paper's defaults, YAML, and what is refused."""

from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.synthetic.config import DEFAULT_INPUT, Pivot, SyntheticConfig, read_config


def test_the_defaults_are_the_papers():
    config = SyntheticConfig()
    assert (config.beam_size, config.max_masks, config.masks_per_pass, config.dropping_rate) == (8, 15, 1, 0.3)
    assert [pivot.language for pivot in config.pivots] == ["fr", "de"]
    assert config.bertscore_model == "google-bert/bert-large-uncased"
    assert config.rouge_order == 2
    assert len(config.signals) == 6


def test_ready_recipes():
    paper, small = read_config("paper"), read_config("small")
    assert (paper.beam_size, paper.max_segments, paper.split_sentences) == (8, 1_800_000, True)
    assert (paper.masked_lm, paper.bertscore_model) == (
        "google-bert/bert-base-uncased",
        "google-bert/bert-large-uncased",
    )
    assert (DEFAULT_INPUT, paper.subset, paper.column) == ("wikimedia/wikipedia", "20231101.en", "text")
    assert paper.entailment_model == "FacebookAI/roberta-large-mnli"
    assert [(pivot.language, pivot.forward, pivot.backward) for pivot in paper.pivots] == [
        ("fr", "Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en"),
        ("de", "Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"),
    ]
    assert (small.beam_size, small.masks_per_pass) == (4, 2)


def test_a_recipe_survives_its_record(tmp_path):
    import yaml

    config = SyntheticConfig(seed=3, pivots=(Pivot("es", "a", "b"),), max_segments=5)
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(config.to_dict()))
    assert read_config(path) == config


def test_options_replace_what_is_given():
    config = SyntheticConfig().with_options(seed=4, masked_lm=None, translator="mt")
    assert config.seed == 4 and config.masked_lm == SyntheticConfig().masked_lm
    assert config.pivots == (
        Pivot("fr", "mt", "mt", ">>fr<< ", ">>en<< "),
        Pivot("de", "mt", "mt", ">>de<< ", ">>en<< "),
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam": 4}, "unknown keys beam: known are seed, "),
        ({"pivots": [{"lang": "fr"}]}, "pivots has unknown keys lang: known are language, "),
        ({"pivots": [{"language": "fr"}]}, "missing 2 required"),
        ({"pivots": ["fr"]}, "must be keys and values, found 'fr'"),
        ({"beam_size": "8"}, "beam_size must be int, found '8'"),
        ({"beam_size": 0}, "beam_size must be at least 1, found 0"),
        ({"beam_size": True}, "beam_size must be int"),
        ({"dropping_rate": 1.5}, "dropping_rate must be between 0 and 1, found 1.5"),
        ({"mask_strategies": ["random"]}, "mask_strategies must be of mask_filling_scattered, .*found ..random"),
        ({"signals": ["bleurt"]}, "signals must be of bleu, "),
        ({"mask_strategies": [], "pivots": []}, "not both empty"),
        ({"pivots": [], "perturbations_per_segment": 2}, "without back_translation_likelihood"),
        ({"perturbations_per_segment": 5}, "perturbations_per_segment must be 1 to 4, or null, found 5"),
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
