"""Opening a finished set."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from datasets import concatenate_datasets, load_dataset

from bleurt_repro.datasets_builders.synthetic.builder import SyntheticPairs, join_sets, read_info
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs
from tests.loopback_hub.fixture import run_python
from tests.tiny_teachers import SENTENCES


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_teachers):
    folder = tmp_path_factory.mktemp("set")
    (folder / "in.txt").write_text("\n".join(SENTENCES[:4]))
    config = SyntheticConfig(device="cpu", beam_size=1, max_masks=3, unit_segments=2, segments_per_part=2)
    make_synthetic_pairs(str(folder / "in.txt"), folder / "pairs", config.with_options(**tiny_teachers.options()))
    return folder / "pairs"


def test_load_dataset_and_the_builder_give_the_same_rows(folder, tmp_path):
    loaded = load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "a"))
    builder = SyntheticPairs(data_dir=folder, cache_dir=str(tmp_path / "b"))
    builder.download_and_prepare()
    built = builder.as_dataset(split="train")
    assert loaded.features == built.features
    assert loaded.to_list() == built.to_list()
    assert len(loaded) == read_info(folder)["pairs"] == builder.record["pairs"]
    assert [len(loaded[0][item["name"]]) for item in builder.record["signals"]] == [1, 3, 3, 4, 3, 2]


def test_two_folders_of_one_name_are_two_data_sets(folder, second, tmp_path):
    """`datasets` caches by the folder's name: only the configuration's name tells them apart."""
    copy = shutil.copytree(second, tmp_path / folder.name)
    first, second = (load_dataset(str(path), split="train", cache_dir=str(tmp_path / "c")) for path in (folder, copy))
    assert first.unique("reference") == SENTENCES[:4]
    assert second.unique("reference") == SENTENCES[6:8]


@pytest.fixture(scope="module")
def second(tmp_path_factory, tiny_teachers):
    folder = tmp_path_factory.mktemp("second")
    (folder / "in.txt").write_text("\n".join(SENTENCES[6:8]))
    config = SyntheticConfig(device="cpu", beam_size=1, max_masks=3, unit_segments=2, segments_per_part=2)
    make_synthetic_pairs(str(folder / "in.txt"), folder / "more", config.with_options(**tiny_teachers.options()))
    return folder / "more"


def test_joined_sets_have_the_statistics_of_all_their_rows(folder, second):
    joined = join_sets([folder, second])
    rows = concatenate_datasets([load_dataset(str(path), split="train") for path in (folder, second)])
    assert joined["pairs"] == len(rows) > read_info(folder)["pairs"]
    assert len(load_dataset("parquet", data_files=[entry["file"] for entry in joined["parts"]], split="train")) == len(
        rows
    )
    for signal in joined["signals"]:
        values = np.asarray(rows[signal["name"]])
        np.testing.assert_allclose(signal["mean"], values.mean(axis=0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(signal["std"], values.std(axis=0), rtol=1e-9, atol=1e-12)
    for joined_signal, signal in zip(join_sets([folder])["signals"], read_info(folder)["signals"], strict=True):
        assert joined_signal == {**signal, "mean": pytest.approx(signal["mean"]), "std": pytest.approx(signal["std"])}


def test_sets_that_do_not_go_together_are_refused_or_named(folder, second, tmp_path):
    with pytest.raises(ValueError, match="given twice"):
        join_sets([folder, folder])
    changed = tmp_path / "other"
    shutil.copytree(second, changed)
    info = json.loads((second / "dataset_info.json").read_text())
    info["models"]["BERTscore encoder"]["sha256"] = "0" * 12
    (changed / "dataset_info.json").write_text(json.dumps(info))
    with pytest.warns(UserWarning, match=r"different models \(BERTscore encoder\)"):
        join_sets([folder, changed])
    info["signals"] = info["signals"][1:]
    (changed / "dataset_info.json").write_text(json.dumps(info))
    with pytest.raises(ValueError, match=r"other has the signals rouge \(3\), .* only sets of the same signals"):
        join_sets([folder, changed])


def test_an_unfinished_or_changed_set_is_refused(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="not a finished set of synthetic pairs: make or finish it"):
        SyntheticPairs(data_dir=tmp_path)
    import shutil

    copy = shutil.copytree(folder, tmp_path / "copy")
    file = copy / "data" / "part-00001.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(ValueError, match="part-00001.parquet is changed"):
        SyntheticPairs(data_dir=copy)
    file.unlink()
    with pytest.raises(ValueError, match="part-00001.parquet is missing"):
        SyntheticPairs(data_dir=copy)


def test_the_builder_can_make_the_set_first(folder, tmp_path, tiny_teachers):
    import yaml

    config = SyntheticConfig(device="cpu", beam_size=1, max_masks=3, unit_segments=2, segments_per_part=2)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(config.with_options(**tiny_teachers.options()).to_dict()))
    builder = SyntheticPairs(data_dir=tmp_path / "pairs", source=str(folder.parent / "in.txt"), recipe=recipe)
    assert builder.record["parts"] == read_info(folder)["parts"]


@pytest.mark.long
def test_published_pairs_open_by_their_id_and_name_no_folder_of_this_machine(folder, hub, tmp_path):
    from bleurt_repro.hub_cards.contents import Target
    from bleurt_repro.hub_cards.publish import publish_folder

    target = Target("dataset", "org/pairs")
    assert "left out: parts/, skipped.jsonl" in publish_folder(target, folder)
    assert publish_folder(target, folder).startswith("nothing has changed")
    _, files = hub.store.files("dataset", "org/pairs", "main")
    texts = {path: hub.store.content(entry.etag).decode() for path, entry in files.items() if "parquet" not in path}
    assert sorted(texts) == ["README.md", "dataset_info.json", "recipe.json", "report.json"]
    assert not [path for path, text in texts.items() if str(folder.parent.parent) in text]
    assert 'load_dataset("org/pairs", split="train")' in texts["README.md"]
    code = "import json, datasets; print('ROWS' + json.dumps(datasets.load_dataset('org/pairs', split='train').to_list()))"
    run = run_python(hub, tmp_path, code)
    assert "ROWS" in run.stdout, run.stderr
    assert json.loads(run.stdout.split("ROWS")[1]) == load_dataset(str(folder), split="train").to_list()
