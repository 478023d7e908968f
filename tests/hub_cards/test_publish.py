"""Publishing through the real client: one commit, safe to repeat, and what the Hub and the network may do to it."""

from __future__ import annotations

import json
import logging
import shutil
import time
import warnings

import pytest
from huggingface_hub import HfApi

from bleurt_repro.hub_cards.contents import Target
from bleurt_repro.hub_cards.publish import publish_folder
from tests.loopback_hub import TOKEN, Fault

CARD = "---\nlicense: mit\nlibrary_name: transformers\npipeline_tag: text-classification\n---\n\n# scorer\n\npath/to/scorer\n"
MODEL = Target("model", "org/scorer")
ADDRESS = "git+https://host/org/package"
ALL = ["README.md", "checksums.json", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


@pytest.fixture
def folder(tmp_path, tiny_scorer):
    """A checkpoint with a card."""
    copy = shutil.copytree(tiny_scorer, tmp_path / "scorer", ignore=shutil.ignore_patterns("vocab.txt"))
    (copy / "README.md").write_text(CARD)
    return copy


def published(hub, revision="main", kind="model", name="org/scorer"):
    return {path: hub.store.content(entry.etag) for path, entry in hub.store.files(kind, name, revision)[1].items()}


def commits(hub, revision="main"):
    return hub.store.messages("model", "org/scorer", revision)[1:]


def test_a_checkpoint_goes_up_in_one_commit_and_not_twice(hub, folder):
    report = publish_folder(MODEL, folder)
    assert commits(hub) == ["Upload scorer with bleurt_repro 0.1.0"]
    files = published(hub)
    assert sorted(files) == ALL
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert files["README.md"].decode().endswith("# scorer\n\norg/scorer\n")  # its own address, not path/to/scorer
    assert "wrote model.safetensors" in report and f"{hub.url}/org/scorer/commit/" in report
    assert publish_folder(MODEL, folder).startswith("nothing has changed: no new commit\n" + hub.url)
    assert len(commits(hub)) == 1


def test_only_what_changed_is_sent_and_old_weights_go(hub, folder):
    publish_folder(MODEL, folder)
    HfApi().upload_file(
        path_or_fileobj=b"notes", path_in_repo="NOTES.md", repo_id="org/scorer", commit_message="By hand"
    )
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    hub.requests.clear()
    report = publish_folder(MODEL, folder)
    assert report.splitlines()[:2] == [
        f"wrote weights.safetensors ({(folder / 'weights.safetensors').stat().st_size / 1000:.1f} kB)",
        "deleted model.safetensors, which the folder no longer has",
    ]
    assert sorted(published(hub)) == ["NOTES.md", *ALL[:3], *ALL[4:], "weights.safetensors"]
    assert not [path for _, path in hub.requests if path.startswith("/upload/")]  # its content was there


def test_a_branch_and_a_private_repository(hub, folder):
    publish_folder(Target("model", "org/scorer", private=True, revision="dev"), folder)
    assert (len(commits(hub)), len(commits(hub, "dev"))) == (0, 1)
    assert hub.store.read("model", "org/scorer")["private"]
    shutil.copy(folder / "config.json", folder / "more.json")
    publish_folder(Target("model", "org/scorer", revision="dev"), folder)
    assert len(commits(hub, "dev")) == 2


def test_a_public_repository_is_not_taken_for_a_private_one(hub, folder):
    HfApi().create_repo("org/scorer")
    with pytest.raises(ValueError, match="org/scorer exists and is public"):
        publish_folder(Target("model", "org/scorer", private=True), folder)
    assert commits(hub) == []


def test_a_pull_request_is_made_once_and_then_updated(hub, folder):
    proposal = Target("model", "org/scorer", create_pr=True)
    assert publish_folder(proposal, folder).endswith("/org/scorer/discussions/1")
    assert publish_folder(proposal, folder).startswith("nothing has changed: no new commit")
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    report = publish_folder(proposal, folder)
    assert report.startswith("wrote config.json") and report.endswith("/discussions/1")
    assert len(commits(hub, "refs/pr/1")) == 2 and commits(hub) == []


def test_a_dry_run_asks_the_hub_nothing(hub, folder):
    (folder / "checkpoint-3").mkdir()
    (folder / "checkpoint-3" / "optimizer.pt").write_bytes(b"x")
    report = publish_folder(Target("model", "org/scorer", private=True, create_pr=True), folder, dry_run=True)
    assert report.startswith("would open a pull request to model org/scorer (private):\n  README.md (")
    assert "6 files, " in report and report.endswith("left out: checkpoint-3/")
    assert hub.requests == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault("POST /api/repos/create", times=2), "the Hub answered 500; attempt 3 of 4 in 2 seconds"),
        (Fault("POST .*/commit/", status=503), "the Hub answered 503; attempt 2 of 4 in 1 seconds"),
        (Fault("POST .*/commit/", status=429, headers={"Retry-After": "9"}), "attempt 2 of 4 in 9 seconds"),
        (Fault("POST .*/commit/", "cut"), "the connection to the Hub failed"),
        (Fault("POST .*/commit/", "lose"), "the connection to the Hub failed"),
        (Fault("GET .*/tree/", "cut"), None),  # the client itself tries again, here and below
        (Fault("PUT /upload/", "cut"), None),
        (Fault("POST .*/preupload/", status=500), None),
    ],
    ids=["create", "commit-503", "commit-429", "commit-cut", "commit-lost", "tree-cut", "upload-cut", "preupload"],
)
def test_faults_that_pass(hub, waits, folder, fault, said):
    hub.faults.add(fault)
    if said:
        with pytest.warns(UserWarning, match=said):
            publish_folder(MODEL, folder)
    else:
        publish_folder(MODEL, folder)
    assert waits
    assert len(commits(hub)) == 1
    assert sorted(published(hub)) == ALL


def test_a_pull_request_whose_answer_was_lost_is_not_made_again(hub, waits, folder):
    hub.faults.add(Fault("POST .*/commit/", "lose"))
    with pytest.warns(UserWarning, match="the connection to the Hub failed"):
        report = publish_folder(Target("model", "org/scorer", create_pr=True), folder)
    assert report.endswith("/discussions/1")
    assert len(hub.store.read("model", "org/scorer")["pulls"]) == 1


@pytest.mark.parametrize("match", ["POST .*/commit/", "PUT /upload/"])
def test_an_interrupted_publication_leaves_nothing_behind_and_can_be_repeated(hub, waits, folder, match):
    hub.faults.add(Fault(match, "cut", times=10**6))
    with (
        pytest.warns(UserWarning),
        pytest.raises(ConnectionError, match="model org/scorer was not published: .* publish it again"),
    ):
        publish_folder(MODEL, folder)
    assert published(hub) == {}
    hub.faults.clear()
    publish_folder(MODEL, folder)
    assert sorted(published(hub)) == ALL
    assert len(commits(hub)) == 1


def test_slow_answers_are_waited_for(hub, folder):
    hub.faults.add(Fault("POST .*/commit/", "slow", seconds=0.5))
    publish_folder(MODEL, folder)
    assert len(commits(hub)) == 1


def test_a_wrong_token_is_refused_and_never_shown(hub, folder, monkeypatch, caplog, capsys):
    wrong = "hf_" + "w" * 34
    monkeypatch.setenv("HF_TOKEN", wrong)
    with caplog.at_level("DEBUG"), pytest.raises(ValueError, match="refused the token .401.: log in with") as error:
        publish_folder(MODEL, folder)
    output = capsys.readouterr()
    assert wrong not in str(error.value) + caplog.text + output.out + output.err


def test_the_right_token_is_never_shown_either(hub, folder, caplog, capsys):
    with caplog.at_level("DEBUG"):
        report = publish_folder(MODEL, folder)
    output = capsys.readouterr()
    assert TOKEN not in report + caplog.text + output.out + output.err
    assert not any(TOKEN.encode() in content for content in published(hub).values())


def test_nobody_is_logged_in(hub, folder, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(ValueError, match="nobody is logged in to the Hub: `hf auth login`"):
        publish_folder(MODEL, folder)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model", "name"), "--repo-id must be ORG/NAME, found 'name'"),
        (("model", "org/a b"), "--repo-id must be ORG/NAME, found 'org/a b'"),
        (("film", "org/name"), "one of model, dataset, space, found 'film'"),
        (
            ("model", "org/name", False, "dev", True),
            "--create-pr opens a pull request to main: leave out --revision dev",
        ),
    ],
)
def test_targets_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        Target(*arguments)


def test_a_checkpoint_without_a_card_gets_one(hub, folder):
    (folder / "README.md").unlink()
    with pytest.raises(ValueError, match=r"give --source git\+https://HOST/ORG/NAME, or set BLEURT_REPRO_SOURCE"):
        publish_folder(MODEL, folder)
    assert hub.requests == []
    publish_folder(MODEL, folder, source=ADDRESS)
    card = published(hub)["README.md"].decode()
    assert f'pip install "bleurt-repro @ {ADDRESS}"' in card and "in a clone" not in card
    assert 'evaluate.load("bleurt_repro", "org/scorer")' in card
    assert 'from_pretrained("org/scorer")' in card
    assert "Not measured: agreement with human ratings" in card


def test_a_card_that_was_drawn_in_a_clone_gets_the_address_of_the_package(hub, folder, monkeypatch):
    (folder / "README.md").write_text(
        CARD + "\n```sh\npip install -c constraints.txt .  # in a clone of the repository\n```\n"
    )
    with pytest.raises(ValueError, match="the card must say where pip installs the package from"):
        publish_folder(MODEL, folder, dry_run=True)
    monkeypatch.setenv("BLEURT_REPRO_SOURCE", ADDRESS)
    publish_folder(MODEL, folder)
    card = published(hub)["README.md"].decode()
    assert f'pip install "bleurt-repro @ {ADDRESS}"\n```' in card and "constraints.txt" not in card


@pytest.mark.parametrize("repo_type", ["model", "dataset", "space"])
def test_a_card_that_is_not_utf8_is_named(hub, folder, repo_type):
    (folder / "README.md").write_bytes("---\nlicense: mit\n---\n# Prüfung\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"scorer/README\.md is not UTF-8 .* save it as UTF-8"):
        publish_folder(Target(repo_type, "org/scorer"), folder)
    assert hub.requests == []


def test_ratings_get_a_card_of_their_own(hub, tmp_path):
    from bleurt_repro.datasets_builders.ratings.export import write_splits
    from bleurt_repro.datasets_builders.ratings.wmt import RATING_FEATURES
    from tests.tiny_experiments import rating

    rows = {"train": [rating(segment=n) for n in range(3)], "test": [rating(year=2017, segment=9)]}
    write_splits(rows, RATING_FEATURES, tmp_path / "ratings")
    publish_folder(Target("dataset", "org/ratings"), tmp_path / "ratings")
    files = published(hub, kind="dataset", name="org/ratings")
    assert sorted(files) == ["README.md", "test.jsonl", "train.jsonl"]
    assert 'load_dataset("org/ratings")' in files["README.md"].decode()
    assert len(files["train.jsonl"].splitlines()) == 3


def test_the_space_carries_a_wheel_and_names_it(hub, tmp_path):
    publish_folder(Target("space", "org/bleurt_repro"))
    files = published(hub, kind="space", name="org/bleurt_repro")
    assert sorted(files) == [
        "README.md", "app.py", "bleurt_repro-0.1.0-py3-none-any.whl", "bleurt_repro.py", "requirements.txt",
    ]  # fmt: skip
    address = f"{hub.url}/spaces/org/bleurt_repro/resolve/main/bleurt_repro-0.1.0-py3-none-any.whl"
    assert files["requirements.txt"].decode() == f"bleurt-repro[demo] @ {address}\n"
    assert 'evaluate.load("org/bleurt_repro", module_type="metric")' in files["README.md"].decode()
    assert f'pip install "bleurt-repro @ {address}"' in files["README.md"].decode()
    assert hub.store.read("space", "org/bleurt_repro")["sdk"] == "gradio"
    assert publish_folder(Target("space", "org/bleurt_repro")).startswith("nothing has changed")


def test_a_space_with_a_requirement_of_its_own(hub):
    publish_folder(Target("space", "org/metric", private=True), requirement="bleurt-repro[demo]==0.1.0")
    files = published(hub, kind="space", name="org/metric")
    assert files["requirements.txt"] == b"bleurt-repro[demo]==0.1.0\n"
    assert not any(name.endswith(".whl") for name in files)
    with pytest.raises(
        ValueError, match="a private Space cannot download the package from itself: give --requirement"
    ):
        publish_folder(Target("space", "org/metric", private=True))


def test_the_published_record_of_synthetic_pairs_names_no_folders_of_this_machine():
    from bleurt_repro.hub_cards.dataset_card import shorten_paths

    record = {"models": {"mt": {"name": "/some/where/mt"}}, "more": ["C:\\models\\lm", "org/lm", "~/nli", 3]}
    assert shorten_paths(record) == {"models": {"mt": {"name": "mt"}}, "more": ["lm", "org/lm", "nli", 3]}
    assert json.dumps(shorten_paths(record))


# --- large files through hf_xet, which clients use unless they are told not to ------------------------------------


def test_large_files_go_up_through_xet(xet, folder):
    publish_folder(MODEL, folder)
    assert published(xet)["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    requests = [path for _, path in xet.requests]
    assert [path for path in requests if "xet-write-token" in path] and [
        path for path in requests if "/v1/xorbs/" in path
    ]
    assert not [path for path in requests if "lfs/objects" in path or path.startswith("/upload/")]
    assert publish_folder(MODEL, folder).startswith("nothing has changed")


@pytest.mark.parametrize("address", ["xet-write-token", "POST /v1/shards"])
@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (401, ValueError, "the Hub refused the token .401.: log in"),
        (403, ValueError, "the token does not allow this .403.: it needs write access"),
        pytest.param(
            429,
            ConnectionError,
            "the Hub asks for fewer requests .429.; the repository is unchanged",
            marks=pytest.mark.long,
        ),
        (500, ConnectionError, "the Hub answered 500; the repository is unchanged"),
    ],
)
def test_faults_of_xet_are_named_at_once(xet, waits, folder, address, status, kind, message):
    xet.faults.add(Fault(address, status=status, times=10**6))
    start = time.monotonic()
    with warnings.catch_warnings(record=True), pytest.raises(kind, match=message):
        publish_folder(MODEL, folder)
    assert time.monotonic() - start < 15  # and the package's own 7 seconds, which `waits` spares; it was 205 to 294
    assert waits == ([] if kind is ValueError else [1.0, 2.0, 4.0])
    assert published(xet) == {}


def test_a_fault_of_xet_that_passes(xet, waits, folder):
    xet.faults.add(Fault("xet-write-token", status=500, times=2))
    with pytest.warns(UserWarning, match="the Hub answered 500; attempt 2 of 4"):
        publish_folder(MODEL, folder)
    assert sorted(published(xet)) == ALL


# --- what the Hub says may hold a secret ---------------------------------------------------------------------------


def test_the_servers_text_is_never_shown_with_a_token_in_it(hub, waits, folder, capsys, caplog):
    other = "hf_" + "Ab1" * 12
    hub.faults.add(Fault("POST .*/commit/", status=400, message=f"bad \x1b[2J request of {TOKEN} and {other}"))
    with pytest.raises(ValueError, match=r"the Hub answered 400 .*\*\*\* and \*\*\*") as error:
        publish_folder(MODEL, folder)
    output = capsys.readouterr()
    shown = str(error.value) + output.out + output.err + caplog.text
    assert TOKEN not in shown and other not in shown and "\x1b" not in shown


def test_the_clients_warnings_of_the_servers_text_are_masked_too(hub, folder, monkeypatch, caplog):
    from huggingface_hub import HfApi as Api

    other = "hf_" + "Ab1" * 12
    create = Api.create_commit

    def warn(self, *arguments, **options):
        warnings.warn(f"about {other}", UserWarning, stacklevel=2)
        logging.getLogger("huggingface_hub.hf_api").warning("about %s", other)
        return create(self, *arguments, **options)

    monkeypatch.setattr(Api, "create_commit", warn)
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)
    with pytest.warns(UserWarning) as caught:
        publish_folder(MODEL, folder)
    assert [str(one.message) for one in caught if "about" in str(one.message)] == ["about ***"]
    assert "about ***" in caplog.text and other not in caplog.text
