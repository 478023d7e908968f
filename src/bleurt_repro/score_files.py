"""Score files with the flags of official BLEURT's command, so that scripts written for it run as they are.

    python -m bleurt_repro.score_files -candidate_file=candidates -reference_file=references \\
        -bleurt_checkpoint=BLEURT-20 -scores_file=scores
    python -m bleurt_repro.score_files -sentence_pairs_file=pairs.jsonl -bleurt_checkpoint=BLEURT-20

Flags: https://github.com/google-research/bleurt/blob/master/bleurt/score_files.py. Without -scores_file the scores go to
standard output; without -bleurt_checkpoint the embedded checkpoint scores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bleurt_repro.cli import main as run_command
from bleurt_repro.cli_style import DEFAULT_CHECKPOINT

# Padded tokens that a pair takes at most in official checkpoints: the scorer's batches are counted in tokens.
LONGEST = 512


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `bleurt-repro score` with what the official flags ask for.

    Args:
        arguments: the words after the program's name; those of the process by default.
    """
    given = _parser().parse_args(arguments)
    lists, pairs = (given.candidate_file, given.reference_file), given.sentence_pairs_file
    words = ["score", "--checkpoint", given.bleurt_checkpoint, "--output", given.scores_file or "-"]
    if pairs is not None and lists == (None, None):
        words += ["--pairs", pairs]
    elif pairs is None and None not in lists:
        words += ["--candidates", lists[0], "--references", lists[1]]
    else:
        sys.stderr.write(
            "score_files: error: give either -sentence_pairs_file, or both -candidate_file and -reference_file\n"
        )
        sys.exit(2)
    run_command([*words, "--batch-tokens", str(given.bleurt_batch_size * LONGEST)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bleurt_repro.score_files",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    flags = {
        "candidate_file": "text of one candidate a line",
        "reference_file": "text of one reference a line",
        "sentence_pairs_file": "JSON lines of reference and candidate, instead of the two",
        "scores_file": "file to write, one score a line",
    }
    for name, description in flags.items():
        parser.add_argument(f"-{name}", f"--{name}", help=description)
    parser.add_argument(
        "-bleurt_checkpoint", "--bleurt_checkpoint", default=DEFAULT_CHECKPOINT, help="name, folder or Hub id"
    )
    parser.add_argument("-bleurt_batch_size", "--bleurt_batch_size", type=int, default=16, help="pairs in a batch")
    return parser


if __name__ == "__main__":
    main()
