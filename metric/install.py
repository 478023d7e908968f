"""How to install the package, said in one place: error messages, cards and the Space take it from here.

No registry has the package. It is installed from a clone, or from the address of a public repository where there is one.
"""

from __future__ import annotations

import os

DISTRIBUTION = "bleurt-repro"
SOURCE_VARIABLE = "BLEURT_REPRO_SOURCE"
# What pip fetches the package by, such as git+https://github.com/ORG/NAME; None while there is no public repository.
SOURCE: str | None = None


def package_source(source: str | None = None) -> str | None:
    """Return the address that pip fetches the package by.

    Args:
        source: an address that takes precedence over the environment variable `BLEURT_REPRO_SOURCE` and over `SOURCE`.
    """
    return source or os.environ.get(SOURCE_VARIABLE) or SOURCE


def install_command(extra: str = "", source: str | None = None) -> str:
    """Return the command that installs the package: from its address if there is one, else in a clone.

    Args:
        extra: optional dependencies to install with it, such as "demo".
        source: as for `package_source`.
    """
    extras = f"[{extra}]" if extra else ""
    if address := package_source(source):
        return f'pip install "{DISTRIBUTION}{extras} @ {address}"'
    return f"pip install -c constraints.txt '.{extras}'" if extra else "pip install -c constraints.txt ."


def install_hint(extra: str = "") -> str:
    """Return the same command for an error message, with the folder that it must run in."""
    place = "" if package_source() else " in a clone of the repository"
    return f"`{install_command(extra)}`{place}"
