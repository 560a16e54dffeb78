"""A run: one system and seed on the test split. Every metric is computed from it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from plant.ground.errors import InputError
from plant.metrics.documents import Ranking, brier_gains, rank
from plant.metrics.groups import LabelSpace
from plant.metrics.scores import Scores, read_scores
from plant.metrics.thresholds import NATURAL, THRESHOLD_RULES, TUNED, TunedThreshold, predict

ThresholdOf = Callable[[str], TunedThreshold]
"""Threshold rule -> the threshold of a run. It is tuned when it is first asked for."""


@dataclass(frozen=True, eq=False)
class Run:
    """Test scores, and thresholds from validation scores. Predictions and rankings are made once."""

    scores: Scores
    labels: LabelSpace
    thresholds: ThresholdOf
    _rankings: dict[str | None, Ranking] = field(default_factory=dict, repr=False)
    _predictions: dict[str, sp.csr_array | None] = field(default_factory=dict, repr=False)

    @property
    def truth(self) -> sp.csr_array:
        return self.scores.truth

    def predictions(self, rule: str) -> sp.csr_array | None:
        """(N, L) boolean: the labels that a threshold rule predicts; None if the scores have no natural threshold."""
        if rule not in self._predictions:
            self._predictions[rule] = self._predict(rule)
        return self._predictions[rule]

    def _predict(self, rule: str) -> sp.csr_array | None:
        if rule == NATURAL:
            natural = self.scores.natural_threshold
            return None if natural is None else predict(self.scores, natural)
        threshold = self.thresholds(rule)
        return predict(self.scores, threshold.value, slope=threshold.slope, n_train=self.labels.n_train)

    def ranking(self, group: str | None) -> Ranking:
        """The best labels of each document, as many as the largest k of `evaluation.at`.

        For a group, all other labels are deleted from the ranking and from the truth (the LMTC convention). If only the
        top K scores were kept, they may hold fewer than k labels of the group: its metrics are then lower bounds.
        """
        if group not in self._rankings:
            labels = slice(None) if group is None else np.flatnonzero(self.labels.groups[group])
            truth, scores = self.truth[:, labels], self.scores.known[:, labels]
            self._rankings[group] = rank(truth, scores, max(self.labels.settings.at))
        return self._rankings[group]

    @property
    def curve_scores(self) -> tuple[np.ndarray | sp.csr_array, np.ndarray | None]:
        """Scores and bound for the curve of each label (`plant.metrics.curves.label_curves`)."""
        scores = self.scores
        return (scores.kept, scores.bound) if scores.dense is None else (scores.dense, None)

    @property
    def all_scores(self) -> np.ndarray | None:
        """(N, L) for the curve over all pairs; None if not all scores are known."""
        return self.scores.dense

    @cached_property
    def brier_gains(self) -> np.ndarray | None:
        """(N,) (see `documents.brier_gains`); None if the scores have no natural threshold, and so no scale."""
        threshold = self.scores.natural_threshold
        return None if threshold is None else brier_gains(self.truth, self.scores.known, threshold)


def load_run(folder: Path, labels: LabelSpace, thresholds: ThresholdOf | None = None) -> Run:
    """Read the test scores, and the validation scores when a threshold has to be tuned.

    Raises:
        InputError: a score file is missing or damaged, its labels are not those of the corpus, or fewer scores
            were kept than the largest k of `evaluation.at`.
    """
    thresholds = thresholds or cache(lambda rule: THRESHOLD_RULES[rule](_read(folder, "val", labels), labels))
    thresholds(TUNED)  # before the test scores are in memory
    return Run(_read(folder, "test", labels), labels, thresholds)


def _read(folder: Path, split: str, labels: LabelSpace) -> Scores:
    scores = read_scores(folder, split)
    where = f"{Path(folder)}/{split}.scores.parquet"
    if scores.label_names != labels.names:
        same_number = len(scores.label_names) == len(labels.names)
        raise InputError(
            where, expected=f"scores of the corpus' {len(labels.names)} labels",
            got=f"{len(scores.label_names)} labels" + ", in another order or with other names" * same_number,
            fix="The corpus changed: delete the evaluation folder and run again.",
        )  # fmt: skip
    if scores.dense is None and scores.top < max(labels.settings.at):
        raise InputError(
            where, expected=f"at least {max(labels.settings.at)} kept scores per document (max of evaluation.at)",
            got=f"{scores.top}", fix="Raise evaluation.top, or lower evaluation.at.",
        )  # fmt: skip
    return scores
