"""Claims that notes and choice pages make about procedures, each checked by itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from plant.ground.seeds import generator
from plant.statistics.wilcoxon import signed_rank

DOCUMENTS, RESAMPLES, TRIALS = 200, 100, 150


@pytest.fixture(scope="module")
def null_trials() -> list[tuple[float, float, float]]:
    """(Wilcoxon p over resamples, low, high of the percentile interval) where two systems do not differ."""
    random = generator(0, "tests", "wilcoxon over resamples")
    found = []
    for _ in range(TRIALS):
        differences = random.choice([-1, 0, 1], size=DOCUMENTS, p=[0.1, 0.8, 0.1])
        weights = random.multinomial(DOCUMENTS, np.full(DOCUMENTS, 1 / DOCUMENTS), size=RESAMPLES)
        resampled = weights @ differences / DOCUMENTS
        low, high = np.percentile(resampled, [2.5, 97.5])
        found.append((signed_rank(np.zeros(RESAMPLES), resampled).p, float(low), float(high)))
    return found


def test_wilcoxon_over_resamples_rejects_a_true_null_hypothesis_most_of_the_time(null_trials):
    """C19: 86% in 300 trials; the nominal level is 5%."""
    rejected = np.mean([p < 0.05 for p, _, _ in null_trials])
    assert 0.75 < rejected < 0.95


def test_the_percentile_interval_keeps_the_papers_arrow_near_its_level(null_trials):
    """C19: test and interval together 7% in 300 trials."""
    marked = np.mean([p < 0.05 and (low > 0 or high < 0) for p, low, high in null_trials])
    assert marked < 0.13


@pytest.mark.parametrize(("gamma", "epsilon", "negative", "positive"), [(2, 0.1, 0.306, 0.694), (0, 0.1, 0.1, 0.9)])
def test_smoothed_focal_loss_is_least_at_the_probabilities_that_the_page_names(gamma, epsilon, negative, positive):
    """C17, Eq. 3 of one label as a function of its probability."""

    def loss(p: float, target: float) -> float:
        return -(target * (1 - p) ** gamma * np.log(p) + (1 - target) * p**gamma * np.log(1 - p))

    for target, expected in ((epsilon, negative), (1 - epsilon, positive)):
        best = minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), args=(target,), method="bounded").x
        assert best == pytest.approx(expected, abs=5e-4)
