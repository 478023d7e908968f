"""Share out work among processes and machines: which part of the records is this process's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of equal size, in order; the first has the index 0."""

    index: int
    count: int

    def bounds(self, records: int) -> tuple[int, int]:
        """Give the first record of this part and the one after its last."""
        return records * self.index // self.count, records * (self.index + 1) // self.count

    def output(self, path: str) -> str:
        """Name this part's file, such as scores-00000-of-00002.txt: in the order of their names the parts are in order."""
        if self.count == 1:
            return path
        whole = Path(path)
        return str(whole.with_name(f"{whole.stem}-{self.index:05d}-of-{self.count:05d}{whole.suffix}"))


def choose_shard(num_shards: int | None, shard_index: int | None) -> Shard:
    """Take the part that the options name, else the one that torchrun's WORLD_SIZE and RANK name, else all.

    Raises:
        ValueError: if only one of the two is given, or the index is not below the number.
    """
    if num_shards is None and shard_index is None:
        num_shards, shard_index = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if num_shards is None or shard_index is None:
        raise ValueError("--num-shards and --shard-index belong together: give both or neither")
    if not 0 <= shard_index < num_shards:
        raise ValueError(
            f"--shard-index must be from 0 to {num_shards - 1} with --num-shards {num_shards}, found {shard_index}"
        )
    return Shard(shard_index, num_shards)
