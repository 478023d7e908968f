"""The recipe for Spark in the documentation, run as it stands there by a Spark on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys

import pytest

from bleurt_repro import BleurtScorer
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "how-to" / "ray-and-spark.md"
PAIRS = [(f"The cat number {n} sat on the mat.", f"A cat sat on {n % 3} mats.") for n in range(12)]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed (the extra spark)")
    if not shutil.which("java"):
        pytest.skip("Spark needs a Java runtime, such as Debian's default-jre-headless")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.mark.long
def test_the_recipe_gives_the_scorers_scores(spark, tmp_path, monkeypatch):
    recipe = re.search(r"^## Spark$.*?^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[1]
    monkeypatch.chdir(tmp_path)
    pairs = spark.createDataFrame(PAIRS, "reference string, candidate string").repartition(2)
    exec(recipe.replace('"scored"', f'"{tmp_path / "scored"}"'), {"spark": spark, "pairs": pairs})
    rows = spark.read.parquet(str(tmp_path / "scored")).collect()
    references, candidates = zip(*PAIRS, strict=True)
    expected = BleurtScorer(progress=False).score(references=list(references), candidates=list(candidates))
    scores = {(row.reference, row.candidate): row.bleurt for row in rows}
    assert len(rows) == len(PAIRS)
    assert [scores[pair] for pair in PAIRS] == pytest.approx(expected, abs=1e-4)
