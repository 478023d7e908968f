"""Change formulas and hyper-parameters one at a time, and count how many of the changes the tests see.

    python benchmarks/mutants.py --output docs/results/mutants.json [--mutants 60] [--seed 0] [--groups losses,signals]
    python benchmarks/mutants.py --output docs/results/mutants.json --again     # those that live, after tests were added

It works in a copy of the repository. A mutant changes one thing: an operator of arithmetic or comparison, a number, a
truth value, `and`, `or` or `not` of a formula, or one value of a configuration or of a class of settings. Of each group of
files so many mutants are drawn; the group's own tests run against each, and a mutant that makes none of them fail, or last
too long, lives. Linux only.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("metric", "datasets_builders", "training", "hub_cards")
SECONDS = 300

PAPER_CONFIGS = [
    "training/configs/*_base.yaml",
    "training/configs/*_large.yaml",
    "training/configs/*_no_*.yaml",
    "training/configs/robleurt_*.yaml",
    "datasets_builders/configs/synthetic_paper.yaml",
]
# The files of each group, by patterns, and the tests that run against its mutants.
GROUPS: dict[str, tuple[list[str], list[str]]] = {
    "agreement": (
        ["metric/statistics.py"],
        [
            "tests/metric/test_agreement.py",
            "tests/metric/test_bootstrap.py",
            "tests/training/experiments/test_wmt_measures.py",
        ],
    ),
    "encoding": (
        ["metric/forward/encoding.py"],
        [f"tests/metric/forward/test_{n}.py" for n in ("encoding", "unread", "long_texts")],
    ),
    "calibration": (
        ["metric/calibration.py"],
        ["tests/metric/test_calibration.py", "tests/metric/test_reliability.py", "tests/training/test_reliability.py"],
    ),
    "comparison": (["metric/compare/compare.py", "metric/compare/overlap.py"], ["tests/metric/compare"]),
    "signals": (["datasets_builders/signals/*.py"], ["tests/datasets_builders/signals"]),
    "splits": (
        ["datasets_builders/ratings/splits.py", "datasets_builders/ratings/relative_ranks.py"],
        [f"tests/datasets_builders/ratings/test_{n}.py" for n in ("splits", "relative_ranks")],
    ),
    "losses": (
        ["training/losses.py", "training/pretraining_model.py", "training/trainer.py"],
        [f"tests/training/test_{n}.py" for n in ("ranking", "model", "trainer", "run", "pretrain")],
    ),
    "denoising": (["training/denoise.py"], ["tests/training/test_denoise.py"]),
    "measures": (["training/experiments/measure.py"], ["tests/training/experiments"]),
    "hyper-parameters": (
        [*PAPER_CONFIGS, "training/run.py", "training/finetune.py", "training/pretrain.py"],
        ["tests/training/test_paper_settings.py", "tests/datasets_builders/synthetic/test_config.py"],
    ),
}
# Of these files only the values of classes, which are settings.
SETTINGS = ("training/run.py", "training/finetune.py", "training/pretrain.py")

# Values of configurations by which a run gives nothing else.
UNSEEN = ("logging_steps", "unit_segments", "segments_per_part", "batch_tokens")

SWAPS: dict[type[ast.AST], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+", ast.Pow: "*",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.And: "or", ast.Or: "and",
}  # fmt: skip
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and", ast.Or: "or",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: the characters from `start` to `end` of a file become `new`."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.old} -> {self.new}"


def mutants_of(file: str, text: str) -> list[Mutant]:
    """List the mutants of a file.

    Args:
        file: its path in the repository.
        text: its content.
    """
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def mutant(line: int, start: int, end: int, new: str) -> Mutant:
        return Mutant(file, line, starts[line - 1] + start, starts[line - 1] + end, lines[line - 1][start:end], new)

    if file.endswith(".yaml"):
        return [
            mutant(number, begin, begin + len(value), changed_setting(value))
            for number, line in enumerate(lines, start=1)
            for begin, value in setting(line)
        ]
    tree = ast.parse(text)
    found = []
    for node in changeable(tree, only_settings=file in SETTINGS):
        at = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and len(lines[at - 1].encode()) == len(lines[at - 1]):
            if isinstance(node.value, bool):
                found.append(mutant(at, node.col_offset, node.end_col_offset or 0, str(not node.value)))
            elif isinstance(node.value, int | float):
                found.append(mutant(at, node.col_offset, node.end_col_offset or 0, changed_number(node.value)))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found.append(mutant(at, node.col_offset, node.operand.col_offset, ""))
        else:
            found += [mutant(*place) for place in operators(node, lines)]
    return found


def changeable(tree: ast.Module, only_settings: bool) -> Iterator[ast.AST]:
    """Walk over what may be changed: no annotation, message, text or `strict=`, and nothing at the top of the file."""
    for part in ast.walk(tree) if only_settings else tree.body:
        if only_settings and isinstance(part, ast.ClassDef):
            for item in part.body:
                if isinstance(item, ast.AnnAssign) and item.value is not None:
                    named = [word.value for word in getattr(item.value, "keywords", []) if word.arg == "default"]
                    yield from (node for value in named or [item.value] for node in ast.walk(value))
        elif not only_settings:
            yield from _walk(part)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    if isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel"):
        return
    yield node
    for name, child in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment", "decorator_list"):
            continue
        for item in child if isinstance(child, list) else [child]:
            if isinstance(item, ast.AST):
                yield from _walk(item)


def operators(node: ast.AST, lines: Sequence[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield line, start, end and the new sign of each operator of an expression that stands on one line."""
    if isinstance(node, ast.BinOp):
        sides, signs = [node.left, node.right], [node.op]
    elif isinstance(node, ast.Compare):
        sides, signs = [node.left, *node.comparators], list(node.ops)  # type: ignore[list-item,arg-type]
    elif isinstance(node, ast.BoolOp):
        sides, signs = list(node.values), [node.op] * (len(node.values) - 1)  # type: ignore[list-item]
    else:
        return
    for left, right, sign in zip(sides, sides[1:], signs, strict=False):
        if type(sign) not in SWAPS or left.end_lineno != right.lineno:
            continue
        between = lines[right.lineno - 1].encode()[left.end_col_offset or 0 : right.col_offset].decode()
        written = SIGNS[type(sign)]
        if written in between and lines[right.lineno - 1].isascii():
            start = (left.end_col_offset or 0) + between.index(written)
            yield right.lineno, start, start + len(written), SWAPS[type(sign)]


def changed_number(value: float) -> str:
    """Return another number: the next one of a small whole number, of others half as much again."""
    if isinstance(value, int):
        return str(value + 1) if abs(value) < 10 else str(value * 3 // 2)
    return repr(value * 1.5 or 1.0)


def setting(line: str) -> Iterator[tuple[int, str]]:
    """Yield where the value of a line of YAML begins, and the value; nothing of a line without one."""
    key, colon, rest = line.partition(":")
    if key.strip() in UNSEEN:
        return
    value = rest.partition(" #")[0].strip()
    if colon and value and not key.strip().startswith("#") and value[0] not in "[{\"'&*|>":
        yield len(key) + 1 + rest.index(value), value


def changed_setting(value: str) -> str:
    """Return another value of the same type."""
    if value in ("true", "false"):
        return "false" if value == "true" else "true"
    try:
        return changed_number(int(value) if value.lstrip("-").isdigit() else float(value))
    except ValueError:
        return f"{value}-x"


def main() -> int:
    """Draw, run, count, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--mutants", type=int, default=60, help="of each group, at most")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument(
        "--again", action="store_true", help="run those of the output that live, and count who is killed now"
    )
    parser.add_argument("--groups", default=",".join(GROUPS), help="what the output holds of other groups stays")
    options = parser.parse_args()
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copy = copy_of_repository(Path(name))
        groups: dict[str, Any] = known(options.output)
        for group in options.groups.split(","):
            groups[group] = run_group(copy, group, options, groups.get(group) if options.again else None)
            # in a process of its own: what it imports of the package would stand in for the mutants
            ordered = {name: groups[name] for name in GROUPS if name in groups}
            writing = multiprocessing.get_context("fork").Process(target=write, args=(options, ordered))
            writing.start()
            writing.join()
            if writing.exitcode:
                return 1
    return 0


def known(output: Path) -> dict[str, Any]:
    """Read the groups that the output holds."""
    import json

    return dict(json.loads(output.read_text())["groups"]) if output.is_file() else {}


def write(options: argparse.Namespace, groups: dict[str, Any]) -> None:
    """Write the figures."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.machine import write_result

    totals = {name: sum(group[name] for group in groups.values()) for name in ("mutants", "killed", "killed at first")}
    figures = {**totals, "share": totals["killed"] / totals["mutants"], "groups": groups}
    words = ["mutants.py", "--output", str(options.output), "--mutants", str(options.mutants)]
    write_result(options.output, "mutants", {"share": "killed of all"}, figures, words, seed=options.seed)


def copy_of_repository(place: Path) -> Path:
    """Copy the repository's files, lay its packages out as they are imported, and import what takes long."""
    copy = place / "main"
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for file in files:
        if (ROOT / file).is_file():
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, copy / file)
    for room in ROOMS:  # as they are imported: an installed package must not be found in their place
        (copy / "bleurt_repro" / room).symlink_to(copy / room)
    sys.path.insert(0, str(copy))
    os.environ.update(PYTHONPATH=str(copy), OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    os.environ.update(HF_HOME=str(place / "caches"), PYTHONDONTWRITEBYTECODE="1", TQDM_DISABLE="1")
    os.environ.update(dict.fromkeys(("HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE", "HF_DATASETS_OFFLINE"), "1"))
    os.chdir(copy)
    import datasets  # noqa: F401  # before the forks
    import hypothesis  # noqa: F401
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import torch  # noqa: F401
    import transformers.models.bert.modeling_bert
    import transformers.trainer  # noqa: F401

    return copy


def run_group(
    copy: Path, group: str, options: argparse.Namespace, before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Run a group's tests against its mutants, or against those that lived before; return the counts and those that live."""
    patterns, tests = GROUPS[group]
    if not passes(copy, tests):
        raise SystemExit(f"the tests of {group} fail without a mutant: {' '.join(tests)}")
    files = sorted({str(path.relative_to(copy)) for pattern in patterns for path in copy.glob(pattern)})
    every = [mutant for file in files for mutant in mutants_of(file, (copy / file).read_text(encoding="utf-8"))]
    if before is None:
        drawn = random.Random(f"{options.seed} {group}").sample(every, min(options.mutants, len(every)))
    else:
        drawn = [mutant for mutant in every if str(mutant) in before["alive"]]
    alive = []
    for mutant in sorted(drawn, key=str):
        path = copy / mutant.file
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: mutant.start] + mutant.new + text[mutant.end :], encoding="utf-8")
        if passes(copy, tests):
            alive.append(str(mutant))
            print("alive", mutant, flush=True)
        path.write_text(text, encoding="utf-8")
    print(f"{group}: {len(drawn) - len(alive)} of {len(drawn)} killed, drawn of {len(every)}", flush=True)
    count = before["mutants"] if before else len(drawn)
    first = before["killed at first"] if before else len(drawn) - len(alive)
    return {
        "mutants": count, "of": len(every), "killed": count - len(alive), "killed at first": first, "alive": alive,
    }  # fmt: skip


def passes(copy: Path, tests: Sequence[str]) -> bool:
    """Run tests in a fork; return whether all pass in time."""
    if "bleurt_repro" in sys.modules:
        raise RuntimeError("the package was imported before the fork: the tests would not see the mutants")
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        log = os.open(copy.parent / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        tempfile.tempdir = str(copy.parent)  # no test cleans up behind `os._exit`
        import pytest

        os._exit(int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", "not long", *tests])))
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


if __name__ == "__main__":
    sys.exit(main())
