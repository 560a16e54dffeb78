"""Thresholds tuned on validation: against naive loops over every cut, and every slope."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from plant.evaluation.metrics import write_metrics as evaluate
from plant.ground.settings import Evaluation
from plant.metrics.groups import LabelSpace
from plant.metrics.scores import Scores
from plant.metrics.thresholds import SLOPES, THRESHOLD_RULES, TunedThreshold

SETTINGS = Evaluation(at=(1, 3, 5))
SEED = 0
MADE, VALIDATION = SEED, SEED + 1000  # as `written` draws them


def cuts(scores: np.ndarray) -> np.ndarray:
    levels = np.unique(scores[np.isfinite(scores)])
    return np.concatenate([[levels[0] - 1], (levels[:-1] + levels[1:]) / 2])


def macro(truth: np.ndarray, predicted: np.ndarray) -> float:
    values = []
    for true, said in zip(truth.T, predicted.T, strict=True):
        if true.any():
            values.append(2 * (true & said).sum() / (true.sum() + said.sum()))
    return float(np.mean(values))


def test_micro_f1_at_its_own_threshold_is_the_best_cut_of_validation(written, case) -> None:
    report = evaluate(*written(SEED), SETTINGS)
    validation, test = case(VALIDATION), case(MADE)
    tried = cuts(validation.scores)
    values = {cut: f1_score(validation.truth, validation.scores > cut, average="micro") for cut in tried}
    best = max(values.values())
    assert report["threshold"]["micro"]["value_on_val"] == pytest.approx(best)
    chosen = report["threshold"]["micro"]["value"]
    assert values[min(values, key=lambda cut: abs(cut - chosen))] == pytest.approx(best)
    assert report["micro_f1@micro"] == pytest.approx(f1_score(test.truth, test.scores > chosen, average="micro"))
    assert report["micro_f1@micro"] != report["micro_f1"]


def test_tuned_for_micro_f1_the_two_thresholds_are_one(written) -> None:
    report = evaluate(*written(SEED), Evaluation(at=(1, 3, 5), tune_for="micro_f1"))
    assert report["micro_f1@micro"] == report["micro_f1"]
    assert report["threshold"]["micro"]["value"] == report["threshold"]["value"]


def test_the_sloped_threshold_is_the_best_of_all_slopes_and_cuts(written, case) -> None:
    report = evaluate(*written(SEED), SETTINGS)
    validation, test = case(VALIDATION), case(MADE)
    n_train = test.n_train
    frequency = np.log1p(n_train)
    unit = validation.scores[validation.truth & np.isfinite(validation.scores)].std() / frequency[n_train > 0].std()
    found = []
    for slope in SLOPES:
        shifted = validation.scores - slope * unit * frequency
        found.append(max(macro(validation.truth, shifted > cut) for cut in cuts(shifted)))
    record = report["threshold"]["sloped"]
    assert record["value_on_val"] == pytest.approx(max(found))
    assert max(found) > report["threshold"]["value_on_val"]  # here a slope pays
    assert record["slope"] == pytest.approx(SLOPES[int(np.argmax(found))] * unit, rel=1e-5)
    predicted = test.scores - record["slope"] * frequency > record["value"]
    assert report["macro_f1_present@sloped"] == pytest.approx(macro(test.truth, predicted))


def test_labels_of_one_frequency_leave_nothing_to_slope(written, case) -> None:
    made = case(MADE)
    made.n_train[:] = 7
    report = evaluate(*written(test=made), SETTINGS)
    assert "slope" not in report["threshold"]["sloped"]
    assert report["macro_f1_present@sloped"] == report["macro_f1_present"]


def test_kept_scores_are_sloped_as_all_scores_are(written) -> None:
    dense = evaluate(*written(SEED), SETTINGS)
    kept = evaluate(*written(SEED, settings=Evaluation(at=(1, 3, 5), dense_limit=1)), SETTINGS)
    assert kept["exactness"]["scores"] != "all"
    for name in ("macro_f1_present@sloped", "rare_f1@sloped", "micro_f1@micro"):
        assert kept[name] == pytest.approx(dense[name])


def test_a_registered_rule_is_a_suffix_of_metrics_and_a_record_of_metrics_json(written, case, monkeypatch) -> None:
    def always(validation: Scores, labels: LabelSpace) -> TunedThreshold:
        return TunedThreshold(-1e9, "micro_f1", 0.5)

    monkeypatch.setitem(THRESHOLD_RULES, "always", always)
    report = evaluate(*written(SEED), Evaluation(at=(1, 2)))  # metrics are listed once for each settings
    assert report["threshold"]["always"] == {"value": -1e9, "maximises": "micro_f1", "value_on_val": 0.5}
    test = case(MADE)
    scored = test.scores > -np.inf
    assert report["micro_recall@always"] == pytest.approx((test.truth & scored).sum() / test.truth.sum())
    assert report["rare_f1@always"] is not None
