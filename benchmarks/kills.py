"""Kill every command that writes before each of its file operations, and count what it leaves.

    python benchmarks/kills.py --output docs/results/kills.json [--jobs "data wmt,finetune"]

It takes the tests' small models, and each command writes over the outputs of an earlier run of it with other settings.
A kill ends the process before it makes, opens for writing, renames, links, changes or removes a file or folder; after each
the outputs must be the old ones or the new ones, all of them, and after the next run the new ones and nothing beside them.
Each command is a process of its own. The first that fails ends the run. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["OMP_NUM_THREADS"] = "1"  # a fork may have no threads beside it

UNITS = {
    "kills": "file operations before which the command was killed",
    "commands": "commands that write, each over the outputs of another run of it",
    "old": "kills that left the outputs of the earlier run",
    "new": "kills that left the outputs of the killed run",
    "mixed": "kills that left neither, or some of both",
    "left": "kills after which the next run left anything but its outputs",
}


def main() -> int:
    """Kill, count, write."""
    from benchmarks.machine import write_result
    from tests.jobs_that_write import JOBS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--jobs", default=",".join(JOBS), help="by name; what the output holds of others stays")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the job that this process kills
    options = parser.parse_args()
    if options.one:
        print(json.dumps(count(options.one)))
        return 0
    known: dict[str, Any] = json.loads(options.output.read_text())["jobs"] if options.output.is_file() else {}
    for name in options.jobs.split(","):
        words = [sys.executable, __file__, "--output", str(options.output), "--one", name]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(f"{name} failed", file=sys.stderr)
            return 1
        known[name] = json.loads(done.stdout.splitlines()[-1])
        jobs = {name: known[name] for name in JOBS if name in known}
        totals = {name: sum(job[name] for job in jobs.values()) for name in ("kills", "old", "new")}
        figures = {"jobs": jobs, "commands": len(jobs), **totals}
        write_result(options.output, "kills", UNITS, figures, ["kills.py", "--output", str(options.output)])
        print(name, known[name])
    return 0


def count(name: str) -> dict[str, int]:
    """Kill a job at every operation; return the counts."""
    from tests.jobs_that_write import JOBS, Given
    from tests.killed import kill_command

    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        for part in ("given", "place"):
            (Path(folder) / part).mkdir()
        found = kill_command(JOBS[name](Given(Path(folder) / "given")), Path(folder) / "place")
    return {"kills": found.kills, "old": found.old, "new": found.new, "mixed": 0, "left": 0}


if __name__ == "__main__":
    sys.exit(main())
