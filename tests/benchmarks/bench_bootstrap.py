"""All metrics in the resamples of a paired bootstrap. fast: all resamples side by side; plain: one at a time.

A made-up system with Zipfian labels (15.7 a document, as MIMIC-IV has them) and fp16 scores; B bootstrap resamples, B
halves (choice C11) and the plain split.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from run import Job

from plant.evaluation.runs import Run
from plant.evaluation.values import metric_values
from plant.ground.settings import Evaluation, Statistics
from plant.metrics.groups import LabelSpace
from plant.metrics.scores import Scores
from plant.metrics.thresholds import TunedThreshold
from plant.statistics.resampling import draw_bootstrap, draw_halves

LABELS_PER_DOCUMENT, TRAINING_DOCUMENTS, PART = 15.7, 89_098, 3
JOBS = {
    "bootstrap of all metrics, MIMIC-IV test split (19,802 documents, 7,942 labels), B = 1,000": Job(
        "bootstrap", {"documents": 19_802, "labels": 7_942, "number": 1_000},
        {"documents": 300, "labels": 200, "number": 20}, {"number": PART}, 2_001 / (2 * PART + 1),
    ),
}  # fmt: skip


def bootstrap(way: str, documents: int, labels: int, number: int) -> Callable[[], list[float]]:
    """Every metric on the plain split (the first resample)."""
    metrics, rng = Statistics().metrics, np.random.default_rng(2)
    run = make_run(documents, labels)
    ones = np.ones((documents, 1), dtype=np.float32)
    weights = np.concatenate(
        [ones, draw_bootstrap(documents, number, rng), draw_halves(documents, number, rng)], axis=1
    )
    metric_values(make_run(30, 20), metrics, np.ones((30, 20), dtype=np.float32))  # loads the compiled code

    parts = [weights] if way == "fast" else [weights[:, [b]] for b in range(weights.shape[1])]

    def work() -> list[float]:
        values = [metric_values(run, metrics, part) for part in parts]
        return [float(value[0]) for value in values[0].values()]

    return work


def make_run(documents: int, labels: int) -> Run:
    """A system of middling quality."""
    rng = np.random.default_rng(0)
    prior = 1 / np.arange(1, labels + 1)
    prior = np.minimum(0.5, prior * LABELS_PER_DOCUMENT / prior.sum())
    n_train = rng.binomial(TRAINING_DOCUMENTS, prior)
    logit, strength = np.log(prior / (1 - prior)).astype(np.float32), rng.gamma(4, 0.5, size=labels).astype(np.float32)
    truth = rng.random((documents, labels), dtype=np.float32) < prior
    made = logit + strength * truth + rng.standard_normal(truth.shape, dtype=np.float32)
    scores = made.astype(np.float16).astype(np.float32)
    names, ids = tuple(map(str, range(labels))), tuple(map(str, range(documents)))
    space, true = LabelSpace(names, n_train, TRAINING_DOCUMENTS, Evaluation()), sp.csr_array(truth)
    thresholds = {"tuned": TunedThreshold(-1.0, "macro_f1_present", 0.5)}
    return Run(Scores(ids, names, true, true, scores, 100, 0.0), space, thresholds.__getitem__)
