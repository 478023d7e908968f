"""Fuzz one reader, guided by coverage (https://github.com/google/atheris).

    python -m fuzz.run pairs --seconds 300 [--corpus FOLDER]

Inputs that reach new code are added to the corpus. An input that fails is written to the folder as crash-*, slow-* or oom-*,
and the run ends with the traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

# Packages that are instrumented, so that the fuzzer sees which branches an input takes.
WATCHED = ["bleurt_repro", "json", "csv", "zipfile", "gzip", "yaml"]
SECONDS_PER_CASE = 20
MEGABYTES = 3000
LONGEST = 4096  # bytes
# Libraries that are imported without instrumentation, which would take minutes.
LIBRARIES = {
    "ratings": ("pyarrow", "pyarrow.parquet"),
    "configs": ("torch", "transformers"),
    "settings": ("torch", "transformers"),
    "weights": ("torch", "safetensors.torch"),
    "uploads": ("gradio",),
}


def main() -> None:
    """Instrument, collect the seeds and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--corpus", type=Path, help="default: fuzz-corpus/TARGET in the working folder")
    options = parser.parse_args()
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TQDM_DISABLE="1")
    import atheris

    from fuzz.targets import TARGETS, seeds

    corpus = options.corpus or Path("fuzz-corpus") / options.target
    seeds(options.target, corpus)
    for library in LIBRARIES.get(options.target, ()):
        importlib.import_module(library)
    with atheris.instrument_imports(include=WATCHED):
        for path in sorted(corpus.iterdir()):  # imports all that the target needs
            TARGETS[options.target](path.read_bytes())
    arguments = [
        f"-max_total_time={options.seconds}",
        f"-timeout={SECONDS_PER_CASE}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={corpus.parent}/{options.target}-",
        "-print_final_stats=1",
        str(corpus),
    ]
    atheris.Setup([sys.argv[0], *arguments], TARGETS[options.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
