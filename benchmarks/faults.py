"""Kill long jobs at random moments, start them again, and compare what they leave with an undisturbed run, bit for bit.

    python benchmarks/faults.py --output docs/results/faults [--kills 50] [--seed 0] [--jobs scoring,training]

It runs from the repository and takes the tests' small models, so that a job takes a second or two. Libraries are imported
once: each job is a fork of that process, killed by SIGKILL after a time drawn evenly from nothing to the length of an
undisturbed run. After each kill every file at its final place must be that of the undisturbed run or must not be there;
then the job runs again to its end, and all must be equal. The table is written after each kill, and the same command goes
on from there. Of publishing the Hub is another process (the tests' own, on
127.0.0.1), and its repository's content must be the old or the whole new one. It writes OUTPUT.json and OUTPUT.md, and
exits with 1 if anything was lost, differed, or was half written. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["OMP_NUM_THREADS"] = "1"  # a fork may have no threads beside it
import tests.conftest  # noqa: E402, F401  # sets the libraries' environment: no network, caches of its own

Contents = dict[str, bytes]


@dataclass
class Job:
    """Something that takes long.

    Attributes:
        name: for the table.
        run: does it in a folder, or goes on with it there.
        contents: gives the finished files in a folder, those that must not depend on kills.
        note: what it does.
    """

    name: str
    run: Callable[[Path], Any]
    contents: Callable[[Path], Contents]
    note: str


@dataclass
class Count:
    """What happened to a job."""

    note: str = ""
    kills: int = 0
    finished_before: int = 0
    half_written: list[str] = field(default_factory=list)
    failed: int = 0
    differed: list[str] = field(default_factory=list)
    leftovers: int = 0
    seconds: float = 0.0


def main() -> int:
    """Kill, compare, write the table after each kill."""
    options = parse()
    if "," in options.jobs:  # a process each: what one job imports changes what another writes (tokenizers' settings)
        run = [sys.executable, __file__, "--output", str(options.output), "--kills", str(options.kills)]
        run += ["--seed", str(options.seed), "--jobs"]
        return max([subprocess.run([*run, job], check=False).returncode for job in options.jobs.split(",")])
    results: dict[str, Any] = {"seed": options.seed, "kills": options.kills, "jobs": {}}
    if options.output.with_suffix(".json").is_file():
        known = json.loads(options.output.with_suffix(".json").read_text())
        results["jobs"] = known["jobs"] if known["seed"] == options.seed else {}
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        for _ in torment(options.jobs, Path(name), options, results):
            write(results, options.output)
    print(options.output.with_suffix(".md").read_text())
    return int(any(bad(found) for found in results["jobs"].values()))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="the results' name, without .json and .md")
    parser.add_argument("--kills", type=int, default=50, help="of each job")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--jobs", default="scoring,synthetic,training,publishing,conversion")
    return parser.parse_args()


def torment(name: str, place: Path, options: argparse.Namespace, results: dict[str, Any]) -> Iterator[Count]:
    """Kill a job so often, what was counted before included; after each kill, give the count."""
    found = Count(**results["jobs"].get(name, {}))
    if found.kills >= options.kills:
        return
    job = JOBS[name](fresh(place / f"{name}-input"))
    place = fresh(place / name)
    seconds = []
    for attempt in range(2):  # the first one also fills the caches of what is read
        start = time.monotonic()
        if wait(fork(job.run, fresh(place / f"whole{attempt}"))) != 0:
            raise SystemExit(f"{name} fails without being disturbed:\n{(place / 'log.txt').read_text()}")
        seconds.append(time.monotonic() - start)
    whole = job.contents(place / "whole0")
    if not whole or job.contents(place / "whole1") != whole:
        raise SystemExit(f"{name} does not give the same twice, undisturbed")
    found.note, found.seconds = job.note, round(seconds[1], 2)
    results["jobs"][name] = vars(found)
    while found.kills < options.kills:
        number = found.kills + found.finished_before
        folder = fresh(place / f"killed{number}")
        one_kill(job, folder, whole, random.Random(f"{options.seed} {name} {number}").uniform(0, seconds[1]), found)
        shutil.rmtree(folder)
        yield found


def one_kill(job: Job, folder: Path, whole: Contents, seconds: float, found: Count) -> None:
    """Kill a job after so many seconds, look at what is there, let it go on, compare."""
    child = fork(job.run, folder)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    if wait(child) == 0:  # too late
        found.finished_before += 1
        return
    found.kills += 1
    there = job.contents(folder)
    found.half_written += [f"{folder.name}: {name}" for name in there if there[name] != whole.get(name)]
    found.leftovers += any(".tmp" in path.name or ".unfinished" in path.name for path in folder.rglob("*"))
    if wait(fork(job.run, folder)) != 0:
        found.failed += 1
    after = job.contents(folder)
    if after != whole:
        names = [name for name in {**after, **whole} if after.get(name) != whole.get(name)]
        found.differed.append(f"{folder.name}: {', '.join(names)}")


def fresh(folder: Path) -> Path:
    """Make a folder."""
    folder.mkdir(parents=True)
    return folder


def fork(run: Callable[[Path], Any], folder: Path) -> int:
    """Start a job in a process of its own; give its number."""
    gc.collect()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        log = os.open(folder.parent / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        warnings.simplefilter("ignore")
        run(folder)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait(child: int) -> int:
    """Wait for a process; give its exit code, negative if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def files_in(folder: Path, *patterns: str) -> Contents:
    """Read files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    }


# --- the jobs -----------------------------------------------------------------------------------------------------


def scoring(given: Path) -> Job:
    """`score --output`, in windows of 20 records."""
    from bleurt_repro.metric import score_files
    from tests.conftest import TINY_WORDS, make_tiny_scorer

    make_tiny_scorer(given / "scorer")
    draw = random.Random(1)
    lines = [
        {"reference": " ".join(draw.choices(TINY_WORDS, k=20)), "candidate": " ".join(draw.choices(TINY_WORDS, k=20))}
        for _ in range(400)
    ]
    (given / "pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    score_files.WINDOWS["cpu"] = 20
    options = {"checkpoint": str(given / "scorer"), "device": "cpu", "progress": False}

    def run(folder: Path) -> None:
        score_files.score_files(
            references=None,
            candidates=None,
            sources=None,
            pairs=str(given / "pairs.jsonl"),
            output=str(folder / "scores.txt"),
            as_json=False,
            aggregate="max",
            scorer_options=options,
        )

    return Job("scoring", run, lambda folder: files_in(folder, "*.txt"), "400 pairs in 20 windows")


def synthetic(given: Path) -> Job:
    """`data synthetic`: six segments, two a part."""
    from bleurt_repro.datasets_builders.make_synthetic_pairs import make_synthetic_pairs
    from bleurt_repro.datasets_builders.synthetic_config import SyntheticConfig
    from tests.tiny_teachers import SENTENCES, make_teachers

    recipe = SyntheticConfig(device="cpu", beam_size=1, max_masks=2, unit_segments=2, segments_per_part=2)
    recipe = recipe.with_options(**make_teachers(given / "teachers").options())
    (given / "text.txt").write_text("\n".join(SENTENCES[:6]))

    def run(folder: Path) -> None:
        make_synthetic_pairs(str(given / "text.txt"), folder / "pairs", recipe, progress=False)

    def contents(folder: Path) -> Contents:
        return files_in(folder, "pairs/data/*.parquet", "pairs/dataset_info.json", "pairs/skipped.jsonl")

    return Job("synthetic", run, contents, "6 segments, 3 parts, every signal")


def training(given: Path) -> Job:
    """`finetune`: 18 steps, a checkpoint every 3."""
    from bleurt_repro.training.finetune import main as finetune
    from tests.conftest import TINY_WORDS, make_tiny_scorer

    make_tiny_scorer(given / "start", spread=0.05)
    draw = random.Random(2)
    for name, count in (("train", 64), ("validation", 16)):
        rows = []
        for _ in range(count):
            words = draw.sample(TINY_WORDS, 4)
            kept = [word if draw.random() < 0.5 else "fell" for word in words]
            share = sum(a == b for a, b in zip(words, kept, strict=True)) / 4
            rows.append({"reference": " ".join(words), "candidate": " ".join(kept), "score": share})
        (given / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = {
        "--model": given / "start", "--train_file": given / "train.jsonl",
        "--validation_file": given / "validation.jsonl", "--max_steps": 18, "--eval_steps": 3, "--save_steps": 3,
        "--global_batch_size": 8, "--learning_rate": 1e-3, "--disable_tqdm": "true", "--resume": "true",
    }  # fmt: skip

    def run(folder: Path) -> None:
        finetune([str(word) for pair in {**words, "--output_dir": folder / "out"}.items() for word in pair])

    def contents(folder: Path) -> Contents:
        names = ("model.safetensors", "config.json", "tokenizer*.json", "checksums.json")
        return files_in(folder, *(f"out/{name}" for name in names))

    return Job("training", run, contents, "18 steps, a checkpoint every 3")


def publishing(given: Path) -> Job:
    """`publish model`, to a Hub that goes on while the one who publishes is killed."""
    import huggingface_hub.constants as constants

    from bleurt_repro.hub_cards.publish_folder import publish_folder
    from bleurt_repro.hub_cards.target import Target
    from tests.conftest import make_tiny_scorer
    from tests.loopback_hub import TOKEN, Store

    scorer = make_tiny_scorer(given / "scorer")
    head = "---\nlicense: mit\nlibrary_name: transformers\npipeline_tag: text-classification\n---\n\n"
    (scorer / "README.md").write_text(f"{head}# scorer\n")
    url = serve(given / "hub")
    constants.ENDPOINT, constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_XET = url, False, True
    os.environ.update(HF_TOKEN=TOKEN, NO_PROXY="127.0.0.1")

    def name(folder: Path) -> str:
        return f"org/{folder.name}"

    def run(folder: Path) -> None:
        publish_folder(Target("model", name(folder)), scorer)

    def contents(folder: Path) -> Contents:
        store = Store(given / "hub")
        if not store.exists("model", name(folder)):
            return {}
        files = store.files("model", name(folder), "main")[1]
        there = {path: store.content(entry.etag) for path, entry in files.items()}
        # By halves would be some files of the commit without the others, or the same commit twice.
        messages = store.messages("model", name(folder))
        if there:
            there["commits"] = str(messages).encode()
            there["files"] = str(sorted(files)).encode()
        return {path: content.replace(name(folder).encode(), b"org/scorer") for path, content in there.items()}

    return Job("publishing", run, contents, "6 files in one commit, over HTTP on this machine")


def serve(folder: Path) -> str:
    """Start the tests' Hub in a process of its own, which ends with this one; give its address."""
    from tests.loopback_hub import LoopbackHub

    reading, writing = os.pipe()
    parent = os.getpid()
    if os.fork() == 0:
        with LoopbackHub(folder) as hub:
            os.write(writing, hub.url.encode())
            os.close(writing)
            while os.getppid() == parent:
                time.sleep(0.5)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode()


def conversion(given: Path) -> Job:
    """`convert` of a checkpoint in bleurt-pytorch's format."""
    from bleurt_repro.metric.conversion import convert
    from tests.test_bleurt_pytorch import make_port

    make_port(given / "port")

    def run(folder: Path) -> None:
        if not (folder / "converted").exists():  # it refuses to write over a finished one
            convert(str(given / "port"), str(folder / "converted"))

    return Job("conversion", run, lambda folder: files_in(folder, "converted/*"), "bleurt-pytorch's format, 2 layers")


JOBS: dict[str, Callable[[Path], Job]] = {
    "scoring": scoring,
    "synthetic": synthetic,
    "training": training,
    "publishing": publishing,
    "conversion": conversion,
}


# --- the table ----------------------------------------------------------------------------------------------------


def bad(found: dict[str, Any]) -> bool:
    """Say whether something was lost."""
    return bool(found["half_written"] or found["failed"] or found["differed"])


def row(name: str, found: dict[str, Any]) -> str:
    """Write a line of the table."""
    cells = [
        f"{name}: {found['note']}",
        f"{found['seconds']:.1f}",
        found["kills"],
        found["finished_before"],
        len(found["half_written"]),
        found["failed"],
        len(found["differed"]),
        found["leftovers"],
    ]
    return f"| {' | '.join(map(str, cells))} |"


def write(results: dict[str, Any], output: Path) -> None:
    """Write both files."""
    from bleurt_repro.metric.atomic import write_text

    head = (
        "job", "seconds undisturbed", "kills", "not counted: over before the kill", "half-written files", "failed to go on",
        "differed at the end", "temporary files after the kill",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [row(name, found) for name, found in results["jobs"].items()]
    command = f"python benchmarks/faults.py --output {output} --kills {results['kills']} --seed {results['seed']}"
    output.parent.mkdir(parents=True, exist_ok=True)
    write_text(output.with_suffix(".json"), json.dumps(results, indent=2) + "\n")
    write_text(output.with_suffix(".md"), f"`{command}`\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
