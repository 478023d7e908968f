"""Kill long jobs at random moments, start them again, and compare what they leave with an undisturbed run, bit for bit.

    python benchmarks/faults.py --output docs/results/faults [--kills 50] [--seed 0] [--jobs scoring,training]

It runs from the repository and takes the tests' small models, so that a job takes a second or two. Libraries are imported
once: each job is a fork of that process, killed by SIGKILL after a time drawn evenly from nothing to the length of an
undisturbed run. After each kill every file at its final place must be that of the undisturbed run or must not be there;
then the job runs again to its end, and all must be equal. The table is written after each kill, and the same command
continues from there. Of publishing the Hub is another process (the tests' own, on
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
from benchmarks.fault_jobs import JOBS, Contents, Job  # noqa: E402

UNITS = {
    "kills": "kills that met the running job",
    "half_written": "files that differed from the undisturbed run's after a kill",
    "differed": "folders that differed after the job had continued to its end",
    "leftovers": "kills that left a temporary file",
    "seconds": "seconds of the undisturbed job",
}


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
    """Kill a job so often, what was counted before included; after each kill, yield the count."""
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
        raise SystemExit(f"{name} does not make the same twice, undisturbed")
    found.note, found.seconds = job.note, round(seconds[1], 2)
    results["jobs"][name] = vars(found)
    while found.kills < options.kills:
        number = found.kills + found.finished_before
        folder = fresh(place / f"killed{number}")
        one_kill(job, folder, whole, random.Random(f"{options.seed} {name} {number}").uniform(0, seconds[1]), found)
        shutil.rmtree(folder)
        yield found


def one_kill(job: Job, folder: Path, whole: Contents, seconds: float, found: Count) -> None:
    """Kill a job after so many seconds, look at what is there, let it continue, compare."""
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
    """Start a job in a process of its own; return its number."""
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
    """Wait for a process; return its exit code, negative if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def bad(found: dict[str, Any]) -> bool:
    """Return whether something was lost."""
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
    from benchmarks.machine import write_result
    from bleurt_repro.metric.files.writing import write_text

    head = (
        "job", "seconds undisturbed", "kills", "not counted: over before the kill", "half-written files", "failed to continue",
        "differed at the end", "temporary files after the kill",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [row(name, found) for name, found in results["jobs"].items()]
    output.parent.mkdir(parents=True, exist_ok=True)
    figures = {name: value for name, value in results.items() if name != "seed"}
    words = ["faults.py", "--output", str(output), "--kills", str(results["kills"]), "--seed", str(results["seed"])]
    found = write_result(output.with_suffix(".json"), "faults", UNITS, figures, words, seed=results["seed"])
    write_text(output.with_suffix(".md"), f"`{found['command']}`\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
