"""Make synthetic pairs from text: the work behind `bleurt-repro data synthetic` (BLEURT, section 4).

    bleurt-repro data synthetic --input text.txt --output pairs --config paper
    bleurt-repro data synthetic --input text.txt --output pairs --config paper --num-shards 4 --shard-index 0
    torchrun --nproc-per-node 4 -m bleurt_repro.cli data synthetic --input text.txt --output pairs --config paper
    bleurt-repro data synthetic --input text.txt --output pairs --config paper --engine ray

Stopped at any moment and started again, it continues after the last finished part, and ends with the same bytes. With a
larger `--max-segments` it adds to what is there.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.datasets_builders.signals.rouge import ROUGE_SCORE
from bleurt_repro.datasets_builders.synthetic.config import DEFAULT_INPUT, SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.pair_maker import PairMaker, model_identities
from bleurt_repro.datasets_builders.synthetic.parts import Parts, to_table
from bleurt_repro.datasets_builders.synthetic.segments import Segment, Segments
from bleurt_repro.datasets_builders.synthetic.summary import summarise
from bleurt_repro.metric.bulk.ray_engine import Ahead, RayEngine
from bleurt_repro.metric.options import choose_shard

if TYPE_CHECKING:
    from pyarrow import Table

# Raised when the same recipe would give other bytes.
FORMAT_VERSION = 2
LIBRARIES = (
    "torch",
    "transformers",
    "tokenizers",
    "sacrebleu",
    "sacremoses",
    "rouge-score",
    "bert-score",
    "numpy",
    "pyarrow",
)


def make_synthetic_pairs(
    source: str | None,
    output: str | Path,
    config: SyntheticConfig,
    num_shards: int | None = None,
    shard_index: int | None = None,
    progress: bool | None = None,
    engine: RayEngine | None = None,
) -> dict[str, Any] | None:
    """Make the pairs of an input, or one process's share of them, and sum up once all are made.

    Args:
        source: text, TSV, CSV, JSONL or Parquet file, dataset folder or Hub id; English Wikipedia by default.
        output: folder to write to, or to continue.
        config: the recipe.
        num_shards: processes that share the work; by default those of the launcher (`torchrun`), else one.
        shard_index: which of them this is, from 0.
        progress: show a bar; by default on a terminal.
        engine: where parts are made; by default in this process. Ray's workers read the input themselves.

    Returns:
        the report, or None if other processes have parts left to do.

    Raises:
        FileNotFoundError: if the input or a model cannot be found.
        ValueError: if the input or a model is not what it must be, or the folder holds something else.
    """
    shard = choose_shard(num_shards, shard_index)
    if engine is not None and shard.count > 1:
        raise ValueError("engine ray shares out the work itself: leave out --num-shards, --shard-index and torchrun")
    segments = Segments(source or DEFAULT_INPUT, config)
    # A file is read through before any model is opened: what is wrong with it is reported at once, and the work is counted.
    total = sum(1 for _ in segments) if segments.is_local else config.max_segments
    recipe = make_recipe(segments, config)
    folder = Path(output)
    parts = Parts(folder, recipe["fingerprint"])
    for change in parts.prepare(recipe):
        warnings.warn(
            f"{folder} was begun with something else: {change}; numbers may differ in their last digits", stacklevel=2
        )
    work = _Work(config, parts, total, shard.count, progress)
    sizes = []
    for part, members in enumerate(_chunks(segments, config.segments_per_part)):
        sizes.append(len(members))
        if part % shard.count == shard.index:
            work.do(part, members, later=engine is not None)
    if engine is not None:
        work.do_on_ray(engine, segments.source)
    work.close()
    parts.refuse_more_than(len(sizes))
    records = [parts.record(part, size) for part, size in enumerate(sizes)]
    finished = [record for record in records if record is not None]
    if len(finished) < len(sizes):
        return None
    signals = finished[0]["signals"]
    return summarise(folder, recipe, signals, finished, segments.rows, segments.skipped)


def make_recipe(segments: Segments, config: SyntheticConfig) -> dict[str, Any]:
    """Return what decides the data (recipe, input, models), its fingerprint, and the environment."""
    # Neither where it is computed nor where it ends decides what a part holds.
    options = {key: value for key, value in config.to_dict().items() if key not in ("device", "max_segments")}
    if config.rouge_implementation == ROUGE_SCORE:  # sets that were begun before there was a choice can be continued
        del options["rouge_implementation"]
    decisive = {
        "format": FORMAT_VERSION,
        "config": options,
        "input": segments.identity(),
        "models": model_identities(config),
    }
    canonical = json.dumps(decisive, sort_keys=True)
    fingerprint = hashlib.sha256(canonical.encode()).hexdigest()[:16]
    return {"fingerprint": fingerprint, **decisive, "environment": _environment(config)}


def _environment(config: SyntheticConfig) -> dict[str, Any]:
    from importlib.metadata import version

    from bleurt_repro import __version__
    from bleurt_repro.datasets_builders.open_models import default_device

    device = (config.device or default_device()).partition(":")[0]
    return {"bleurt_repro": __version__, "device": device, **{name: version(name) for name in LIBRARIES}}


def _chunks(segments: Segments, size: int) -> Iterator[list[Segment]]:
    iterator = iter(segments)
    while chunk := list(islice(iterator, size)):
        yield chunk


class _Work:
    """Makes the parts that are not done yet, opening the models at the first of them."""

    def __init__(
        self, config: SyntheticConfig, parts: Parts, total: int | None, shards: int, progress: bool | None
    ) -> None:
        from tqdm import tqdm

        self.config, self.parts = config, parts
        self.maker: _PartMaker | None = None
        mine = None if total is None else -(-total // shards)
        disable = None if progress is None else not progress
        self.bar = tqdm(total=mine, unit=" segments", disable=disable, smoothing=0.05)
        self.pairs, self.started = 0, time.perf_counter()
        self.left: dict[int, tuple[int, int]] = {}

    def do(self, part: int, segments: list[Segment], later: bool = False) -> None:
        """Make one part, or note it for later, unless it is done."""
        if self.parts.record(part, len(segments)) is not None:
            self.bar.update(len(segments))
            return
        if later:
            self.left[part] = (segments[0].segment_id, segments[-1].segment_id + 1)
            return
        if self.maker is None:
            self.maker = _PartMaker(self.config)
            self.started = time.perf_counter()
        self.parts.write(part, *self.maker.make(segments, self._count))

    def do_on_ray(self, engine: RayEngine, source: str) -> None:
        """Make the parts that were noted."""
        bounds, self.started = list(self.left.values()), time.perf_counter()
        made = engine.map(_RayPartMaker, bounds, self.config.device, source=source, config=self.config)
        for part, (table, record) in zip(self.left, made, strict=True):
            self.parts.write(part, table, record)
            self._count(record["segments"], table.num_rows)

    def _count(self, segments: int, pairs: int) -> None:
        self.pairs += pairs
        self.bar.set_postfix_str(f"{self.pairs / (time.perf_counter() - self.started):.1f} pairs/s", refresh=False)
        self.bar.update(segments)

    def close(self) -> None:
        """End the bar."""
        self.bar.close()


class _PartMaker:
    """Makes parts with the opened models of a recipe."""

    def __init__(self, config: SyntheticConfig) -> None:
        self.config, self.maker = config, PairMaker(config)

    def make(
        self, segments: list[Segment], made: Callable[[int, int], object] = lambda segments, pairs: None
    ) -> tuple[Table, dict[str, Any]]:
        """Make one part.

        Args:
            segments: of the part.
            made: called with the numbers of segments and of pairs of each unit.

        Returns:
            its pairs, and what is recorded of it.
        """
        self.maker.restart()
        units = []
        for start in range(0, len(segments), self.config.unit_segments):
            members = segments[start : start + self.config.unit_segments]
            units.append(self.maker.make(members))
            made(len(members), len(units[-1].pairs))
        signals = [signal.describe() for signal in self.maker.signals]
        clock = self.maker.clock
        record = {
            "segments": len(segments),
            "signals": signals,
            "stages": {stage: [clock.seconds[stage], clock.pairs[stage]] for stage in clock.seconds},
            "truncated": self.maker.truncated(),
            "skipped": [item.to_dict() for unit in units for item in unit.skipped],
        }
        return to_table(units, signals), record


class _RayPartMaker:
    """Makes parts in a worker of Ray.

    Args:
        source: of `Segments`.
        config: the recipe.
        device: where to compute.
    """

    def __init__(self, source: str, config: SyntheticConfig, device: str) -> None:
        config = config.with_options(device=device)
        self._segments = Ahead(lambda: iter(Segments(source, config)))
        self._maker = _PartMaker(config)

    def __call__(self, first: int, last: int) -> tuple[Table, dict[str, Any]]:
        """Make the part of the segments from `first` up to `last`."""
        return self._maker.make(self._segments.run(first, last))
