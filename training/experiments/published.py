"""What BLEURT (Sellam et al., 2020, https://aclanthology.org/2020.acl-main.704) reports for WMT: its tables 2 to 4.

`published.tsv` holds the figures times 100, by year, metric, language pair (and their average) and measure;
what the paper does not give is not there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("published.tsv")
SOURCE = "Sellam et al. (2020), tables 2 to 4, https://aclanthology.org/2020.acl-main.704"
AVERAGES = ("avg", "average")


def published_rows(year: int, measures: tuple[str, ...]) -> list[dict[str, Any]]:
    """Give the published figures of a year.

    Args:
        year: of the test set; none but 2017 to 2019 have any.
        measures: which.

    Returns:
        a dict a metric: "name", "groups" (by pair and measure, as fractions of 1) and "average" (by measure).
    """
    from bleurt_repro.datasets_builders.record_files import read_records

    rows: dict[str, dict[str, Any]] = {}
    for _, record in read_records(TABLE):
        if int(record["year"]) != year or record["measure"] not in measures:
            continue
        row = rows.setdefault(record["metric"], {"name": record["metric"], "groups": {}, "average": {}})
        value = round(float(record["value"]) / 100, 4)
        place = row["average"] if record["group"] in AVERAGES else row["groups"].setdefault(record["group"], {})
        place[record["measure"]] = value
    return list(rows.values())
