"""Store scores on disk for later runs, in SQLite: many processes may read and write one folder at once."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sqlite3
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from bleurt_repro.metric.inputs import Item
from bleurt_repro.metric.options import make_cache

# Another process's write is over in milliseconds; a minute is for slow disks.
WAIT_SECONDS = 60
KEYS_PER_QUERY = 900  # SQLite before 3.32 takes 999 values per statement
KEY_BYTES = 16
CHECK_BYTES = 8
# Number in the files' names: raise it when files are laid out differently, or hold what is computed differently.
FORMAT = 4


class Scored(NamedTuple):
    """A pair's score, and whether the pair was truncated, has pieces unknown to the tokenizer, or unread text."""

    score: float
    truncated: bool
    unknown: bool = False
    unread: bool = False


class ScoreCache:
    """Store scores by the texts of pairs, in one file for everything else that scores depend on.

    Args:
        folder: folder of the files; made if it does not exist.
        settings: what the scores depend on besides the pairs.

    Raises:
        OSError: if the folder or file cannot be used.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: str) -> None:
        name = hashlib.sha256(settings.encode()).hexdigest()[:KEY_BYTES]
        self.path = make_cache(Path(folder).expanduser()) / f"scores-{FORMAT}-{name}.sqlite"
        with self._connected() as database:
            _let_readers_pass(database)
            database.execute(
                "CREATE TABLE IF NOT EXISTS scores "
                "(pair BLOB PRIMARY KEY, score REAL, truncated INTEGER, unknown INTEGER, unread INTEGER, sum BLOB) "
                "WITHOUT ROWID"
            )

    def find(self, items: Sequence[Item]) -> dict[Item, Scored]:
        """Return the stored results of pairs; a damaged one is left out, with a warning.

        Args:
            items: texts of pairs, each once.
        """
        by_key = {pair_key(item): item for item in items}
        keys, results, damaged = list(by_key), {}, 0
        with self._connected() as database:
            for start in range(0, len(keys), KEYS_PER_QUERY):
                batch = keys[start : start + KEYS_PER_QUERY]
                marks = ",".join("?" * len(batch))
                query = f"SELECT pair, score, truncated, unknown, unread, sum FROM scores WHERE pair IN ({marks})"
                for key, score, *flags, check in database.execute(query, batch):
                    if check == row_sum(key, score, *flags):
                        results[by_key[key]] = Scored(score, *map(bool, flags))
                    else:
                        damaged += 1
        if damaged:
            warnings.warn(f"{damaged} scores in {self.path} are damaged: these pairs are scored anew", stacklevel=2)
        return results

    def add(self, results: Mapping[Item, Scored]) -> None:
        """Write results, all of them or, if the process is killed, none."""
        rows = []
        for item, (score, *flags) in results.items():
            key, numbers = pair_key(item), list(map(int, flags))
            rows.append((key, score, *numbers, row_sum(key, score, *numbers)))
        with self._connected() as database, database:
            database.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?)", rows)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Connect for one operation, so that neither a fork nor a thread shares a connection."""
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT_SECONDS)) as database:
                yield database
        except sqlite3.Error as error:
            raise OSError(
                f"the score cache {self.path} cannot be used ({error}): "
                "delete the file if it is damaged, or name another folder"
            ) from error


def _let_readers_pass(database: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, in which readers never wait for a writer.

    Of several processes that open a new file at once, SQLite turns some away without waiting: each holds what another
    waits for.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.01, 0.05))


def pair_key(item: Item) -> bytes:
    """Return 16 bytes that stand for the texts of a pair, in their order."""
    return hashlib.blake2b(json.dumps(item).encode(), digest_size=KEY_BYTES).digest()


def row_sum(key: bytes, score: float, *flags: int) -> bytes:
    """Return 8 bytes by which damage to a row is noticed."""
    return hashlib.blake2b(repr((key, score, *flags)).encode(), digest_size=CHECK_BYTES).digest()
