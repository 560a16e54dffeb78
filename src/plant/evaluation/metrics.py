"""metrics.json and per_label.parquet of one run, computed from its score files alone."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plant.evaluation.runs import Run, load_run
from plant.evaluation.values import metric_values
from plant.ground import files
from plant.ground.settings import Evaluation
from plant.metrics.calibration import calibration_of
from plant.metrics.counts import count, label_f1
from plant.metrics.curves import label_curves
from plant.metrics.documents import AT_K
from plant.metrics.groups import read_label_space
from plant.metrics.names import metrics
from plant.metrics.thresholds import THRESHOLD_RULES, TUNED, TunedThreshold

_BOUNDED = ["map", "map/*", "rare_ap", *(f"{base}@*/*" for base in AT_K)]
"""Metrics, as patterns of names, that are lower bounds if only the top K scores of each document were kept."""


def write_metrics(folder: Path, labels_parquet: Path, settings: Evaluation) -> dict[str, Any]:
    """Write every metric of a run on its test split, under every threshold rule, into the run's folder.

    Args:
        folder: with the score files of `val` and `test`.
        labels_parquet: of the corpus; `labels.safetensors` lies beside it.

    Returns:
        What metrics.json holds: metric name (names.py) -> fraction, None if it is not defined. And these records:

        - `threshold`: the thresholds and how they were chosen;
        - `documents`; `calibration` (calibration.py); `propensity` (A, B, N);
        - `label_groups`: number of labels, and of labels with a test positive, in each group;
        - `exactness`: which metrics are lower bounds because only the top K scores of each document were kept.

    Raises:
        InputError: scores are missing or damaged, their labels are not those of the corpus, or no validation document
            has a label.
    """
    run = load_run(Path(folder), read_label_space(labels_parquet, settings))
    table, report = per_label(run), _report(run)
    files.write_with(Path(folder) / "per_label.parquet", partial(pq.write_table, table))
    files.write_json(Path(folder) / "metrics.json", report)
    return report


def per_label(run: Run) -> pa.Table:
    """One row per label, at the tuned threshold. f1, ap and auc are null if the test split has no positive."""
    tally = count(run.truth, run.predictions(TUNED))
    scores, bound = run.curve_scores
    auc, precision = label_curves(run.truth, scores, np.ones((run.truth.shape[0], 1)), bound=bound)
    columns = {
        "n_train": run.labels.n_train, "n_test": tally.positives,
        "f1": np.where(tally.positives > 0, label_f1(tally), np.nan), "ap": precision[:, 0], "auc": auc[:, 0],
        "tp": tally.hits, "fp": tally.predicted - tally.hits, "fn": tally.positives - tally.hits,
    }  # fmt: skip
    arrays = {
        name: pa.array(values, from_pandas=True) if name in ("f1", "ap", "auc") else pa.array(values.astype(np.uint32))
        for name, values in columns.items()
    }
    return pa.table({"label": pa.array(run.labels.names, pa.string()), **arrays})


def _report(run: Run) -> dict[str, Any]:
    settings = run.labels.settings
    values = metric_values(run, metrics(settings))
    report: dict[str, Any] = {name: None if np.isnan(value[0]) else float(value[0]) for name, value in values.items()}
    present = np.bincount(run.truth.indices, minlength=run.truth.shape[1]) > 0
    a, b = settings.propensity
    return report | {
        "threshold": {
            **_threshold(run.thresholds(TUNED)), "chosen_on": "val", "natural": run.scores.natural_threshold,
            **{rule: _threshold(run.thresholds(rule)) for rule in THRESHOLD_RULES if rule != TUNED},
        },
        "documents": {"test": run.truth.shape[0]},
        "calibration": calibration_of(run.scores),
        "label_groups": {
            name: {"labels": int(members.sum()), "with_test_positive": int((members & present).sum())}
            for name, members in {"all": np.ones_like(present), **run.labels.groups}.items()
        },
        "propensity": {"A": a, "B": b, "training_documents": run.labels.documents},
        "exactness": _exactness(run),
    }  # fmt: skip


def _exactness(run: Run) -> dict[str, Any]:
    if run.scores.dense is not None:
        return {"scores": "all", "lower_bounds": [], "documents_limited_to_top": 0}
    return {
        "scores": f"top {run.scores.top} of each document",
        "lower_bounds": _BOUNDED,
        # Documents that may have more than K labels above the threshold; only K are predicted.
        "documents_limited_to_top": int((run.scores.bound > np.float32(run.thresholds(TUNED).value)).sum()),
    }


def _threshold(tuned: TunedThreshold) -> dict[str, Any]:
    record = {"value": tuned.value, "maximises": tuned.objective, "value_on_val": tuned.on_validation}
    return record if not tuned.slope else record | {"slope": tuned.slope}
