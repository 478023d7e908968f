"""Build a checkpoint from public data: run the stages of a recipe in order.

    python recipes/build.py mini --data DATA --work WORK
    python recipes/build.py mini --data DATA --work WORK --until mixture
    python recipes/build.py mini --data DATA --work WORK --trial --set encoder=tiny

A recipe is a YAML file beside this one. Its comments say what DATA must contain. Each stage writes a folder of WORK,
WORK/STAGE, and its log, WORK/STAGE.log. Start the command again whenever it was stopped: finished stages are skipped,
and training continues. A stage whose commands, settings or inputs have changed is run again, and so are those that read
it. WORK/build.json records the commands, times and hashes of all stages.

`--trial` shows in a minute that everything runs: all numbers of rows are divided by a large one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

import mixture
from bleurt_repro.metric.files.writing import write_text
from bleurt_repro.training.results import versions

RECIPES = Path(__file__).resolve().parent
STAGE_RECORD, BUILD_RECORD = "stage.json", "build.json"
PLACEHOLDER = re.compile(r"\{([\w-]+)\}")
PART = re.compile(r"\S*\{part\}\S*")
INPUT = re.compile(r"\{data\}/([^\s\"',]+)")
TRIAL_DIVISOR = 200
PYTHON_STAGES = {"mix": mixture.write_mixture, "hold_out": mixture.hold_out, "select": mixture.write_selected}


class Build:
    """A recipe with its folders.

    Args:
        recipe: content of the YAML file.
        data: folder of public data.
        work: folder to write.
        divisor: number by which numbers of rows are divided.
        settings: settings that replace those of the recipe.
    """

    def __init__(self, recipe: dict[str, Any], data: Path, work: Path, divisor: int, settings: dict[str, str]) -> None:
        self.settings = {**recipe["settings"], **settings}
        self.stages = {
            stage["name"]: with_parts(stage, int(self.settings.get("parts", 1))) for stage in recipe["stages"]
        }
        self.data, self.work, self.divisor = data, work, divisor
        self.fingerprints: dict[str, str] = {}
        self.hashes: dict[Path, str] = {}

    def expand(self, value: Any, stage: str, *, folders: bool = True) -> Any:
        """Replace the placeholders in a value of the recipe, at any depth.

        `{data}`, `{out}` (the folder of the stage itself) and `{STAGE}` are folders, `{123}` is that number of rows,
        other names are settings.

        Args:
            value: string, list or mapping.
            stage: stage that it belongs to.
            folders: whether to replace names of folders, too.
        """
        if isinstance(value, list):
            return [self.expand(item, stage, folders=folders) for item in value]
        if isinstance(value, dict):
            return {name: self.expand(item, stage, folders=folders) for name, item in value.items()}
        if not isinstance(value, str):
            return value

        def replacement(match: re.Match[str]) -> str:
            name = match[1]
            if name.isdigit():
                return str(-(-int(name) // self.divisor))
            if name in self.settings:
                return str(self.settings[name])
            places = {
                "data": self.data,
                "out": self.work / stage,
                **{other: self.work / other for other in self.stages},
            }
            if name not in places:
                raise ValueError(
                    f"stage {stage}: {{{name}}} is neither a stage ({', '.join(self.stages)}) nor a setting "
                    f"({', '.join(self.settings)})"
                )
            return str(places[name]) if folders else match[0]

        return PLACEHOLDER.sub(replacement, value)

    def inputs(self, stage: str) -> tuple[list[str], list[str]]:
        """Return the earlier stages and the files of DATA that a stage reads."""
        text = json.dumps(self.expand(self.stages[stage], stage, folders=False))
        names = sorted({name for name in PLACEHOLDER.findall(text) if name in self.stages})
        files = sorted(set(INPUT.findall(text)))
        return names, files

    def file_hash(self, path: Path) -> str:
        """Return the SHA-256 of a file or folder."""
        if path not in self.hashes:
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing: the comments of the recipe say what belongs there")
            files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
            digests = [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files]
            self.hashes[path] = digests[0][1] if path.is_file() else digest(digests)
        return self.hashes[path]

    def fingerprint(self, stage: str) -> str:
        """Return a hash of what a stage depends on: its commands, earlier stages, data, and local files of settings."""
        if stage not in self.fingerprints:
            names, files = self.inputs(stage)
            content = self.expand(self.stages[stage], stage, folders=False)
            above = [self.fingerprint(name) for name in names if name != stage]
            settings = {name for name in PLACEHOLDER.findall(json.dumps(self.stages[stage])) if name in self.settings}
            values = [str(self.settings[name]) for name in sorted(settings)]
            local = [Path(value) for value in values if os.path.exists(value)]  # of a long text, too
            hashes = [self.file_hash(path) for path in [*(self.data / name for name in files), *local]]
            self.fingerprints[stage] = digest([content, self.divisor, above, hashes])
        return self.fingerprints[stage]

    def run(self, stage: str) -> dict[str, Any]:
        """Run a stage unless it is done, and return its record."""
        folder, fingerprint = self.work / stage, self.fingerprint(stage)
        record = read_json(folder / STAGE_RECORD)
        if record.get("fingerprint") == fingerprint and record.get("finished"):
            typer.echo(f"{stage}: done ({record['seconds']:.0f} s)")
            return record
        # A folder of another recipe or of other inputs is made anew; an interrupted one of this recipe continues.
        if folder.exists() and record.get("fingerprint") != fingerprint:
            if not record and any(folder.iterdir()):
                raise FileExistsError(
                    f"{folder} was not written by this command: move it away, or give another --work"
                )
            shutil.rmtree(folder)
            record = {}
        folder.mkdir(parents=True, exist_ok=True)
        record = {"stage": stage, "fingerprint": fingerprint, "seconds": record.get("seconds", 0.0)}
        write_text(folder / STAGE_RECORD, json.dumps(record))
        typer.echo(f"{stage}: running")
        start = time.monotonic()
        try:
            record |= self.execute(stage)
        finally:
            record["seconds"] += time.monotonic() - start
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / STAGE_RECORD, json.dumps(record))
        _, files = self.inputs(stage)
        record |= {"finished": True, "data": {name: self.file_hash(self.data / name) for name in files}}
        write_text(folder / STAGE_RECORD, json.dumps(record, indent=1))
        return record

    def command_line(self, command: str, stage: str) -> list[str]:
        """Return the words of a command of `bleurt-repro`, or of `python` if it begins with that; empty ones are left out."""
        words = [word for part in shlex.split(command) if (word := str(self.expand(part, stage)).strip())]
        return [sys.executable, *words[1:]] if words[0] == "python" else [sys.executable, "-m", "bleurt_repro", *words]

    def execute(self, stage: str) -> dict[str, Any]:
        """Run the commands of a stage; return what the record says of them."""
        content = self.stages[stage]
        for kind, function in PYTHON_STAGES.items():
            if kind in content:
                summary = function(self.expand(content[kind], stage), self.work / stage, self.divisor)
                typer.echo(summary)
                return {"summary": summary}
        side_by_side = "side_by_side" in content
        commands = content["side_by_side"] if side_by_side else content["run"]
        commands = [commands] if isinstance(commands, str) else commands
        groups = [commands] if side_by_side else [[command] for command in commands]
        with (self.work / f"{stage}.log").open("a") as log:
            for group in groups:
                environment = {**os.environ}
                if len(group) > 1:
                    environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // len(group)))
                processes = [
                    subprocess.Popen(
                        self.command_line(command, stage),
                        stdout=log,
                        stderr=log,
                        env=environment,
                    )
                    for command in group
                ]
                codes = [process.wait() for process in processes]
                if any(codes):
                    raise ChildProcessError(f"stage {stage} failed: see {self.work / stage}.log")
        return {"commands": [self.expand(command, stage, folders=False) for command in commands]}


def read_recipe(path: Path) -> dict[str, Any]:
    """Read a recipe. One that extends another has the stages of that one and settings of its own."""
    recipe = dict(yaml.safe_load(path.read_text(encoding="utf-8")))
    if "extends" not in recipe:
        return recipe
    parent = read_recipe(path.with_name(f"{recipe['extends']}.yaml"))
    return {**parent, "settings": {**parent["settings"], **recipe["settings"]}}


def with_parts(stage: dict[str, Any], parts: int) -> dict[str, Any]:
    """Write out what has `{part}` for each part: commands that run side by side, or words of other commands."""
    numbers = [str(part + 1) for part in range(parts)]

    def repeat(command: str) -> str:
        return PART.sub(lambda word: " ".join(word[0].replace("{part}", number) for number in numbers), command)

    if isinstance(command := stage.get("side_by_side"), str) and "{part}" in command:
        return {**stage, "side_by_side": [command.replace("{part}", number) for number in numbers]}
    if "run" in stage:
        commands = stage["run"]
        return {**stage, "run": repeat(commands) if isinstance(commands, str) else [*map(repeat, commands)]}
    return stage


def digest(content: Any) -> str:
    """Return a short hash of a JSON value."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file; {} if there is none."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def main(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe beside this file, such as mini, or a YAML file.")],
    data: Annotated[
        Path, typer.Option(help="Folder of public data; the comments of the recipe say what it contains.")
    ],
    work: Annotated[Path, typer.Option(help="Folder to write; an interrupted build continues.")],
    device: Annotated[str, typer.Option(help="auto, or cpu to leave a GPU alone.")] = "auto",
    trial: Annotated[bool, typer.Option(help="Divide all numbers of rows, to see that everything runs.")] = False,
    until: Annotated[str | None, typer.Option(help="Last stage to run.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE in place of a setting.")] = None,
) -> None:
    """Build a checkpoint from public data."""
    path = Path(recipe) if recipe.endswith(".yaml") else RECIPES / f"{recipe}.yaml"
    content = read_recipe(path)
    settings = dict(item.split("=", 1) for item in set_ or ())
    unknown = [name for name in settings if name not in content["settings"]]
    if unknown:
        raise typer.BadParameter(f"--set {unknown[0]}: expected one of {', '.join(content['settings'])}")
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    build = Build(content, data, work, TRIAL_DIVISOR if trial else 1, settings)
    if until and until not in build.stages:
        raise typer.BadParameter(f"--until {until}: expected one of {', '.join(build.stages)}")
    records = []
    for stage in build.stages:
        records.append(build.run(stage))
        if stage == until:
            break
    summary = {
        "kind": "build",
        "recipe": path.stem,
        "settings": build.settings,
        "versions": versions(),
        "cores": os.cpu_count(),
        "stages": records,
    }
    write_text(work / BUILD_RECORD, json.dumps(summary, indent=1))


if __name__ == "__main__":
    typer.run(main)
