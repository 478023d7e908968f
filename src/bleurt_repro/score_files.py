"""Score files with the flags of the official BLEURT command, so that scripts written for it run unchanged.

    python -m bleurt_repro.score_files -candidate_file=candidates -reference_file=references \\
        -bleurt_checkpoint=BLEURT-20 -scores_file=scores
    python -m bleurt_repro.score_files -sentence_pairs_file=pairs.jsonl -bleurt_checkpoint=BLEURT-20

Flags: https://github.com/google-research/bleurt/blob/master/bleurt/score_files.py. Without -scores_file the scores are
written to standard output; without -bleurt_checkpoint the embedded checkpoint is used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bleurt_repro.cli import main as run_command
from bleurt_repro.metric.options import DEFAULT_CHECKPOINT

# The longest pair that official checkpoints read, in tokens. The scorer counts its batches in tokens, not in pairs.
MAX_LENGTH = 512


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `bleurt-repro score` with the options that the official flags stand for.

    Args:
        arguments: words after the program's name; those of the process by default.
    """
    flags = _parser().parse_args(arguments)
    texts, pairs = (flags.candidate_file, flags.reference_file), flags.sentence_pairs_file
    command = ["score", "--checkpoint", flags.bleurt_checkpoint, "--output", flags.scores_file or "-"]
    if pairs is not None and texts == (None, None):
        command += ["--pairs", pairs]
    elif pairs is None and None not in texts:
        command += ["--candidates", texts[0], "--references", texts[1]]
    else:
        sys.stderr.write(
            "score_files: error: give either -sentence_pairs_file, or both -candidate_file and -reference_file\n"
        )
        sys.exit(2)
    run_command([*command, "--batch-tokens", str(flags.bleurt_batch_size * MAX_LENGTH)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bleurt_repro.score_files",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    flags = {
        "candidate_file": "text file with one candidate per line",
        "reference_file": "text file with one reference per line",
        "sentence_pairs_file": "JSON lines with reference and candidate, instead of the two files",
        "scores_file": "file to write, with one score per line",
    }
    for name, description in flags.items():
        parser.add_argument(f"-{name}", f"--{name}", help=description)
    parser.add_argument(
        "-bleurt_checkpoint",
        "--bleurt_checkpoint",
        default=DEFAULT_CHECKPOINT,
        help="checkpoint: name, folder or Hub id",
    )
    parser.add_argument(
        "-bleurt_batch_size", "--bleurt_batch_size", type=int, default=16, help="number of pairs per batch"
    )
    return parser


if __name__ == "__main__":
    main()
