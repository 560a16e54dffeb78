"""metrics.json and per_label.parquet of one run: every metric, from its score files alone."""

from __future__ import annotations

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
from plant.metrics.documents import AT_K
from plant.metrics.groups import read_label_space
from plant.metrics.names import metrics
from plant.metrics.thresholds import ThresholdRule

_PRECISION_NAMES = ("map", "map/*", "rare_ap")


def evaluate(folder: Path, labels_parquet: Path, settings: Evaluation) -> dict[str, Any]:
    """Every metric of a run on its test split, at the natural threshold and at those tuned on validation.

    Args:
        folder: with the score files of `val` and `test`.
        labels_parquet: of the corpus; `labels.safetensors` beside it gives N for the propensities.
        settings: section `evaluation` of the config.

    Returns:
        Metric name (names.py) -> fraction, or None where it is not defined; and the records `threshold` (its value
        and how it was chosen), `documents`, `calibration` (calibration.py), `label_groups` (labels, and labels with a
        test positive), `propensity` (A, B, N) and `exactness` (which metrics, as patterns of names, are lower bounds
        because only the top K scores of each document were kept).

    Raises:
        InputError: missing or damaged scores, other labels than the corpus', no label in the validation split.
    """
    return _report(_load(folder, labels_parquet, settings))


def write_metrics(folder: Path, labels_parquet: Path, settings: Evaluation) -> None:
    """Write `metrics.json` (see `evaluate`) and `per_label.parquet` (see `per_label`) into the run's folder."""
    run = _load(folder, labels_parquet, settings)
    table = per_label(run)
    files.write_with(Path(folder) / "per_label.parquet", lambda path: pq.write_table(table, path))
    files.write_json(Path(folder) / "metrics.json", _report(run))


def per_label(run: Run) -> pa.Table:
    """One row a label, at the tuned threshold; f1, ap and auc are null where the test split has no positive."""
    predicted_labels = run.predictions("tuned")
    if predicted_labels is None:
        raise ValueError("per_label needs a tuned threshold")
    tally = count(run.truth, predicted_labels)
    auc, precision = run.label_curves(np.ones(run.truth.shape[0]), np.ones(run.truth.shape[1], dtype=bool))
    hits, predicted, positives = (array.astype(np.int64) for array in (tally.hits, tally.predicted, tally.positives))
    f1 = np.where(positives > 0, label_f1(tally), np.nan)
    return pa.table(
        {
            "label": pa.array(run.labels.names, pa.string()),
            "n_train": pa.array(run.labels.n_train.astype(np.uint32)),
            "n_test": pa.array(positives.astype(np.uint32)),
            "f1": pa.array(f1, from_pandas=True),
            "ap": pa.array(precision, from_pandas=True),
            "auc": pa.array(auc, from_pandas=True),
            "tp": pa.array(hits.astype(np.uint32)),
            "fp": pa.array((predicted - hits).astype(np.uint32)),
            "fn": pa.array((positives - hits).astype(np.uint32)),
        }
    )


def _load(folder: Path, labels_parquet: Path, settings: Evaluation) -> Run:
    return load_run(Path(folder), read_label_space(labels_parquet, settings))


def _report(run: Run) -> dict[str, Any]:
    settings = run.labels.settings
    values = metric_values(run, metrics(settings))
    report: dict[str, Any] = {name: _or_none(value[0]) for name, value in values.items()}
    present = np.bincount(run.truth.indices, minlength=run.truth.shape[1]) > 0
    a, b = settings.propensity
    return report | {
        "threshold": {
            "value": run.tuned.value, "maximises": run.tuned.objective, "chosen_on": "val",
            "value_on_val": run.tuned.on_validation, "natural": run.scores.natural_threshold,
            **{cut: _record(run.thresholds.of(cut)) for cut in ("micro", "sloped")},
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
    """What holds exactly, and what only the K best scores of each document can say."""
    if run.scores.dense is not None:
        return {"scores": "all", "lower_bounds": [], "documents_limited_to_top": 0}
    return {
        "scores": f"top {run.scores.top} of each document",
        "lower_bounds": [*_PRECISION_NAMES, *(f"{base}@*/*" for base in AT_K)],
        # Documents on which more than K labels lie, or may lie, above the threshold: only K are predicted.
        "documents_limited_to_top": int((run.scores.bound > np.float32(run.tuned.value)).sum()),
    }


def _record(tuned: ThresholdRule | None) -> dict[str, Any] | None:
    """A further threshold, as metrics.json keeps it."""
    if tuned is None:
        return None
    record = {"value": tuned.value, "maximises": tuned.objective, "value_on_val": tuned.on_validation}
    return record if not tuned.slope else record | {"slope": tuned.slope}


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
