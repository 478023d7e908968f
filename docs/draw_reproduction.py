"""Draw the measured tables of docs/reproduction.md from results, so that no figure in it is typed.

    python docs/draw_reproduction.py docs/reproduction.md docs/results/reproduction

Between `<!-- begin NAME -->` and `<!-- end NAME -->` stands the table of NAME.json in the second folder, or, where there is
no such file, "not measured".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bleurt_repro.training.experiments.ablation import ALL, NONE, ONLY, STEPS, WITHOUT, relative_gain
from bleurt_repro.training.experiments.drift import draw_table as draw_drift
from bleurt_repro.training.experiments.options import ROWS
from bleurt_repro.training.experiments.report import HEADINGS, PUBLISHED, markdown, percent
from bleurt_repro.training.experiments.webnlg import draw_table as draw_webnlg
from bleurt_repro.training.results import Result

NOT_MEASURED = "not measured\n"
MARKS = re.compile(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def draw_document(text: str, folder: Path) -> str:
    """Return a document with the tables drawn from results between its marks.

    Args:
        text: the document.
        folder: of the results.
    """
    return MARKS.sub(lambda match: f"{match[1]}\n{_draw(folder / f'{match[2]}.json')}\n{match[3]}", text)


def draw_wmt(results: Mapping[str, Any]) -> str:
    """Draw averages over language pairs: ours with intervals, then the published ones."""
    table = {}
    for row in results["rows"]:
        ends = row["average_intervals"]
        table[row["name"]] = {
            HEADINGS[name]: percent(row["average"].get(name), *ends.get(name, ())) for name in results["measures"]
        }
    for row in results.get("published", []):
        if row["average"]:
            table[f"{row['name']} {PUBLISHED}"] = {
                HEADINGS[name]: percent(row["average"].get(name)) for name in results["measures"]
            }
    return f"Averages over language pairs, x 100 [95 % interval].\n\n{markdown(table)}"


def draw_ablation(results: Mapping[str, Any]) -> str:
    """Draw the gains of figures 4 and 5: tau, and its gain over what the arm is compared with."""
    base = {row["arm"]: row for row in results["rows"] if row["arm"] in (NONE, ALL)}
    table = {}
    for row in results["rows"]:
        cells = {"Kendall tau x 100": percent(row["average"]["kendall_tau"])}
        against = {ALL: NONE, ONLY: NONE, STEPS: NONE, WITHOUT: ALL}.get(row["arm"])
        if against:
            gain, ends = relative_gain(results, row, base[against])
            cells["gain, % [95 % interval]"] = f"{percent(gain, *ends)} over {against}"
        table[row["name"]] = cells
    return markdown(table)


DRAWERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "wmt": draw_wmt,
    "drift": draw_drift,
    "webnlg": draw_webnlg,
    "ablation": draw_ablation,
}


def _draw(path: Path) -> str:
    if not path.is_file():
        return NOT_MEASURED
    results = Result.read(path)
    version = results.versions["bleurt_repro"]
    resampled = results.get("resample", ROWS)  # version 0.1 knew nothing else
    # version 0.1 wrote options with underscores, which are accepted still
    command = re.sub(r"--\w+", lambda option: option[0].replace("_", "-"), str(results.command))
    measured = f"Measured by version {version}, intervals by resampled {resampled}, with\n\n```sh\n{command}\n```\n"
    return f"{measured}\n{DRAWERS[results.kind](results)}"


def main(arguments: list[str]) -> None:
    """Redraw a document in place."""
    from bleurt_repro.metric.files.writing import write_text

    if len(arguments) != 2:
        raise ValueError("expected the document and the folder of results, such as docs/reproduction.md docs/results")
    document, folder = map(Path, arguments)
    write_text(document, draw_document(document.read_text(encoding="utf-8"), folder))


if __name__ == "__main__":
    main(sys.argv[1:])
