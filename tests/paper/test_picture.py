"""The picture of README.md says what the committed tables say."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from plant.ground.errors import InputError
from plant.paper.studies import picture

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "docs" / "studies"


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a table, read without polars."""
    with path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def told(row: dict[str, str], metric: str) -> dict[str, float]:
    """Difference, interval and p of a row; a table that has the two systems in the other order is turned."""
    for sign, first, second in ((1, "system", "against"), (-1, "against", "system")):
        key = {"experiment": row["experiment"], "system": row[first], "against": row[second], "metric": metric}
        for found in read(STUDIES / row["study"] / "tables" / "effects.csv"):
            if key.items() <= found.items():
                low, high = sorted((sign * float(found["low"]), sign * float(found["high"])))
                difference, p = sign * float(found["difference"]), float(found["p_holm"])
                return {"difference": difference, "low": low, "high": high, "p_holm": p}
    raise AssertionError(row)


def test_committed_picture_is_what_the_command_draws_from_the_committed_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    picture.main(tmp_path / "picture.png")
    drawn, kept = (
        np.asarray(Image.open(path).convert("L"), dtype=float)
        for path in (tmp_path / "picture.png", ROOT / "docs" / "picture.png")
    )
    assert drawn.shape == kept.shape
    assert np.abs(drawn - kept).mean() < 0.5, "run make picture"
    assert not (tmp_path / "picture.pdf").exists()


def test_readme_shows_the_picture_before_its_first_section():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](docs/picture.png)" in text[: text.index("\n## ")]


def test_every_mark_is_that_of_its_study_and_the_titles_count_what_holm_leaves():
    rows, named = picture.read_rows(STUDIES), read(STUDIES / "picture.csv")
    assert len(rows) == len(named) * len(picture.METRICS)
    outcomes: dict[tuple[str, str], list[str]] = {}
    for row in named:
        for metric in picture.METRICS:
            keys = {name: row[name] for name in ("study", "experiment", "system", "against")}
            found = told(row, metric)
            (own,) = rows.filter(metric=metric, **keys).iter_rows(named=True)
            assert {name: own[name] for name in found} == found
            up = "higher" if found["difference"] > 0 else "lower"
            outcomes.setdefault((row["contrast"], metric), []).append(up if found["p_holm"] < 0.05 else "open")
    for (contrast, metric), own in outcomes.items():
        line = picture.panel_title(contrast, rows, alpha=0.05).splitlines()[2 + picture.METRICS.index(metric)]
        counts = [f"{own.count(way)} {word}" for way, word in (("higher", "up"), ("lower", "down")) if way in own]
        assert line.split(": ") == [picture.MARKS[metric].title, f"{', '.join(counts)} of {len(own)}"]


def test_a_row_that_a_study_lacks_is_one_clear_error(tmp_path):
    tables = tmp_path / "fair_trial" / "tables"
    tables.mkdir(parents=True)
    (tables / "effects.csv").write_bytes((STUDIES / "fair_trial" / "tables" / "effects.csv").read_bytes())
    row = pl.read_csv(STUDIES / "picture.csv").head(1).with_columns(system=pl.lit("nobody"))
    row.write_csv(tmp_path / "picture.csv")
    with pytest.raises(InputError, match="expected nobody against caml_random_init of fair_codiesp_en"):
        picture.read_rows(tmp_path)
