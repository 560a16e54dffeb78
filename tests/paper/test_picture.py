"""The picture of README.md says what the committed tables say."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from plant.ground.errors import InputError
from plant.paper.studies import picture

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "docs" / "studies"


def effects(study: str) -> dict[tuple[str, ...], dict[str, str]]:
    """(experiment, system, against, metric) -> row, read without polars."""
    with (STUDIES / study / "tables" / "effects.csv").open(encoding="utf-8") as lines:
        return {(row["experiment"], row["system"], row["against"], row["metric"]): row for row in csv.DictReader(lines)}


def told(study: str, experiment: str, system: str, against: str, metric: str) -> dict[str, float]:
    """Difference, interval and p of a row; a table that has the two systems in the other order is turned."""
    rows = effects(study)
    key = (experiment, system, against, metric)
    sign = 1 if key in rows else -1
    row = rows[key] if sign > 0 else rows[experiment, against, system, metric]
    low, high = sorted((sign * float(row["low"]), sign * float(row["high"])))
    return {"difference": sign * float(row["difference"]), "low": low, "high": high, "p_holm": float(row["p_holm"])}


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


def test_every_row_is_that_of_its_study():
    rows = picture.read_rows(STUDIES)
    assert len(rows) == len(picture.ROWS) * len(picture.METRICS)
    for place, (_, _, study, *keys) in enumerate(picture.ROWS):
        for row in rows.filter(cell=place).iter_rows(named=True):
            for name, value in told(study, *keys, row["metric"]).items():
                assert row[name] == value


def test_verdict_counts_what_holm_leaves():
    expected = []
    for group in dict.fromkeys(row[0] for row in picture.ROWS):
        own = [told(study, *keys, "macro_f1_present") for other, _, study, *keys in picture.ROWS if other == group]
        sure = [row["difference"] for row in own if row["p_holm"] < 0.05]
        up = sum(value > 0 for value in sure)
        rest = len(own) - len(sure)
        expected.append(f"{group}: higher in {up} of {len(own)}, lower in {len(sure) - up}, open in {rest}")
    assert picture.verdict(picture.read_rows(STUDIES), alpha=0.05).splitlines()[1:] == expected


def test_a_row_that_a_study_lacks_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(picture, "ROWS", (("g", "n", picture.TRIAL, "fair_codiesp_en", "nobody", "caml_random_init"),))
    with pytest.raises(InputError, match="expected nobody against caml_random_init of fair_codiesp_en"):
        picture.read_rows(STUDIES)
