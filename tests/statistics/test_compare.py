"""From score folders to the three tables."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from plant.evaluation.metrics import write_metrics as evaluate
from plant.evaluation.runs import load_run
from plant.evaluation.values import metric_values
from plant.ground.errors import InputError
from plant.ground.settings import Evaluation, Statistics
from plant.metrics.groups import read_label_space
from plant.statistics.bootstrap import intervals
from plant.statistics.compare import write_comparison, write_contrasts
from plant.statistics.randomization import randomization_tests
from plant.statistics.resampling import draw
from plant.statistics.significance import arrow
from plant.statistics.systems import open_comparison, resampled_values
from plant.statistics.wilcoxon import signed_rank, wilcoxon_tests

SYSTEMS = {"weak": (0.5, (0, 1, 2)), "same": (2.0, (10, 11, 12)), "plant": (2.0, (10, 11, 12)), "base": (1.5, (30,))}
METRICS = ("macro_auc", "macro_f1_present", "rare_ap", "micro_f1", "p@5", "psp@3", "brier_skill")
SETTINGS = Statistics(resamples=60, metrics=METRICS)


def options(labels, settings=SETTINGS, evaluation=None):
    """How a comparison is opened."""
    return {"labels_parquet": labels, "evaluation": evaluation or Evaluation(), "settings": settings}


def tables(folders, *of):
    comparison = open_comparison(folders, reference="plant", **options(*of))
    return [pl.from_arrow(make(comparison)) for make in (intervals, wilcoxon_tests, randomization_tests)]


@pytest.fixture(scope="module")
def written(tmp_path_factory, write_systems):
    """Folders and corpus of SYSTEMS."""
    return write_systems(tmp_path_factory.mktemp("systems"), SYSTEMS)


@pytest.fixture(scope="module")
def found(written):
    """The three tables of SYSTEMS."""
    return tables(*written)


def test_values_are_seed_means_of_metrics_json_and_differences_are_row_minus_reference(written, found) -> None:
    folders, labels = written
    intervals, _, randomization = found
    reports = {name: [evaluate(folder, labels, Evaluation()) for folder in folders[name]] for name in folders}
    rows = {(row["system"], row["metric"]): row for row in intervals.iter_rows(named=True)}
    for (system, metric), row in rows.items():
        seeds = [report[metric] for report in reports[system]]
        assert row["n_seeds"] == len(seeds)
        if None in seeds:
            assert row["value"] is None
            continue
        assert row["value"] == pytest.approx(np.mean(seeds))
        assert row["seed_sd"] == (pytest.approx(np.std(seeds, ddof=1)) if len(seeds) > 1 else None)
        gain = pytest.approx(row["value"] - rows["plant", metric]["value"])
        assert row["difference"] == (None if system == "plant" else gain)
    joined = randomization.join(intervals, on=["system", "metric"])
    assert (joined["difference"] - joined["difference_right"]).abs().max() < 1e-9


def test_our_interval_is_over_seeds_and_documents_together_and_wilcoxon_over_means_of_documents(written, found) -> None:
    folders, labels = written
    space = read_label_space(labels, Evaluation())
    each = {  # p@5 of every document alone: (seeds, documents)
        name: np.array([metric_values(load_run(path, space), ["p@5"], np.eye(30))["p@5"] for path in folders[name]])
        for name in folders
    }
    rows = {row["system"]: row for row in found[0].filter(metric="p@5").iter_rows(named=True)}
    halves = draw("halves", np.arange(30), SETTINGS)
    for name, by_document, column in [
        ("weak", each["weak"], ""), ("plant", each["plant"], ""), ("base", each["base"], ""),
        ("weak", each["weak"] - each["plant"], "diff_"), ("base", each["base"] - each["plant"], "diff_"),
    ]:  # fmt: skip
        seeds = len(by_document)
        of_documents = np.var(by_document.mean(axis=0) @ halves / 15, ddof=1) / (30 / 15 - 1)
        of_seeds = stats.sem(by_document.mean(axis=1)) ** 2 if seeds > 1 else 0.0
        degrees = (of_documents + of_seeds) ** 2 / (of_seeds**2 / (seeds - 1)) if of_seeds else np.inf
        expected = stats.t.interval(0.95, degrees, by_document.mean(), np.sqrt(of_documents + of_seeds))
        bounds = [rows[name][f"{column}{bound}"] for bound in ("low", "high")]
        assert bounds == pytest.approx(np.clip(expected, -1 if column else 0, 1)), (name, column)
    for row in found[1].filter(metric="p@5").iter_rows(named=True):
        expected = signed_rank(each["plant"].mean(axis=0), each[row["system"]].mean(axis=0))
        assert [row[name] for name in expected._fields] == pytest.approx(list(expected))


def test_other_numbers_of_seeds_than_the_reference_are_refused(tmp_path: Path, write_systems) -> None:
    folders, labels = write_systems(tmp_path, {"weak": (0.5, (0, 1)), "plant": (2.0, (10, 11, 12))})
    never = tmp_path / "never.parquet"
    with pytest.raises(InputError, match="as many seeds"):
        write_comparison(folders, {"intervals": never}, reference="plant", **options(labels))
    with pytest.raises(InputError, match="as many seeds"):
        write_contrasts(never, folders, pairs=[("weak", "plant")], **options(labels))
    assert not never.exists()


def test_resamples_are_paired_over_systems_and_averaged_over_seeds(written, found) -> None:
    folders, labels = written

    def resampled(systems: dict[str, list[Path]]) -> dict[str, np.ndarray]:
        comparison = open_comparison(systems, reference="plant", **options(labels))
        values = resampled_values(comparison, ["bootstrap"], ["micro_f1"])
        return {name: each.resampled["bootstrap"] for (name, _), each in values.items()}

    together, alone = resampled(folders), [resampled({"plant": [folder]})["plant"] for folder in folders["plant"]]
    assert together["plant"] == pytest.approx(np.mean(alone, axis=0))
    assert np.array_equal(together["plant"], together["same"])
    gains = together["weak"] - together["plant"]
    row = found[0].row(by_predicate=(pl.col("system") == "weak") & (pl.col("metric") == "micro_f1"), named=True)
    expected = [gains.mean(), *np.percentile(gains, [2.5, 97.5])]
    assert [row[f"paper_{name}"] for name in ("gain", "low", "high")] == pytest.approx(expected)


def test_identical_systems_have_no_difference_no_significance_and_no_arrow(found) -> None:
    intervals, wilcoxon, randomization = (table.filter(pl.col("system") == "same") for table in found)
    defined = intervals.drop_nulls("value")
    for column in ("difference", "paper_gain", "paper_low", "paper_high", "diff_low", "diff_high"):
        assert defined[column].to_list() == [0.0] * defined.height
    assert wilcoxon.drop_nulls("p")["p"].to_list() == [1.0] * defined.height
    assert randomization.drop_nulls("p")["p"].to_list() == [1.0] * defined.height
    assert arrow(1.0, 0.0, 0.0, alpha=0.05) == ""


def test_a_much_weaker_system_gets_a_down_arrow_by_both_procedures(tmp_path: Path, write_systems) -> None:
    written = write_systems(tmp_path, {"weak": (-3.0, (0, 1, 2)), "plant": (4.0, (10, 11, 12))})
    intervals, wilcoxon, randomization = tables(*written)
    both = intervals.join(wilcoxon, on=["system", "metric"]).join(randomization, on=["system", "metric"], suffix="_ar")
    rows = {row["metric"]: row for row in both.iter_rows(named=True)}
    skill, row = rows["brier_skill"], rows["micro_f1"]
    assert skill["low"] < skill["value"] < skill["high"] < 0  # the one metric without a lower limit
    assert skill["diff_low"] < skill["difference"] < skill["diff_high"]
    assert arrow(row["p"], row["paper_low"], row["paper_high"], alpha=0.05) == "down"
    assert arrow(row["p_ar"], row["diff_low"], row["diff_high"], alpha=0.05) == "down"


def test_wilcoxon_says_what_it_was_computed_from(found) -> None:
    wilcoxon = found[1]
    assert wilcoxon["paper_procedure"].all()
    levels = dict(wilcoxon.select("metric", "level").unique().iter_rows())
    assert levels == {metric: "document" if metric == "p@5" else "resamples" for metric in SETTINGS.metrics}
    assert (wilcoxon["anti_conservative"] == (wilcoxon["level"] == "resamples")).all()
    assert wilcoxon.filter(pl.col("level") == "document")["n"].max() <= 30
    assert set(wilcoxon["system"]) == {"weak", "same", "base"}


@pytest.mark.parametrize(
    ("change", "same", "other"), [({"seed": 1}, "value", "paper_low"), ({"interval": "bootstrap"}, "paper_low", "low")]
)
def test_another_seed_or_another_kind_of_error_changes_intervals_alone(written, change, found, same, other) -> None:
    folders, labels = written
    comparison = open_comparison(folders, reference="plant", **options(labels, SETTINGS.model_copy(update=change)))
    changed = pl.from_arrow(intervals(comparison))
    assert found[0]["value"].equals(changed["value"])
    assert found[0][same].equals(changed[same])
    assert not found[0][other].equals(changed[other])


def test_kept_scores_are_enough_for_all_but_auc(tmp_path: Path, write_systems) -> None:
    folders, labels = write_systems(tmp_path, SYSTEMS, settings=Evaluation(dense_limit=5, top=6, at=(1, 3, 5)))
    for table in tables(folders, labels, SETTINGS, Evaluation(at=(1, 3, 5))):
        column = "value" if "value" in table.columns else "p"
        auc = pl.col("metric") == "macro_auc"
        assert table.filter(auc)[column].null_count() == table.filter(auc).height
        assert table.filter(~auc & (pl.col("metric") != "psp@3"))[column].null_count() == 0


def test_the_tables_are_written_to_their_files_and_the_same_seed_gives_the_same(written, found, tmp_path: Path) -> None:
    folders, labels = written
    targets = {name: tmp_path / "out" / f"{name}.parquet" for name in ("intervals", "wilcoxon", "randomization")}
    write_comparison(folders, targets, reference="plant", **options(labels))
    for target, expected in zip(targets.values(), found, strict=True):
        assert pl.read_parquet(target).equals(expected)
    assert {*(tmp_path / "out").iterdir()} == {*targets.values()}


@pytest.mark.parametrize("make", [intervals, wilcoxon_tests, randomization_tests])
def test_systems_on_other_documents_are_refused(written, tmp_path: Path, write_systems, make) -> None:
    folders, labels = written
    others, _ = write_systems(tmp_path, {"older": (1.0, (77,))}, test=98)
    with pytest.raises(InputError, match="the same documents"):
        make(open_comparison({**folders, **others}, reference="plant", **options(labels)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": "plnt"}, "Did you mean 'plant'"),
        ({"settings": Statistics(metrics=("micro_f2",))}, "Did you mean 'micro_f1'"),
    ],
)
def test_what_cannot_be_compared_is_named(written, change, message: str) -> None:
    folders, labels = written
    arguments = {"systems": folders, "reference": "plant", **options(labels), **change}
    with pytest.raises(InputError, match=message):
        intervals(open_comparison(**arguments))


def test_documents_of_a_group_are_resampled_and_swapped_together(written, found, tmp_path) -> None:
    folders, labels = written
    corpus = tmp_path / "corpus"
    shutil.copytree(labels.parent, corpus)
    pl.DataFrame({"group_id": [str(number // 4) for number in range(30)]}).write_parquet(corpus / "test.parquet")
    together, _, randomization = tables(folders, corpus / "labels.parquet")
    assert together["value"].equals(found[0]["value"])
    assert not together["diff_low"].equals(found[0]["diff_low"])
    assert not randomization["p"].equals(found[2]["p"])
    pl.DataFrame({"group_id": ["a"] * 29}).write_parquet(corpus / "test.parquet")
    with pytest.raises(InputError, match="documents, as in the scores"):
        tables(folders, corpus / "labels.parquet")
