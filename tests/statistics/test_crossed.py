"""Seeds and documents together: closed forms, simulation, and the systems' own scores."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from plant.evaluation.runs import load_run
from plant.evaluation.values import metric_values
from plant.ground.settings import Evaluation, Statistics
from plant.metrics.groups import read_label_space
from plant.statistics.compare import write_contrasts
from plant.statistics.crossed import crossed

SETTINGS = Statistics(metrics=("p@5", "micro_f1"), resamples=400)
EVALUATION = Evaluation(at=(1, 3, 5))


def test_without_noise_of_documents_it_is_the_paired_t_test() -> None:
    differences = np.array([0.05, 0.11, 0.02, 0.08, 0.07])
    found = crossed(differences, 0.0, 0.9)
    expected = stats.ttest_1samp(differences, 0)
    low, high = expected.confidence_interval(0.9)
    assert (found.degrees, found.p, found.low, found.high) == pytest.approx((4, expected.pvalue, low, high))


def test_it_holds_its_level_where_seeds_and_documents_both_vary() -> None:
    rng = np.random.default_rng(0)
    held, trials, truth = 0, 1500, 0.03
    for _ in range(trials):
        by_document = truth + rng.normal(0, 0.02, (5, 1)) + rng.normal(0, 0.2, (1, 100)) + rng.normal(0, 0.1, (5, 100))
        error = by_document.mean(axis=0).std(ddof=1) / np.sqrt(100)
        found = crossed(by_document.mean(axis=1), float(error), 0.95)
        held += found.low <= truth <= found.high
    # 95 % and a little more: the noise that differs by seed counts in both parts; standard error of the share .006
    assert 0.935 <= held / trials <= 0.985


@pytest.mark.parametrize(("count", "worst"), [(2, 0.874), (3, 0.921), (5, 0.941)])
def test_what_is_said_of_few_seeds_is_what_a_simulation_finds(count: int, worst: float) -> None:
    rng = np.random.default_rng(0)
    of_seeds, of_documents = rng.normal(0, 3 * np.sqrt(count), (2000, count)), rng.normal(0, 1, (2000, 1))
    by_seed = of_seeds + of_documents  # of the mean: standard error 3 over seeds, 1 over documents
    found = [crossed(differences, 1.0, 0.95) for differences in by_seed]
    held = np.mean([each.low <= 0 <= each.high for each in found])
    assert held == pytest.approx(worst, abs=3.5 * np.sqrt(worst * (1 - worst) / 2000))


def test_one_seed_says_nothing_about_others() -> None:
    found = crossed(np.array([0.2]), 0.01, 0.95)
    assert found.difference == 0.2
    assert np.isnan([found.low, found.high, found.p]).all()


def test_two_systems_without_randomness_need_one_run_each() -> None:
    found = crossed(np.array([0.3]), 0.1, 0.95, trained=False)
    assert (found.low, found.high) == pytest.approx((0.3 - 1.959964 * 0.1, 0.3 + 1.959964 * 0.1))
    assert found.p == pytest.approx(2 * stats.norm.sf(3))
    assert found.error_seeds == 0


def test_equal_runs_differ_by_nothing() -> None:
    found = crossed(np.zeros(3), 0.0, 0.95)
    assert (found.low, found.high, found.p) == (0, 0, 1)


def test_rows_hold_the_values_of_the_runs(tmp_path: Path, write_systems: Callable) -> None:
    folders, labels = write_systems(
        tmp_path, {"strong": (4.0, (1, 2, 3)), "weak": (1.0, (4, 5, 6)), "fixed": (2.0, (7,))}
    )
    target = tmp_path / "contrasts.parquet"
    pairs = [("strong", "weak"), ("weak", "strong"), ("strong", "fixed")]
    write_contrasts(target, folders, pairs=pairs, labels_parquet=labels, evaluation=EVALUATION, settings=SETTINGS)
    rows = {(row["system"], row["against"], row["metric"]): row for row in pq.read_table(target).to_pylist()}
    space = read_label_space(labels, EVALUATION)
    values = {
        name: np.array([metric_values(load_run(folder, space), ["p@5"])["p@5"][0] for folder in each])
        for name, each in folders.items()
    }
    row = rows["strong", "weak", "p@5"]
    differences = values["strong"] - values["weak"]
    assert row["difference"] == pytest.approx(differences.mean())
    assert row["error_seeds"] == pytest.approx(differences.std(ddof=1) / np.sqrt(3))
    assert row["n_seeds"] == 3
    back = rows["weak", "strong", "p@5"]
    assert (back["difference"], back["low"], back["p"]) == pytest.approx((-row["difference"], -row["high"], row["p"]))
    against_one = rows["strong", "fixed", "p@5"]
    assert against_one["difference"] == pytest.approx((values["strong"] - values["fixed"][0]).mean())


def test_two_baselines_have_an_interval_over_documents_and_one_trained_run_has_none(
    tmp_path: Path, write_systems: Callable
) -> None:
    systems = {"tfidf_linear": (3.0, (1,)), "elsewhere:combined": (1.0, (2,)), "trained": (2.0, (3,))}
    folders, labels = write_systems(tmp_path, systems)
    target = tmp_path / "contrasts.parquet"
    pairs = [("tfidf_linear", "elsewhere:combined"), ("trained", "elsewhere:combined")]  # one of another experiment
    write_contrasts(target, folders, pairs=pairs, labels_parquet=labels, evaluation=EVALUATION, settings=SETTINGS)
    rows = {(row["system"], row["metric"]): row for row in pq.read_table(target).to_pylist()}
    found = rows["tfidf_linear", "p@5"]
    reach = stats.norm.ppf(0.975) * found["error_documents"]
    assert (found["low"], found["high"]) == pytest.approx((found["difference"] - reach, found["difference"] + reach))
    assert rows["trained", "p@5"]["low"] is None
