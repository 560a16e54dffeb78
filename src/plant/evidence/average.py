"""The average of two classifiers (earlier version of the paper, A.11: a forward and a backward AWD-LSTM).

    p(d, l) = (sigmoid(a(d, l)) + sigmoid(b(d, l))) / 2

a and b are logits. The text averages "the classifier predictions", and its Eq. 8 calls the probabilities predictions.
The logit of p is written, as for every network: its natural threshold is 0, and fp16 holds small probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plant.baselines.target import SPLITS, Outcome, read_comparable, write
from plant.corpus.reader import load_labels
from plant.ground.settings import Evaluation
from plant.metrics.aligned import align


def average(folders: Sequence[Path], *, corpus: Path, evaluation: Evaluation, out: Path) -> None:
    """Average the scores of two networks (`folders`) on validation and test, and write them by the scores contract.

    The pairs are those of `plant.metrics.aligned.align`. A pair without a score in one of them has no score (-inf).

    Raises:
        InputError: scores are missing, or of other documents or labels.
    """
    labels = load_labels(corpus)
    pairs = {split: align(read_comparable(folders, split, labels)) for split in SPLITS}
    scores = {split: part.filled(mean_logit(*part.scores)) for split, part in pairs.items()}
    # <backbone>/<system>/seed<seed>
    names = ["/".join(Path(folder).parts[-3:]) for folder in folders]
    beside = Path(folders[0]) / "val.scores.parquet"
    write(out, labels, Outcome(scores, 0.0, {"average_of": names}), evaluation=evaluation, beside=beside)


def mean_logit(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The logit of the mean of two probabilities, from their logits; float32. It is -inf where one of them is.

    >>> mean_logit(np.array([3.0, -np.inf]), np.array([3.0, 2.0])).tolist()
    [3.0, -inf]
    """
    known = np.isfinite(first) & np.isfinite(second)
    a, b = (np.where(known, values, 0.0).astype(np.float64) for values in (first, second))
    # log(p) and log(1 - p), both up to log 2: exact where p is close to 0 or 1
    yes = np.logaddexp(-np.logaddexp(0, -a), -np.logaddexp(0, -b))
    no = np.logaddexp(-np.logaddexp(0, a), -np.logaddexp(0, b))
    return np.where(known, yes - no, -np.inf).astype(np.float32)
