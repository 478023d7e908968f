"""Make `evaluate.load("bleurt_repro")` work by that bare name, from any folder and offline.

`evaluate` looks a bare name up on the Hub and then in its own cache of modules. `register` puts the module into that cache, in
evaluate's own layout; nothing is patched.
"""

from __future__ import annotations

import os
from pathlib import Path

from bleurt_repro.metric.files.writing import error_context, temporary_folder

NAME = "bleurt_repro"
SCRIPT = Path(__file__).parent / NAME / f"{NAME}.py"
NAMESPACE = "metrics"


def register(name: str = NAME) -> Path:
    """Copy the metric's module into evaluate's module cache, in place of an earlier version.

    A kill or a full disk leaves the earlier version or the new one, each of them whole.

    Args:
        name: bare name to load the module by. As "bleurt" it is what `evaluate.load("bleurt", "bleurt-base-512",
            module_type="metric")` finds wherever evaluate's own module cannot run: without the package of official
            BLEURT, or offline.

    Returns:
        the file that `evaluate.load(name)` reads from now on.

    Raises:
        ValueError: if the name is not a bare name.
        OSError: if the cache cannot be written.
    """
    if not name.isidentifier():
        raise ValueError(f"a metric is registered by a bare name such as bleurt, found {name!r}")
    from datasets import DownloadMode
    from evaluate import config
    from evaluate.loading import _create_importable_file, init_dynamic_modules  # private: evaluate is pinned below 0.5

    root = Path(init_dynamic_modules("evaluate_modules", hf_modules_cache=config.HF_MODULES_CACHE))
    versions = root / NAMESPACE / f"evaluate-metric--{name}"
    with error_context(versions):
        versions.mkdir(parents=True, exist_ok=True)
        for package in (versions, versions.parent):
            (package / "__init__.py").touch()
        with temporary_folder(versions) as temporary:
            _, content_hash = _create_importable_file(
                str(SCRIPT),
                local_imports=[],
                additional_files=[],
                dynamic_modules_path=str(temporary),
                module_namespace=NAMESPACE,
                name=f"evaluate-metric/{name}",
                download_mode=DownloadMode.FORCE_REDOWNLOAD,
            )
            new_version = temporary / NAMESPACE / versions.name / content_hash
            # evaluate loads the version whose script is the newest: from the next line on, this one.
            script = versions / content_hash / f"{name}.py"
            if script.parent.is_dir():
                os.replace(new_version / script.name, script)
                (script.parent / "__init__.py").touch()
            else:
                os.replace(new_version, script.parent)
            for version in versions.iterdir():
                if version.is_dir() and version.name not in (content_hash, "__pycache__"):
                    os.replace(version, temporary / version.name)  # at once: evaluate fails on half a version
    return script
