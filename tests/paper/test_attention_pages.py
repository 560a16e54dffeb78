"""The pages on attention: means and intervals against loops, and sentences that follow the numbers."""

from dataclasses import astuple

import numpy as np
import polars as pl
import pytest

from plant.ground import settings as plant_settings
from plant.ground.errors import InputError
from plant.paper.attention.mass import METRICS as MASS_METRICS
from plant.paper.attention.mass import write_mass_page
from plant.paper.attention.page import write_attention_page
from plant.paper.attention.pairs import POINT_TITLES, read_pairs
from plant.paper.attention.people import METRICS, OWN, REFERENCES, answers, write_people_page
from plant.paper.paths import Paths
from plant.statistics.pairs import estimate, pair_values
from plant.statistics.resampling import draw_bootstrap

DOCUMENTS, SEEDS = 30, (0, 1)


@pytest.fixture
def settings():
    network = {"kind": "word_network", "encoder": "cnn", "attention": "per_label"}
    return plant_settings.load({
        "datasets": {"own": {"source": "table", "path": "own.csv"}},
        "backbones": {"cnn": network},
        "pretrainings": {"mig": {}},
        "finetunings": {"bce": {}},
        "variants": {"random_init": {"finetuning": "bce"}, "plant": {"pretraining": "mig", "finetuning": "bce",
                                                                     "title": "PLANT"}},
        "statistics": {"resamples": 200},
        "experiments": {"own": {"dataset": "own", "backbone": "cnn", "variants": ["plant", "random_init"],
                                "reference": "random_init", "seeds": SEEDS}},
    })  # fmt: skip


def write(folder, scorer, scorers, metrics, value_of, size=1):
    """Tables of two systems; `value_of(system, scorer, metric, noise)` is the value of a pair. Clusters have `size`
    documents."""
    tables = {}
    for place, system in enumerate(("plant", "random_init")):
        for seed in SEEDS:
            random = np.random.default_rng([place, seed])
            rows = [
                {scorer: name, "document": document, "cluster": document // size, "label": label,
                 **{metric: value_of(system, name, metric, random.normal()) for metric in metrics}}
                for name in scorers for document in range(DOCUMENTS) for label in ("x", "y")[: 1 + document % 2]
            ]  # fmt: skip
            path = folder / f"{system}{seed}.parquet"
            pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
            tables.setdefault(system, []).append(path)
    return tables


def people(folder, gain=0.2):
    def value_of(system, scorer, metric, noise):
        if metric == "drop":
            return None if scorer == "uniform" else 0.1 * noise + (2.0 if scorer == "after_stage_2" else 0.0)
        return 0.3 + 0.02 * noise + (gain if system == "plant" and scorer == "after_stage_2" else 0.0)

    return write(folder, "scorer", (*REFERENCES, "marked", *OWN), METRICS, value_of)


def test_means_and_intervals_are_those_of_a_loop_over_pairs(settings, tmp_path):
    tables = people(tmp_path)
    pairs = read_pairs(settings, "own", tables, scorer="scorer", metrics=METRICS)
    assert (pairs.documents, pairs.pairs) == (DOCUMENTS, 45)
    assert [each.name for each in pairs.systems] == ["random_init", "plant"]  # the reference comes first
    by_seed = [pl.read_parquet(path).filter(scorer="after_stage_2")["ndcg"].mean() for path in tables["plant"]]
    found = pairs.estimate("plant", "after_stage_2", "ndcg")
    assert found.value == pytest.approx(np.mean(by_seed))
    assert found.n_seeds == 2
    assert found.low < found.value < found.high
    other = pairs.estimate("random_init", "after_stage_2", "ndcg")
    difference = pairs.difference(("plant", "after_stage_2"), ("random_init", "after_stage_2"), "ndcg")
    assert difference.value == pytest.approx(found.value - other.value)
    assert pairs.estimate("plant", "uniform", "drop") is None


def test_whole_documents_are_drawn():
    random = np.random.default_rng(0)
    counts = random.integers(1, 5, size=(1, 40)).astype(float)
    sums = counts * random.normal(size=40)
    weights = draw_bootstrap(40, 300, random)
    values = pair_values(sums, counts, weights)
    loop = [sum(w * s for w, s in zip(column, sums[0], strict=True)) /
            sum(w * c for w, c in zip(column, counts[0], strict=True)) for column in weights.T]  # fmt: skip
    np.testing.assert_allclose(values.resampled["bootstrap"], loop)
    found = estimate(values, 0.95)
    assert found.value == pytest.approx(sums.sum() / counts.sum())
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.std(loop, ddof=1), rel=1e-3)


def test_the_documents_of_a_patient_are_drawn_together(settings, tmp_path):
    """As if each patient were one document with all pairs of its documents."""
    metrics, read = ["ndcg"], {"scorer": "scorer", "metrics": ["ndcg"]}
    tables = write(tmp_path, "scorer", ("relevance",), metrics, lambda *values: values[-1], size=5)
    patients = read_pairs(settings, "own", tables, **read).estimate("plant", "relevance", "ndcg")
    for paths in tables.values():
        for path in paths:
            pairs = pl.read_parquet(path).with_columns(label=pl.format("{}{}", "label", "document"))
            pairs.with_columns(document="cluster").write_parquet(path)
    documents = read_pairs(settings, "own", tables, **read).estimate("plant", "relevance", "ndcg")
    assert astuple(documents) == pytest.approx(astuple(patients))


@pytest.mark.parametrize(("gain", "word"), [(0.2, "higher"), (-0.2, "lower"), (0.0, "not told apart")])
def test_the_sentences_follow_the_numbers(settings, tmp_path, gain, word):
    pairs = read_pairs(settings, "own", people(tmp_path, gain), scorer="scorer", metrics=METRICS)
    found = answers(pairs)
    planted = next(line for line in found if line.startswith("PLANT against random_init"))
    start, end = planted.split("when Stage 2 starts, ")
    assert "not told apart" in start
    assert word in end
    drop = next(line for line in found if line.startswith("PLANT: without its top attended tokens"))
    assert "drops by 2.0" in drop
    assert "attention shows what the network uses" in drop


def test_the_page_against_people_has_its_tables_and_figure(settings, tmp_path):
    write_people_page(settings, "own", people(tmp_path), tmp_path / "out")
    expected = {path.rpartition("attention_against_people/")[2] for path in
                Paths(settings).attention_page("own", "against_people")}  # fmt: skip
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")}
    assert written == expected
    table = pl.read_csv(tmp_path / "out/tables/differences.csv")
    row = table.row(
        by_predicate=(pl.col("system") == "plant") & (pl.col("against") == "random_init")
        & (pl.col("metric") == "ndcg") & (pl.col("scorer") == "after_stage_2"), named=True,
    )  # fmt: skip
    assert row["difference"] == pytest.approx(0.2, abs=0.02)


def test_a_page_to_look_at_shades_each_panel_by_its_largest_weight_and_underlines_marks(settings, tmp_path):
    points = {point: [0.25, 0.25, 0.5] for point in POINT_TITLES}
    for system in ("plant", "random_init"):
        own = points | ({"after_stage_2": [0.01, 0.0, 0.99]} if system == "plant" else {})
        pl.DataFrame({
            "document_id": ["d<1>"] * 3, "label": ["x"] * 3, "position": [0, 1, 2], "token": ["<b>fe", "##ver", "high"],
            "relevance": [1.0, 0.0, 0.5], "marked": [False, False, True], **own,
        }).write_parquet(tmp_path / f"{system}.parquet")  # fmt: skip
    tables = {name: tmp_path / f"{name}.parquet" for name in ("plant", "random_init")}
    write_attention_page(settings, "own", tables, tmp_path / "attention.html")
    page = (tmp_path / "attention.html").read_text()
    assert page.count("<figure>") == 1 + 2 * len(POINT_TITLES)
    assert "<b>" not in page
    assert "d&lt;1&gt;" in page
    assert "Underlined: marked by people" in page
    relevance = page.split("<figure>")[1]
    assert ' <span style="--s:1.0">&lt;b&gt;fe</span>ver <u><span style="--s:0.5">high</span></u></p>' in relevance
    planted = next(part for part in page.split("<figure>") if "PLANT: after Stage 2" in part)
    assert ' &lt;b&gt;fever <u><span style="--s:1.0">high</span></u></p>' in planted  # 0.01 of 0.99 is too faint
    assert "http" not in page
    for path in tables.values():  # no test document has a trained label
        pl.read_parquet(path).clear().write_parquet(path)
    write_attention_page(settings, "own", tables, tmp_path / "empty.html")
    assert "No test document has a label that was trained." in (tmp_path / "empty.html").read_text()


def test_the_page_on_mass_has_a_row_for_each_system_and_point(settings, tmp_path):
    def value_of(system, point, metric, noise):
        if metric == "entropy":
            return 3.0
        return 0.5 if metric == "mass_grades" and system == "plant" and point == "before_stage_2" else 0.125

    tables = write(tmp_path, "point", POINT_TITLES, MASS_METRICS, value_of)
    write_mass_page(settings, "own", tables, tmp_path / "out")
    page = (tmp_path / "out/page.md").read_text()
    assert "PLANT: 12.5 % of the attention is on the 5 highest grades of relevance with random weights, 50.0 %" in page
    assert page.count("3.00 [3.00, 3.00]") == 6
    expected = {path.rpartition("attention_mass/")[2] for path in Paths(settings).attention_page("own", "mass")}
    assert {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")} == expected


def test_tables_of_other_pairs_and_empty_ones_are_refused(settings, tmp_path):
    tables = people(tmp_path)
    pl.read_parquet(tables["plant"][1]).filter(pl.col("document") > 0).write_parquet(tables["plant"][1])
    with pytest.raises(InputError, match="the pairs of document and label of random_init, got others"):
        read_pairs(settings, "own", tables, scorer="scorer", metrics=METRICS)
    for path in (path for paths in tables.values() for path in paths):
        pl.read_parquet(path).clear().write_parquet(path)
    with pytest.raises(InputError, match="a measured pair of document and label, got none"):
        read_pairs(settings, "own", tables, scorer="scorer", metrics=METRICS)
