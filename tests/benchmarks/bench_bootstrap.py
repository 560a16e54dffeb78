"""The paired bootstrap of all metrics at MIMIC-IV test size: 19,802 documents, 7,942 labels, B = 1000.

Made-up systems with Zipfian labels (15.7 a document, as MIMIC-IV has them) and fp16 scores. Ways:

- `plant`: every metric of `statistics.metrics` on the plain split, B bootstrap resamples and B halves (choice C11);
- `numpy, one resample at a time`: the slow twin, extrapolated from one resample and three;
- `scikit-learn, one label and resample at a time`: roc_auc_score, average_precision_score and f1_score on drawn rows,
  extrapolated from a few labels (evenly over the frequencies) and resamples.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from common import Row, fresh, row

from plant.evaluation.metrics import write_metrics
from plant.evaluation.runs import Run
from plant.evaluation.values import metric_values
from plant.ground.files import read_json
from plant.ground.settings import Evaluation, Statistics
from plant.metrics import resamples
from plant.metrics.f1 import best_threshold, best_threshold_of_entries
from plant.metrics.groups import LabelSpace
from plant.metrics.scores import Scores, write_scores
from plant.metrics.thresholds import Thresholds, Tuned
from plant.statistics.randomization import draw_swaps, swapped_differences
from plant.statistics.resampling import draw_bootstrap, draw_halves

DOCUMENTS, LABELS, RESAMPLES, VALIDATION = 19_802, 7_942, 1_000, 13_378
TRAINING_DOCUMENTS, LABELS_PER_DOCUMENT = 89_098, 15.7
METRICS = Statistics().metrics
BY_DOCUMENTS = "bootstrap of all metrics, by documents"
OURS, NUMPY = "plant", "numpy, one resample at a time"
SCIKIT = "scikit-learn, one label and resample at a time"


def rows(quick: bool) -> list[Row]:
    """Side by side at growing sizes."""
    agree(documents=300, labels=40, resamples=30)
    found: list[Row] = []
    for documents, labels, draws, kernel, size in cases(quick):
        ours = fresh(bootstrap, documents=documents, labels=labels, resamples=draws)
        fixed = f"{documents:,} documents, {labels:,} labels, B = {draws:,}, both procedures, {len(METRICS)} metrics"
        found.append(row(kernel, OURS, size, ours, note=fixed))
    documents, labels, draws, validation = (300, 200, 100, 200) if quick else (DOCUMENTS, LABELS, RESAMPLES, VALIDATION)
    if not quick:
        found += extrapolated(documents // 8, labels, draws) + extrapolated(documents, labels, draws)
    for size in [documents] if quick else [documents // 16, documents // 8, documents]:
        ours = fresh(randomization, documents=size, labels=labels, resamples=draws)
        found.append(row("randomisation of two systems, by documents", OURS, size, ours, note=f"{draws:,} rounds"))
    ours = fresh(bootstrap, documents=documents, labels=labels, resamples=draws, metrics=["micro_auc"])
    found.append(row("micro-AUC in the same resamples", OURS, documents, ours))
    ours = fresh(evaluation, documents=documents, validation=validation, labels=labels)
    found.append(row("score files to metrics.json", OURS, documents, ours, note="every metric there is, one system"))
    kernel, slow = "threshold for macro-F1, by documents", "plant, from single entries (the slow twin)"
    few = validation if quick else validation // 4
    dense, entries = (fresh(threshold, documents=few, labels=labels, dense=dense) for dense in (True, False))
    assert dense.value == entries.value
    found += [row(kernel, OURS, few, dense), row(kernel, slow, few, entries, ratio_to=OURS)]
    if not quick:
        found.append(row(kernel, OURS, validation, fresh(threshold, documents=validation, labels=labels, dense=True)))
    return found


def cases(quick: bool) -> Iterator[tuple[int, int, int, str, int]]:
    """(documents, labels, B), the name of the series, and which of the three grows in it."""
    if quick:
        yield 300, 200, 100, BY_DOCUMENTS, 300
        return
    for size in (DOCUMENTS // 8, DOCUMENTS // 4, DOCUMENTS):
        yield size, LABELS, RESAMPLES, BY_DOCUMENTS, size
    for size in (LABELS // 4, LABELS // 2, LABELS):
        yield DOCUMENTS // 4, size, RESAMPLES, "bootstrap of all metrics, by labels", size
    for size in (RESAMPLES // 4, RESAMPLES, 2 * RESAMPLES):
        yield DOCUMENTS // 4, LABELS, size, "bootstrap of all metrics, by resamples", size


def extrapolated(documents: int, labels: int, draws: int) -> list[Row]:
    """The slow ways on a part of the work, multiplied up."""
    columns = 1 + 2 * draws
    one, three = (fresh(plain, documents=documents, labels=labels, resamples=number) for number in (1, 3))
    each = (three.cpu_seconds - one.cpu_seconds) / 2
    loop = fresh(scikit_learn, documents=documents, labels=labels, resamples=2, some=24)
    parts = (
        (NUMPY, one.cpu_seconds + each * (columns - 1), three.peak_mb, "from 1 resample and 3"),
        (SCIKIT, loop.value * columns, loop.peak_mb, "AUC, AP and F1 of a label only; from 24 labels, 2 resamples"),
    )
    return [
        row(BY_DOCUMENTS, way, documents, ratio_to=OURS, note=note, extrapolated=True, cpu_seconds=cpu, peak_mb=peak)
        for way, cpu, peak, note in parts
    ]


def agree(*, documents: int, labels: int, resamples: int) -> None:
    """Compiled, NumPy and scikit-learn give the same AUC, AP and F1 in every resample."""
    run = make_run(documents, labels)
    weights = draw(documents, resamples)
    ours = metric_values(run, METRICS, weights)
    with numpy_only():
        twin = metric_values(run, METRICS, weights)
    for metric in METRICS:
        assert np.allclose(ours[metric], twin[metric], rtol=1e-12, atol=0, equal_nan=True), metric
    for column in range(0, weights.shape[1], 20):
        drawn = np.repeat(np.arange(documents), weights[:, column].astype(int))
        auc, precision, f1 = loop(run, drawn, np.arange(labels))
        expected = {"macro_auc": auc, "map": precision, "macro_f1_present": f1}
        for metric, values in expected.items():
            assert np.isclose(ours[metric][column], np.nanmean(values), rtol=1e-12), metric


def bootstrap(documents: int, labels: int, resamples: int, metrics: list[str] | None = None) -> Callable[[], list]:
    run, weights = make_run(documents, labels), draw(documents, resamples)
    warm_up(metrics or METRICS)
    return lambda: [float(value[0]) for value in metric_values(run, metrics or METRICS, weights).values()]


def plain(documents: int, labels: int, resamples: int) -> Callable[[], float]:
    run, weights = make_run(documents, labels), draw(documents, resamples)[:, 1 : 1 + resamples]

    def work() -> float:
        with numpy_only():
            return float(metric_values(run, METRICS, weights)["macro_auc"][0])

    return work


def scikit_learn(documents: int, labels: int, resamples: int, some: int) -> Callable[[], float]:
    """Its result is not a metric but the CPU-seconds of all labels in one resample."""
    run, weights = make_run(documents, labels), draw(documents, resamples)
    present = np.flatnonzero(np.bincount(run.truth.indices, minlength=labels))
    chosen = present[np.linspace(0, present.size - 1, some).astype(int)]
    loop(run, np.arange(100), chosen[:2])  # its imports

    def work() -> float:
        start = time.process_time()
        for column in range(1, 1 + resamples):
            loop(run, np.repeat(np.arange(documents), weights[:, column].astype(int)), chosen)
        return (time.process_time() - start) / resamples / some * present.size

    return work


def randomization(documents: int, labels: int, resamples: int) -> Callable[[], float]:
    systems = make_run(documents, labels), make_run(documents, labels, noise=0.5)
    swaps = draw_swaps(documents, resamples, np.random.default_rng(1))
    warm_up(METRICS)
    return lambda: float(swapped_differences(*systems, swaps, METRICS)["map"][0])


def threshold(documents: int, labels: int, *, dense: bool) -> Callable[[], tuple[float, float]]:
    run = make_run(documents, labels)
    scores, truth = run.scores.dense, run.truth.toarray()
    if scores is None:
        raise ValueError("threshold: all scores are needed")
    if dense:
        return lambda: tuple(round(value, 12) for value in best_threshold(scores, truth))
    ids = np.broadcast_to(np.arange(labels), scores.shape).ravel()
    entries = partial(best_threshold_of_entries, positives=truth.sum(axis=0), objective="macro_f1_present")
    return lambda: tuple(round(value, 12) for value in entries(ids, scores.ravel(), truth.ravel()))


def evaluation(documents: int, validation: int, labels: int) -> Callable[[], float]:
    """Read the scores of both splits, tune the threshold, write metrics.json and per_label.parquet."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    for split, size in (("val", validation), ("test", documents)):
        run = make_run(size, labels)
        write_scores(
            folder, split, document_ids=run.scores.document_ids, label_names=run.labels.names, truth=run.truth,
            scores=run.scores.dense, natural_threshold=0.0, settings=Evaluation(),
        )  # fmt: skip
    pq.write_table(
        pa.table({"label": list(run.labels.names), "n_train": run.labels.n_train}), folder / "labels.parquet"
    )
    warm_up([*METRICS, "micro_auc"])

    def work() -> float:
        write_metrics(folder, folder / "labels.parquet", Evaluation())
        return float(read_json(folder / "metrics.json")["macro_auc"])

    return work


def loop(run: Run, drawn: np.ndarray, labels: np.ndarray) -> tuple[list[float], list[float], list[float]]:
    """AUC, AP and F1 of some labels on drawn documents, by scikit-learn; NaN where they are not defined."""
    from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

    if run.scores.dense is None:
        raise ValueError("loop: all scores are needed")
    auc, precision, f1 = [], [], []
    truth = sp.csc_array(run.truth)
    for label in labels:
        scores, true = run.scores.dense[drawn, label], truth[:, [label]].toarray()[drawn, 0]
        defined = true.any()
        auc.append(roc_auc_score(true, scores) if defined and not true.all() else np.nan)
        precision.append(average_precision_score(true, scores) if defined else np.nan)
        f1.append(f1_score(true, scores > np.float32(run.tuned.value), zero_division=0) if defined else np.nan)
    return auc, precision, f1


def make_run(documents: int, labels: int, *, noise: float = 0.0) -> Run:
    """A system of middling quality; `noise` makes another one on the same documents."""
    rng, own = np.random.default_rng(0), np.random.default_rng(1)
    prior = 1 / np.arange(1, labels + 1)
    prior = np.minimum(0.5, prior * LABELS_PER_DOCUMENT / prior.sum())
    n_train = rng.binomial(TRAINING_DOCUMENTS, prior)
    logit, strength = np.log(prior / (1 - prior)).astype(np.float32), rng.gamma(4, 0.5, size=labels).astype(np.float32)
    truth, scores = np.empty((documents, labels), dtype=bool), np.empty((documents, labels), dtype=np.float32)
    for start in range(0, documents, 500):
        part = slice(start, min(start + 500, documents))
        shape = (part.stop - start, labels)
        truth[part] = rng.random(shape, dtype=np.float32) < prior
        made = logit + strength * truth[part] + rng.standard_normal(shape, dtype=np.float32)
        if noise:
            made += noise * own.standard_normal(shape, dtype=np.float32)
        scores[part] = made.astype(np.float16)
    names, ids = tuple(map(str, range(labels))), tuple(map(str, range(documents)))
    space, true = LabelSpace(names, n_train, TRAINING_DOCUMENTS, Evaluation()), sp.csr_array(truth)
    thresholds = Thresholds.known(space, {"tuned": Tuned(-1.0, "macro_f1_present", 0.5)})
    return Run(Scores(ids, names, true, true, scores, 100, 0.0), space, thresholds)


def draw(documents: int, number: int) -> np.ndarray:
    """A column of ones, then bootstrap resamples, then halves."""
    rng = np.random.default_rng(2)
    ones = np.ones((documents, 1), dtype=np.float32)
    return np.concatenate([ones, draw_bootstrap(documents, number, rng), draw_halves(documents, number, rng)], axis=1)


def warm_up(metrics: list[str] | tuple[str, ...]) -> None:
    """Load the compiled code."""
    metric_values(make_run(30, 20), metrics, draw(30, 10))


@contextmanager
def numpy_only() -> Iterator[None]:
    """Without compiled code, however many resamples there are."""
    few, large = resamples.FEW, resamples.LARGE
    resamples.FEW = resamples.LARGE = 10**18
    try:
        yield
    finally:
        resamples.FEW, resamples.LARGE = few, large
