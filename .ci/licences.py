"""List the licences of all that the package depends on, from what is installed.

    python .ci/licences.py > docs/reference/licences.md

Every package is followed from the requirements of bleurt-repro, extras included, as the installed metadata tell it.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

ROOT = "bleurt-repro"
HEAD = """# Licences of dependencies

What `bleurt-repro` needs, directly or through others, its optional parts included, as installed where this was written.
Made by `python .ci/licences.py > docs/reference/licences.md`. The package itself is under the Apache License 2.0.

| package | version | needed by | licence, in its own words |
|---|---|---|---|
"""
LONGEST = 80  # characters; some packages put the whole text there


def main() -> None:
    """Write the table."""
    found: dict[str, tuple[Distribution, set[str]]] = {}
    follow(ROOT, "", found)
    rows = [row(package, needed_by) for name, (package, needed_by) in sorted(found.items()) if name != ROOT]
    sys.stdout.write(HEAD + "".join(rows))


def follow(name: str, needed_by: str, found: dict[str, tuple[Distribution, set[str]]]) -> None:
    """Add a package and all it requires; what is not installed, for another system say, is left out."""
    name = re.sub(r"[-_.]+", "-", name).lower()
    if name in found:
        found[name][1].add(needed_by)
        return
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return
    found[name] = (package, {needed_by})
    for requirement in package.requires or ():
        if name == ROOT or "extra ==" not in requirement:
            follow(re.split(r"[ ;\[<>=!~(]", requirement, maxsplit=1)[0], name, found)


def row(package: Distribution, needed_by: set[str]) -> str:
    """Lay out one package."""
    shown = ", ".join(sorted(needed_by)[:3]) + (f" and {len(needed_by) - 3} more" if len(needed_by) > 3 else "")
    return f"| {package.name} | {package.version} | {shown} | {licence(package)} |\n"


def licence(package: Distribution) -> str:
    """Give the SPDX expression, else the classifiers, else the first line of the licence field."""
    data = package.metadata
    classified = [
        value.rsplit(" :: ", 1)[1] for value in data.get_all("Classifier", []) if value.startswith("License ::")
    ]
    words = data.get("License-Expression") or ", ".join(classified) or (data.get("License") or "").strip()
    return (words.splitlines() or ["not stated"])[0][:LONGEST].replace("|", "/") or "not stated"


if __name__ == "__main__":
    main()
