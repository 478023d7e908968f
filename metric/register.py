"""Make `evaluate.load("bleurt_repro")` resolve by that bare name, from any folder and offline.

`evaluate` looks a bare name up on the Hub and then in its own cache of modules. Registering puts the module into that
cache in evaluate's own layout; nothing is patched.
"""

from __future__ import annotations

from pathlib import Path

NAME = "bleurt_repro"
SCRIPT = Path(__file__).parent / NAME / f"{NAME}.py"


def register() -> Path:
    """Copy the metric's module into evaluate's module cache, in place of an earlier version.

    Returns:
        the file that `evaluate.load("bleurt_repro")` reads from now on.

    Raises:
        OSError: if the cache cannot be written.
    """
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
        name=f"evaluate-metric/{NAME}",
        # evaluate never replaces a folder it knows, so going back to an older version would not take effect
        download_mode=DownloadMode.FORCE_REDOWNLOAD,
    )
    return Path(root) / "metrics" / f"evaluate-metric--{NAME}" / content_hash / f"{NAME}.py"
