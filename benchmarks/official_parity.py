"""Measure how far converted checkpoints score from the official graph, written out independently in NumPy.

    python benchmarks/official_parity.py --output docs/results/official-parity.json

The trained official checkpoints are not needed: stand-ins of both architectures get random weights, are written in the
official format (TensorFlow variables, settings, vocabulary), converted with `bleurt-repro convert`, and scored. The same
pairs go through `tests/official_checkpoints.py`, which computes the published architecture in double precision and shares
no code with the package: BERT for the English checkpoints, RemBERT (factorised embeddings, no output embedding) for the
BLEURT-20 family. The difference from the graph with the other GELU shows what a wrong graph would look like.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.official_checkpoints import (  # noqa: E402
    PAIRS,
    SENTENCES,
    SIZES,
    expected_scores,
    make_official_bert,
    make_official_rembert,
)

SEEDS = (0, 1, 2)
PAIRED = [*PAIRS, *zip(SENTENCES, [*SENTENCES[1:], ""], strict=True)]
# Deeper and wider than the stand-in of the test suite.
LARGER = {
    **SIZES, "hidden_size": 96, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 192,
    "max_position_embeddings": 128,
}  # fmt: skip
STAND_INS = {
    "BERT, 2 layers of 32": (make_official_bert, SIZES, {}),
    "RemBERT, 2 layers of 32, embeddings of 8": (make_official_rembert, SIZES, {"embedding": 8}),
    "RemBERT, 6 layers of 96, embeddings of 24": (make_official_rembert, LARGER, {"embedding": 24}),
}


def measure(name: str, gelu: str, seed: int) -> dict[str, float]:
    """Convert a stand-in, and compare its scores with those of the graph.

    Returns:
        the largest difference, that from the graph with the other GELU, and how far the scores spread.
    """
    from bleurt_repro import BleurtScorer
    from bleurt_repro.metric.convert.convert import convert

    make, sizes, options = STAND_INS[name]
    if make is make_official_rembert:
        options = {**options, "seed": seed, "sizes": sizes}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some pairs are longer than the checkpoint reads, on purpose
        variables = make(Path(folder) / "official", **options)
        convert(str(Path(folder) / "official"), str(Path(folder) / "converted"), gelu=gelu)
        scorer = BleurtScorer(str(Path(folder) / "converted"), device="cpu")
        scores = scorer.score(references=[r for r, _ in PAIRED], candidates=[c for _, c in PAIRED])
        graphs = {
            name: expected_scores(scorer, variables, name, PAIRED, sizes) for name in (gelu, *{"tanh", "erf"} - {gelu})
        }
    differences = [max(abs(a - b) for a, b in zip(scores, graph, strict=True)) for graph in graphs.values()]
    return {"largest": differences[0], "other_gelu": differences[1], "spread": max(scores) - min(scores)}


def measure_all(seeds: tuple[int, ...] = SEEDS) -> list[dict[str, Any]]:
    """Measure every stand-in with either GELU; of several random draws the largest difference counts."""
    rows = []
    for name, (make, _, _) in STAND_INS.items():
        for gelu in ("tanh", "erf"):
            drawn = seeds if make is make_official_rembert else seeds[:1]
            found = [measure(name, gelu, seed) for seed in drawn]
            largest = max(one["largest"] for one in found)
            smallest = min(one["other_gelu"] for one in found)
            spread = min(one["spread"] for one in found)
            rows.append(
                {"stand_in": name, "gelu": gelu, "draws": len(drawn), "pairs": len(PAIRED), "largest_difference": largest,
                 "smallest_difference_with_other_gelu": smallest, "spread_of_scores": spread}
            )  # fmt: skip
    return rows


def main() -> None:
    """Measure, and write the results."""
    from bleurt_repro.training.results import Result

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--output", required=True, help="JSON file to write")
    output = Path(parser.parse_args().output)
    rows = measure_all()
    output.parent.mkdir(parents=True, exist_ok=True)
    Result(
        kind="official-parity",
        command=f"python benchmarks/official_parity.py --output {output.name}",
        figures={"unit": "score", "compared_with": "the official graph in NumPy, double precision", "rows": rows},
        seed=SEEDS[0],
    ).write(output)
    for row in rows:
        print(f"{row['stand_in']}, {row['gelu']}: {row['largest_difference']:.1e}")


if __name__ == "__main__":
    main()
