"""How to install the package and its extras, in one place for error messages, cards and the Space.

The package is in no registry. pip installs it from a clone, or from a public repository if there is one.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

DISTRIBUTION = "bleurt-repro"
SOURCE_VARIABLE = "BLEURT_REPRO_SOURCE"
# Address that pip installs the package from, such as git+https://github.com/ORG/NAME; None if there is no public one.
SOURCE: str | None = None
# Modules that an extra adds to a plain installation: the requirements in setup.cfg by the names that Python imports.
SIGNALS = ("sacremoses", "rouge_score", "bert_score")
EXTRAS = {
    "data": SIGNALS,
    "train": (*SIGNALS, "accelerate", "scipy", "matplotlib", "nltk"),
    "demo": ("gradio", "scipy", "matplotlib", "markdown_it", "nh3"),
}


def package_source(source: str | None = None) -> str | None:
    """Return the address that pip installs the package from; None if there is none.

    Args:
        source: address that takes precedence over the environment variable `BLEURT_REPRO_SOURCE` and over `SOURCE`.
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
    folder = "" if package_source() else " in a clone of the repository"
    return f"`{install_command(extra)}`{folder}"


def require_extra(extra: str, command: str) -> None:
    """Check that an extra is installed, before a command reads or writes anything.

    Args:
        extra: one of `EXTRAS`.
        command: what needs it, for the message.

    Raises:
        ValueError: if modules of the extra are missing.
    """
    if missing := [module for module in EXTRAS[extra] if find_spec(module) is None]:
        raise ValueError(f"{command} needs {', '.join(missing)}: install the extra with {install_hint(extra)}")
