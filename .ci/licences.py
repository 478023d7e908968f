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

The packages that `bleurt-repro` needs, directly or through others, with all extras, by licence. Made by
`python .ci/licences.py > docs/reference/licences.md`. The package itself is under the Apache License 2.0.

| licence, as the package states it | packages |
|---|---|
"""
# Spellings of the same licence.
SAME = {
    "Apache 2.0 License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "BSD License": "BSD",
    "3-Clause BSD License": "BSD-3-Clause",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
}
LONGEST = 100  # characters; some packages put the whole text there


def main() -> None:
    """Write the table."""
    packages: dict[str, Distribution] = {}
    follow(ROOT, packages)
    licences: dict[str, list[str]] = {}
    for name, package in sorted(packages.items()):
        if name != ROOT:
            licences.setdefault(licence(package), []).append(package.name)
    rows = [f"| {name} | {', '.join(names)} |\n" for name, names in sorted(licences.items())]
    sys.stdout.write(HEAD + "".join(rows))


def follow(name: str, packages: dict[str, Distribution]) -> None:
    """Add a package and all that it requires; packages that are not installed are left out."""
    name = re.sub(r"[-_.]+", "-", name).lower()
    if name in packages:
        return
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return
    packages[name] = package
    for requirement in package.requires or ():
        if name == ROOT or "extra ==" not in requirement:
            follow(re.split(r"[ ;\[<>=!~(]", requirement, maxsplit=1)[0], packages)


def licence(package: Distribution) -> str:
    """Return the SPDX expression, else the classifiers, else the first line of the licence field."""
    data = package.metadata
    classified = [
        value.rsplit(" :: ", 1)[1] for value in data.get_all("Classifier", []) if value.startswith("License ::")
    ]
    text = data.get("License-Expression") or ", ".join(classified) or (data.get("License") or "").strip()
    stated = (text.splitlines() or ["not stated"])[0][:LONGEST].replace("|", "/") or "not stated"
    return SAME.get(stated, stated)


if __name__ == "__main__":
    main()
