"""A study's tables, figure and page from contrasts that are known."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shipped import shipped

from plant.ground.errors import InputError
from plant.ground.settings import Settings, Statistics, Study, load
from plant.paper.figures.study import axis_figure, effect_figure
from plant.paper.studies.study import design_of, is_equal, read_study, title_of, write_study
from plant.paper.systems import find_system
from plant.statistics.crossed import SCHEMA
from plant.statistics.factors import holm

ROOT = Path(__file__).parents[2]
NAME = "when_planting_helps"
STUDIES = re.findall(r"^STUDIES := (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[0].split()


def when() -> dict:
    """The config of all five studies, as `make studies` gives it to Snakemake."""
    return shipped(*(f"studies/{name}.yaml" for name in ("base", *STUDIES)))


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load(when())


@pytest.fixture(scope="module")
def contrasts(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, rng = tmp_path_factory.mktemp("contrasts"), np.random.default_rng(0)
    rows: dict[str, list[dict]] = {}
    for cell in settings.studies[NAME].cells:
        for metric in settings.statistics.metrics:
            difference, error = rng.normal(0.03, 0.06), rng.uniform(0.01, 0.03)
            rows.setdefault(cell.experiment, []).append({
                "system": cell.system, "against": cell.opponent, "metric": metric, "value": 0.4 + difference,
                "value_against": 0.4, "difference": difference, "error_documents": error, "error_seeds": error / 2,
                "n_seeds": 5, "degrees": 9.0, "low": difference - 2 * error, "high": difference + 2 * error,
                "p": float(np.exp(-abs(difference) / error)),
            })  # fmt: skip
    for name, found in rows.items():
        pq.write_table(pa.Table.from_pylist(found, schema=SCHEMA), folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in rows}


def test_everything_of_a_study_is_written(settings: Settings, contrasts: dict[str, Path], tmp_path: Path) -> None:
    write_study(settings, NAME, contrasts, tmp_path)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    tables = {f"tables/{name}.{kind}" for name in ("effects", "factors") for kind in ("csv", "md", "tex")}
    assert written == tables | {"figures/effects.pdf", "figures/effects.png", "page.md"}
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("# When does planting help?")
    assert "Unequal epochs" not in page
    (synthetic,) = re.findall(r"^\*\*Synthetic text\*\*: (.*)\. These", page, re.MULTILINE)
    assert "clear_720" in synthetic and "codiesp" not in synthetic
    effects = pl.read_csv(tmp_path / "tables" / "effects.csv")
    assert f"{100 * effects['difference'][0]:+.1f}".replace("-", "\N{MINUS SIGN}") in page
    study = settings.studies[NAME]
    assert effects.height == len(study.cells) * len(study.metrics)
    assert effects["p_holm"].to_numpy() == pytest.approx(holm(effects["p"].to_list()))  # over rows and metrics


def test_factors_are_differences_of_means_in_the_half_fraction(settings: Settings, contrasts: dict[str, Path]) -> None:
    study = settings.studies[NAME]
    found = read_study(settings, study, contrasts)
    design = [place for place, cell in enumerate(study.cells) if cell.levels]
    assert len(design) == 8
    effects = found.effects.filter(pl.col("cell").is_in(design), metric="map")["difference"].to_numpy()
    row = found.factors.filter(factor="passes", metric="map").row(0, named=True)
    long = np.array([study.cells[place].levels["passes"] == 12 for place in design])
    assert row["change"] == pytest.approx(effects[long].mean() - effects[~long].mean())
    assert (row["level"], row["baseline"]) == ("12", "4")


def test_the_design_has_clear_main_effects_and_equal_epochs(settings: Settings) -> None:
    cells = [cell for cell in settings.studies[NAME].cells if cell.levels]
    factors = list(cells[0].levels)
    code = np.array([[1 if cell.levels[name] == cells[-1].levels[name] else -1 for name in factors] for cell in cells])
    assert (code.T @ code == 8 * np.eye(len(factors))).all()  # main effects do not mix
    pairs = np.array([code[:, a] * code[:, b] for a in range(4) for b in range(a)])
    assert not (pairs @ code).any()  # nor with pairs of factors
    assert all(is_equal(settings, cell) for cell in settings.studies[NAME].cells)
    experiment = settings.experiments[cells[0].experiment]
    assert find_system(settings, experiment, "plant_long").epochs == (4, 12)
    assert find_system(settings, experiment, "combined").epochs is None
    for cell in cells:  # the names of experiments say what they are
        dataset, backbone = (getattr(settings.experiments[cell.experiment], key) for key in ("dataset", "backbone"))
        rate = settings.datasets[settings.whole(dataset)].generate.indicator_rate  # type: ignore[union-attr]
        assert (rate, backbone) == (cell.levels["words shown"], cell.levels["backbone"])
        assert dataset.endswith(f"_{cell.levels['documents']:g}")


@pytest.mark.parametrize(("change", "message"), [
    ({"experiment": "nowhere"}, "unknown name 'nowhere'"),
    ({"system": "plant_chi"}, "has no 'plant_chi'"),
    ({"against_experiment": "vague_180_trained"}, "vague_180_trained has no 'random_init_short'"),
    ({"against_experiment": "vague_720_trainde"}, "against_experiment: unknown name"),
    ({"against_experiment": "clear_180_trained"}, "cut from 'clear_720', not from 'vague_720'"),
    ({"experiment": "codiesp_en", "system": "plant", "against": "plant_long", "against_experiment": "recipes"},
     r"has the seeds \[0, 1, 2\], \[0, 1, 2, 3, 4\] are compared"),
])  # fmt: skip
def test_a_study_may_only_name_what_is_there(change: dict, message: str) -> None:
    config = when()
    config["studies"][NAME]["cells"][0] |= change
    with pytest.raises(InputError, match=message):
        load(config)


def test_a_metric_without_a_value_leaves_its_row_empty(
    settings: Settings, contrasts: dict[str, Path], tmp_path: Path
) -> None:
    first = settings.studies[NAME].cells[0]
    table = pl.read_parquet(contrasts[first.experiment])
    bare = pl.when(pl.col("metric") == "map").then(None)
    numbers = ["value", "value_against", "difference", "error_documents", "error_seeds", "degrees", "low", "high", "p"]
    table.with_columns(bare.otherwise(pl.col(name)).alias(name) for name in numbers).write_parquet(
        tmp_path / "bare.parquet"
    )
    write_study(settings, NAME, {**contrasts, first.experiment: tmp_path / "bare.parquet"}, tmp_path / "out")
    page = (tmp_path / "out" / "page.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if title_of(first) in line)
    assert [cell.strip() for cell in row.split("|")].count("\N{EN DASH}") == 1
    cells = len(settings.studies[NAME].cells)
    assert f"- mAP: of {cells - 1} settings" in page
    assert f"- rare AP: of {cells} settings" in page
    metrics = len(settings.studies[NAME].metrics)
    assert f"Holm's correction over the {cells * metrics - 1} differences with a p-value." in page


def test_the_design_counts_networks_once_and_evidence_without_one_as_none(settings: Settings) -> None:
    text = design_of(settings, settings.studies["what_beats_the_bar"])
    row = next(line for line in text.splitlines() if "| no_network | combined |" in line)
    assert "| no network / no network |" in row
    recipes = 3 * 4  # seeds x networks: planted, random, static and residual attention
    codiesp = 2 * 5 * 3  # languages x seeds x networks: planted, random, static attention
    laws = 2
    assert f"from {recipes + codiesp + laws} trained networks" in text


def test_a_row_may_compare_two_experiments(settings: Settings, contrasts: dict[str, Path], tmp_path: Path) -> None:
    """Another backbone on the same documents: the opponent stands under its experiment's name everywhere."""
    config = when()
    first = config["studies"][NAME]["cells"][0]
    experiment, system = first["experiment"], first["system"]
    seeds = [*settings.experiments[experiment].seeds, 99]  # of one more seed, which is not compared
    config["experiments"]["elsewhere"] = config["experiments"][experiment] | {"backbone": "trained", "seeds": seeds}
    row = {"experiment": experiment, "system": system, "against": system, "against_experiment": "elsewhere"}
    row |= {"title": "a | b", "group": "*"}
    config["studies"] = {NAME: config["studies"][NAME] | {"cells": [row]}}
    changed = load(config)
    study = changed.studies[NAME]
    (cell,) = study.cells
    assert cell.opponent == f"elsewhere:{system}"
    table = pl.read_parquet(contrasts[experiment]).unique("metric", maintain_order=True)
    path = tmp_path / "elsewhere.parquet"
    table.with_columns(pl.lit(cell.opponent).alias("against"), pl.lit(system).alias("system")).write_parquet(path)
    assert read_study(changed, study, {experiment: path}).effects.height == len(study.metrics)
    page = design_of(changed, study)
    assert f"| {settings.experiments[experiment].backbone} / trained |" in page
    assert f"{2 * len(settings.experiments[experiment].seeds)} trained networks" in page  # one system, two backbones
    assert r"| \* | a \| b |" in page


def test_a_difference_far_beyond_the_others_is_written_at_the_edge_and_squeezes_none() -> None:
    differences = [0.01, -0.02, 13.7, None]
    effects = pl.DataFrame({
        "cell": range(4), "group": "g", "row": list("abcd"), "metric": "brier_skill", "difference": differences,
        "low": [value if value is None else value - 0.01 for value in differences],
        "high": [value if value is None else value + 0.01 for value in differences], "p_holm": [1.0, 0.01, 0.01, None],
    })  # fmt: skip
    figure = effect_figure(effects, Statistics(), metrics=["brier_skill"], question="?")
    (axes,) = figure.axes
    assert max(abs(edge) for edge in axes.get_xlim()) < 10
    assert [text.get_text() for text in axes.texts if "\N{RIGHTWARDS ARROW}" in text.get_text()] == [
        "+1,370 \N{RIGHTWARDS ARROW}"
    ]
    assert len(axes.get_yticks()) == 4


def test_a_study_with_an_axis_draws_a_line_for_each_group_and_a_band_for_the_control(settings: Settings) -> None:
    first, second = (
        {"experiment": name, "system": "plant_short", "against": "random_init_short", "levels": {"documents": size}}
        for name, size in (("vague_180_frozen", 180.0), ("clear_720_frozen", 720.0))
    )
    cells = [{**cell, "group": group} for group in ("planted", "control") for cell in (second, first)]
    study = Study.model_validate({
        "question": "?", "metrics": ["map"], "cells": cells, "axis": "documents", "control": "control",
    })  # fmt: skip
    difference = np.array([0.03, 0.01, -0.01, 0.02])
    effects = pl.DataFrame({
        "cell": range(4), "group": [cell["group"] for cell in cells], "metric": "map", "difference": difference,
        "low": difference - 0.01, "high": difference + 0.02,
    })  # fmt: skip
    (axes,) = axis_figure(effects, settings.statistics, study).axes
    (line,) = axes.containers
    assert line[0].get_xdata().tolist() == [180, 720]
    assert line[0].get_ydata() == pytest.approx([1, 3])
    assert [bar.get_segments()[0][:, 1].tolist() for bar in line[2]] == [pytest.approx([0, 3])]
    (band,) = [each for each in axes.collections if each not in line[2]]
    assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx(-2)
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(4)


@pytest.mark.parametrize(
    ("levels", "ticks", "scale"),
    [([0.1, 0.25, 2000.0], ["0.1", "0.25", "2,000"], "log"), ([0.0, 1.0, 3.0], ["0", "1", "3"], "linear")],
)
def test_levels_below_1_are_told_apart_and_a_level_of_0_has_a_place(
    settings: Settings, levels: list[float], ticks: list[str], scale: str
) -> None:
    cell = {"experiment": "e", "system": "a", "against": "b"}
    cells = [{**cell, "levels": {"lambda": level}} for level in levels]
    study = Study.model_validate({"question": "?", "metrics": ["map"], "cells": cells, "axis": "lambda"})
    numbers = {"difference": 0.02, "low": 0.01, "high": 0.03}
    effects = pl.DataFrame({"cell": range(3), "group": "", "metric": "map"} | numbers)
    figure = axis_figure(effects, settings.statistics, study)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ticks
    assert axes.get_xscale() == scale
    places = axes.transData.transform([(level, 2.0) for level in levels])[:, 0]
    assert np.diff(places).min() > 0.05 * np.ptp(places)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"axis": "passes"}, "axis: expected a number as level 'passes'"),
        ({"control": "planted"}, "control: expected a group"),
        ({"axis": "documents", "control": "x"}, "control: expected a group"),
    ],
)
def test_an_axis_that_cannot_be_drawn_is_refused(keys: dict, says: str) -> None:
    cell = {"experiment": "e", "system": "a", "against": "b", "group": "planted", "levels": {"documents": 180.0}}
    with pytest.raises(ValueError, match=says):
        Study.model_validate({"question": "?", "cells": [cell], **keys})
