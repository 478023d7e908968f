r"""Make synthetic pairs from text: the work behind `bleurt-repro data synthetic` (BLEURT, section 4).

    bleurt-repro data synthetic --input text.txt --output pairs --config paper
    bleurt-repro data synthetic --input text.txt --output pairs --config paper --num-shards 4 --shard-index 0
    torchrun --nproc-per-node 4 -m bleurt_repro.cli data synthetic --input text.txt --output pairs --config paper \
        --num-shards auto
    bleurt-repro data synthetic --input text.txt --output pairs --config paper --engine ray

It can be stopped at any moment: started again, it continues after the last finished part, and ends with the same
bytes. With a larger `--max-segments` it adds to the pairs that are there.
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

from bleurt_repro.datasets_builders.synthetic.config import DEFAULT_INPUT, SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.pair_maker import PairMaker, model_identities
from bleurt_repro.datasets_builders.synthetic.parts import PartFiles, to_table
from bleurt_repro.datasets_builders.synthetic.segments import Segment, Segments
from bleurt_repro.datasets_builders.synthetic.summary import summarise
from bleurt_repro.metric.bulk.ray_engine import Ahead, RayEngine
from bleurt_repro.metric.options import choose_shard

if TYPE_CHECKING:
    from pyarrow import Table

# Increased when the same recipe would give other bytes.
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
    num_shards: int | str | None = None,
    shard_index: int | None = None,
    progress: bool | None = None,
    engine: RayEngine | None = None,
) -> dict[str, Any] | None:
    """Make the pairs of an input, or the share of one process, and summarise them once all are made.

    Args:
        source: text, TSV, CSV, JSONL or Parquet file, dataset folder or Hub id; default: English Wikipedia.
        output: folder to write to, or to resume.
        config: the recipe.
        num_shards: number of processes that share the work, as in `choose_shard`; default: one.
        shard_index: index of this process, from 0.
        progress: whether to show a progress bar; default: on a terminal.
        engine: Ray, to make the parts in its workers; default: in this process.

    Returns:
        The report, or None if other processes have parts left to make.

    Raises:
        FileNotFoundError: if the input or a model cannot be found.
        ValueError: if the input or a model cannot be used, or the folder has other content.
    """
    shard = choose_shard(num_shards, shard_index)
    if engine is not None and shard.count > 1:
        raise ValueError("engine ray distributes the work itself: leave out --num-shards and --shard-index")
    segments = Segments(source or DEFAULT_INPUT, config)
    # 1. Read a file once before any model is opened: its errors are reported at once, and its segments are counted.
    total = sum(1 for _ in segments) if segments.is_local else config.max_segments
    recipe = make_recipe(segments, config)
    folder = Path(output)
    part_files = PartFiles(folder, recipe["fingerprint"])
    for change in part_files.prepare(recipe):
        warnings.warn(
            f"{folder} was started in another environment: {change}; numbers may differ in their last digits",
            stacklevel=2,
        )
    # 2. Make this process's parts.
    work = _Work(config, part_files, total, shard.count, progress)
    sizes = []
    for number, chunk in enumerate(_chunks(segments, config.segments_per_part)):
        sizes.append(len(chunk))
        if number % shard.count == shard.index:
            work.do(number, chunk, later=engine is not None)
    if engine is not None:
        work.do_on_ray(engine, segments.source)
    work.close()
    # 3. Summarise, if no other process has parts left.
    part_files.refuse_more_than(len(sizes))
    records = [part_files.record(number, size) for number, size in enumerate(sizes)]
    finished = [record for record in records if record is not None]
    if len(finished) < len(sizes):
        return None
    signals = finished[0]["signals"]
    return summarise(folder, recipe, signals, finished, segments.rows, segments.skipped)


def make_recipe(segments: Segments, config: SyntheticConfig) -> dict[str, Any]:
    """Return everything that decides the data (recipe, input, models), its fingerprint, and the environment."""
    # The content of a part depends neither on the device nor on where the input ends.
    options = {key: value for key, value in config.to_dict().items() if key not in ("device", "max_segments")}
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
    """Makes the parts that are not finished yet, and opens the models at the first of them."""

    def __init__(
        self, config: SyntheticConfig, part_files: PartFiles, total: int | None, shards: int, progress: bool | None
    ) -> None:
        from tqdm import tqdm

        self.config, self.part_files = config, part_files
        self.maker: _PartMaker | None = None
        share = None if total is None else -(-total // shards)
        disable = None if progress is None else not progress
        self.bar = tqdm(total=share, unit=" segments", disable=disable, smoothing=0.05)
        self.pairs, self.started = 0, time.perf_counter()
        # First and last-plus-one segment of each part that is left for Ray.
        self.postponed: dict[int, tuple[int, int]] = {}

    def do(self, number: int, segments: list[Segment], later: bool = False) -> None:
        """Make a part, or postpone it, unless it is finished."""
        if self.part_files.record(number, len(segments)) is not None:
            self.bar.update(len(segments))
            return
        if later:
            self.postponed[number] = (segments[0].segment_id, segments[-1].segment_id + 1)
            return
        if self.maker is None:
            self.maker = _PartMaker(self.config)
            self.started = time.perf_counter()
        self.part_files.write(number, *self.maker.make(segments, self._count))

    def do_on_ray(self, engine: RayEngine, source: str) -> None:
        """Make the postponed parts."""
        bounds, self.started = list(self.postponed.values()), time.perf_counter()
        results = engine.map(_RayPartMaker, bounds, self.config.device, source=source, config=self.config)
        for number, (table, record) in zip(self.postponed, results, strict=True):
            self.part_files.write(number, table, record)
            self._count(record["segments"], table.num_rows)

    def _count(self, segments: int, pairs: int) -> None:
        self.pairs += pairs
        self.bar.set_postfix_str(f"{self.pairs / (time.perf_counter() - self.started):.1f} pairs/s", refresh=False)
        self.bar.update(segments)

    def close(self) -> None:
        """Close the progress bar."""
        self.bar.close()


class _PartMaker:
    """Makes parts with the opened models of a recipe."""

    def __init__(self, config: SyntheticConfig) -> None:
        self.config, self.maker = config, PairMaker(config)

    def make(
        self, segments: list[Segment], report_progress: Callable[[int, int], object] = lambda segments, pairs: None
    ) -> tuple[Table, dict[str, Any]]:
        """Make one part.

        Args:
            segments: segments of the part.
            report_progress: function that is called with the numbers of segments and of pairs of each unit.

        Returns:
            The pairs, and the record of the part.
        """
        self.maker.restart()
        units = []
        for start in range(0, len(segments), self.config.unit_segments):
            unit = segments[start : start + self.config.unit_segments]
            units.append(self.maker.make(unit))
            report_progress(len(unit), len(units[-1].pairs))
        signals = [signal.describe() for signal in self.maker.signals]
        clock = self.maker.clock
        record = {
            "segments": len(segments),
            "signals": signals,
            "stages": {stage: [clock.seconds[stage], clock.pairs[stage]] for stage in clock.seconds},
            "truncated": self.maker.truncated(),
            "skipped": [skipped.to_dict() for unit in units for skipped in unit.skipped],
        }
        return to_table(units, signals), record


class _RayPartMaker:
    """Makes parts in a worker of Ray.

    Args:
        source: as in `Segments`.
        config: the recipe.
        device: device of the models.
    """

    def __init__(self, source: str, config: SyntheticConfig, device: str) -> None:
        config = config.with_options(device=device)
        self._segments = Ahead(lambda: iter(Segments(source, config)))
        self._maker = _PartMaker(config)

    def __call__(self, first: int, last: int) -> tuple[Table, dict[str, Any]]:
        """Make the part of the segments from number `first` to before `last`."""
        return self._maker.make(self._segments.run(first, last))
