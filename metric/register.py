"""Make `evaluate.load("bleurt_repro")` resolve by that bare name, from any folder and offline.

`evaluate` looks a bare name up on the Hub and then in its own cache of modules. Registering puts the module into that
cache in evaluate's own layout; nothing is patched.
"""

from __future__ import annotations

from pathlib import Path

NAME = "bleurt_repro"
SCRIPT = Path(__file__).parent / NAME / f"{NAME}.py"


def register(name: str = NAME) -> Path:
    """Copy the metric's module into evaluate's module cache, in place of an earlier version.

    Args:
        name: the bare name to load it by. As "bleurt" it is what `evaluate.load("bleurt", "bleurt-base-512",
            module_type="metric")` finds wherever evaluate's own module cannot run: without the package of official
            BLEURT, or offline.

    Returns:
        the file that `evaluate.load(name)` reads from now on.

    Raises:
        ValueError: if the name is no bare name.
        OSError: if the cache cannot be written.
    """
    if not name.isidentifier():
        raise ValueError(f"a metric is registered by a bare name such as bleurt, found {name!r}")
    from datasets import DownloadMode
    from evaluate import config
    from evaluate.loading import _create_importable_file, init_dynamic_modules  # private: evaluate is pinned below 0.5

    root = init_dynamic_modules("evaluate_modules", hf_modules_cache=config.HF_MODULES_CACHE)
    _, content_hash = _create_importable_file(
        str(SCRIPT),
        local_imports=[],
        additional_files=[],
        dynamic_modules_path=root,
        module_namespace="metrics",
        name=f"evaluate-metric/{name}",
        # evaluate never replaces a folder it knows, so going back to an older version would not take effect
        download_mode=DownloadMode.FORCE_REDOWNLOAD,
    )
    return Path(root) / "metrics" / f"evaluate-metric--{name}" / content_hash / f"{name}.py"
