"""metrics.json and per_label.parquet, from files to numbers."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, f1_score, log_loss, roc_auc_score

from plant.evaluation.metrics import write_metrics as evaluate
from plant.evaluation.runs import load_run
from plant.evaluation.values import metric_values
from plant.ground.errors import InputError
from plant.ground.files import read_json, write_arrays
from plant.ground.settings import Evaluation, Paper, Statistics
from plant.metrics.groups import read_label_space
from plant.metrics.names import find, metrics

SETTINGS = Evaluation(rare_below=10, at=(1, 3, 5))


def numbers(report: dict) -> dict[str, float]:
    return {name: value for name, value in report.items() if isinstance(value, float)}


def test_label_metrics_are_those_of_scikit_learn(written, case) -> None:
    made = case(0)
    report = evaluate(*written(test=made), SETTINGS)
    present = made.truth.any(axis=0)
    assert 0 < present.sum() < present.size
    for suffix, threshold in (("", report["threshold"]["value"]), ("@natural", 0.0)):
        predicted = made.scores > threshold
        f1 = np.array([f1_score(made.truth[:, c], predicted[:, c], zero_division=0) for c in range(25)])
        rare = (made.n_train >= 1) & (made.n_train < 10) & present
        assert report[f"macro_f1_present{suffix}"] == pytest.approx(f1[present].mean())
        assert report[f"macro_f1_all{suffix}"] == pytest.approx(f1.mean())
        assert report[f"rare_f1{suffix}"] == pytest.approx(f1[rare].mean())
        assert report[f"micro_f1{suffix}"] == pytest.approx(f1_score(made.truth, predicted, average="micro"))
    scored = present & (made.n_train > 0)
    aps = [average_precision_score(made.truth[:, c], made.scores[:, c]) for c in np.flatnonzero(scored)]
    assert report["map"] == pytest.approx(np.sum(aps) / present.sum())  # labels without a score count as 0
    aucs = [roc_auc_score(made.truth[:, c], made.scores[:, c]) for c in np.flatnonzero(scored)]
    unscored = present.sum() - scored.sum()
    assert report["macro_auc"] == pytest.approx((np.sum(aucs) + 0.5 * unscored) / present.sum())


def test_every_metric_is_a_fraction_and_group_metrics_add_up(written) -> None:
    report = evaluate(*written(), SETTINGS)
    assert all(0 <= value <= 1 for value in numbers(report).values())
    assert {name for name, value in report.items() if value is not None} - numbers(report).keys() == {
        "threshold", "documents", "calibration", "label_groups", "propensity", "exactness",
    }  # fmt: skip
    groups = report["label_groups"]
    frequency = ("0", "1-10", "11-50", "51-100", "101-500", "501+")
    total = sum(groups[g]["with_test_positive"] * (report[f"map/{g}"] or 0) for g in frequency)
    assert total / groups["all"]["with_test_positive"] == pytest.approx(report["map"])
    assert report["rare_f1"] == report["macro_f1_present/rare"]
    assert report["rare_ap"] == report["map/rare"]
    for k in SETTINGS.at:
        assert report[f"r@{k}"] == report[f"rp@{k}"]


def test_the_metrics_of_the_config_exist() -> None:
    known = metrics(Evaluation())
    assert set(Statistics().metrics) | set(Paper().metrics) <= set(known)
    with pytest.raises(InputError, match="Did you mean 'macro_f1_present'"):
        find("macro_f1_presnt", Evaluation())
    with pytest.raises(InputError, match="'p@7'"):
        find("p@7", Evaluation())


def test_the_threshold_comes_from_validation_alone(written, case) -> None:
    trained_on = case(0).n_train
    reports = [evaluate(*written(test=replace(case(seed), n_train=trained_on)), SETTINGS) for seed in (0, 7)]
    assert reports[0]["threshold"] == reports[1]["threshold"]
    assert reports[0]["macro_f1_present"] != reports[1]["macro_f1_present"]
    assert reports[0]["threshold"]["chosen_on"] == "val"
    assert reports[0]["threshold"]["maximises"] == "macro_f1_present"


def test_without_a_natural_threshold_its_metrics_are_null_and_not_0(written) -> None:
    report = evaluate(*written(natural=None), SETTINGS)
    natural = [name for name in report if "@natural" in name]
    assert natural
    assert all(report[name] is None for name in (*natural, "brier_skill", "calibration"))
    assert report["threshold"]["natural"] is None


@pytest.mark.parametrize("kept", [Evaluation(), Evaluation(dense_limit=10, top=8, at=(1, 3, 5, 8))], ids=["all", "top"])
def test_calibration_is_that_of_the_test_scores(written, case, kept: Evaluation) -> None:
    made = case(7)
    folder, labels = written(test=made, settings=kept)
    told = evaluate(folder, labels, SETTINGS)["calibration"]
    order = np.argsort(np.argsort(-made.scores, axis=1, kind="stable"), axis=1)
    counted = np.isfinite(made.scores) & (order < (8 if kept.top == 8 else made.truth.shape[1]))
    logits, truth = made.scores[counted].astype(np.float16).astype(np.float64), made.truth[counted]
    assert told["pairs"] == counted.sum()
    assert told["positives"] == truth.sum()
    assert told["log_loss"] == pytest.approx(log_loss(truth, 1 / (1 + np.exp(-logits))), rel=1e-3)
    assert 0 < told["calibration_error"] < 1


def test_what_is_not_defined_is_null(written, case) -> None:
    made = case(0)
    folder, labels = written(test=made)
    made.n_train[:] = 100  # nothing is rare
    table = pl.read_parquet(labels).with_columns(n_train=pl.lit(100, pl.UInt32))
    table.write_parquet(labels)
    report = evaluate(folder, labels, SETTINGS)
    assert report["rare_f1"] is report["rare_ap"] is report["p@1/zero"] is None


def test_kept_scores_give_what_all_scores_give_or_null_or_a_bound(written, case) -> None:
    exact = evaluate(*written(test=case(5)), SETTINGS)
    kept = evaluate(*written(test=case(5), settings=Evaluation(dense_limit=10, top=8, at=(1, 3, 5, 8))), SETTINGS)
    assert kept["macro_auc"] is kept["micro_auc"] is None
    assert kept["map"] <= exact["map"]
    assert kept["rp@5/few"] <= exact["rp@5/few"]
    for name in ("p@1", "p@5", "ndcg@5", "psp@3", "r@5"):
        assert kept[name] == pytest.approx(exact[name])
    assert {"map", "rp@*/*"} <= set(kept["exactness"]["lower_bounds"])
    assert exact["exactness"] == {"scores": "all", "lower_bounds": [], "documents_limited_to_top": 0}


def test_true_labels_that_were_kept_beyond_the_top_are_not_predicted(written, case) -> None:
    """They are in the file wherever they stand: counting them as retrieved would be reading the answers."""
    made, top = case(6), 3
    folder, labels = written(test=made, settings=Evaluation(dense_limit=10, top=top, at=(1, 3)))
    report = evaluate(folder, labels, Evaluation(at=(1, 3)))
    order = np.argsort(np.argsort(-made.scores, axis=1, kind="stable"), axis=1)
    predicted = (order < top) & (made.scores > report["threshold"]["value"])
    assert report["micro_f1"] == pytest.approx(f1_score(made.truth, predicted, average="micro"))
    assert report["micro_recall"] <= top * len(made.truth) / made.truth.sum()
    assert report["exactness"]["documents_limited_to_top"] > 0


def test_fewer_kept_scores_than_k_are_refused(written, case) -> None:
    folder, labels = written(settings=Evaluation(dense_limit=10, top=4, at=(1,)))
    with pytest.raises(InputError, match="at least 5 kept scores"):
        evaluate(folder, labels, SETTINGS)


def test_scores_of_another_corpus_are_refused(written, case) -> None:
    folder, labels = written()
    pl.read_parquet(labels).reverse().write_parquet(labels)
    with pytest.raises(InputError, match="in another order"):
        evaluate(folder, labels, SETTINGS)
    pl.read_parquet(labels).head(3).write_parquet(labels)
    with pytest.raises(InputError, match="3 labels, got 25 labels"):
        evaluate(folder, labels, SETTINGS)


def test_the_table_of_labels_holds_what_the_report_averages(written) -> None:
    folder, labels = written()
    report = evaluate(folder, labels, SETTINGS)
    assert read_json(folder / "metrics.json") == report
    table = pl.read_parquet(folder / "per_label.parquet")
    assert table.columns == ["label", "n_train", "n_test", "f1", "ap", "auc", "tp", "fp", "fn"]
    present = table.filter(pl.col("n_test") > 0)
    assert table.filter(pl.col("n_test") == 0)["f1"].null_count() == table.height - present.height > 0
    assert present["f1"].mean() == pytest.approx(report["macro_f1_present"])
    assert present["ap"].mean() == pytest.approx(report["map"])
    again = 2 * present["tp"] / (2 * present["tp"] + present["fp"] + present["fn"])
    assert again.to_numpy() == pytest.approx(present["f1"].to_numpy())


def test_propensities_use_the_training_split_of_the_corpus(written) -> None:
    folder, labels = written()
    before = evaluate(folder, labels, SETTINGS)
    write_arrays(labels.parent / "labels.safetensors", {"split_sizes": np.array([10**6, 1, 1])})
    after = evaluate(folder, labels, SETTINGS)
    assert before["propensity"]["training_documents"] == 500
    assert after["propensity"]["training_documents"] == 10**6
    assert before["psp@3"] != after["psp@3"]


def test_weights_are_the_same_as_repeating_documents_for_every_metric(written, case, score_files) -> None:
    made = case(8)
    folder, labels = written(test=made)
    names = list(metrics(SETTINGS))
    rng = np.random.default_rng(0)
    weights = rng.multinomial(40, np.full(40, 1 / 40), size=12).T.astype(np.float32)
    weighted = metric_values(load_run(folder, read_label_space(labels, SETTINGS)), names, weights)
    for column in (0, 5, 11):
        drawn = np.repeat(np.arange(40), weights[:, column].astype(int))
        score_files.write_split(folder, "test", type(made)(made.scores[drawn], made.truth[drawn], made.n_train))
        plain = evaluate(folder, labels, SETTINGS)
        for name in names:
            expected = np.nan if plain[name] is None else plain[name]
            assert weighted[name][column] == pytest.approx(expected, nan_ok=True), name


def test_blocks_of_resamples_change_nothing(written, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, labels = written()
    run = load_run(folder, read_label_space(labels, SETTINGS))
    weights = np.random.default_rng(0).poisson(1, size=(40, 30)).astype(np.float32)
    whole = metric_values(run, Statistics().metrics, weights)
    monkeypatch.setattr("plant.evaluation.values.LARGEST", 7 * 25)
    parts = metric_values(run, Statistics().metrics, weights)
    assert all(np.allclose(whole[name], parts[name], equal_nan=True) for name in whole)
