"""One training run of a system, ready to be measured on its test split."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from plant.ground.errors import InputError
from plant.metrics import documents
from plant.metrics.curves import Kept
from plant.metrics.documents import Ranking, Terms
from plant.metrics.groups import LabelSpace
from plant.metrics.names import BRIER_SKILL, Cut, Metric
from plant.metrics.scores import Scores, read_scores
from plant.metrics.thresholds import Thresholds, Tuned, predict


@dataclass(frozen=True, eq=False)
class Run:
    """Test scores with the thresholds that are tuned on validation scores."""

    scores: Scores
    labels: LabelSpace
    thresholds: Thresholds
    _rankings: dict[str | None, Ranking] = field(default_factory=dict, repr=False)
    _predictions: dict[Cut, sp.csr_array | None] = field(default_factory=dict, repr=False)

    @property
    def truth(self) -> sp.csr_array:
        return self.scores.truth

    @property
    def tuned(self) -> Tuned:
        """The one threshold of all metrics that do not say another."""
        tuned = self.thresholds.of("tuned")
        if tuned is None:
            raise ValueError("a run needs a tuned threshold, or validation scores to tune it on")
        return tuned

    def predictions(self, cut: Cut) -> sp.csr_array | None:
        """(N, L) boolean at the threshold of a cut; None where there is none."""
        if cut not in self._predictions:
            self._predictions[cut] = self._predicted(cut)
        return self._predictions[cut]

    def _predicted(self, cut: Cut) -> sp.csr_array | None:
        if cut == "natural":
            threshold = self.scores.natural_threshold
            return None if threshold is None else predict(self.scores, threshold)
        tuned = self.thresholds.of(cut)
        if tuned is None:
            return None
        return predict(self.scores, tuned.value, slope=tuned.slope, n_train=self.labels.n_train)

    def curve_scores(self) -> np.ndarray | Kept:
        """What AUC and AP of single labels are computed from."""
        return self.scores.dense if self.scores.dense is not None else Kept(self.scores.kept, self.scores.bound)

    def all_scores(self) -> np.ndarray | None:
        """What micro-AUC is computed from."""
        return self.scores.dense

    def terms(self, metric: Metric) -> Terms | None:
        """Terms of a metric over documents; None where it is not defined."""
        if metric.base == BRIER_SKILL:
            return documents.brier_skill(self.scores)
        if metric.k is None:
            predicted, truth = self.predictions(metric.cut), self.truth
            if predicted is None:
                return None
            if metric.group is not None:
                members = np.flatnonzero(self.labels.groups[metric.group])
                predicted, truth = predicted[:, members], truth[:, members]
            return documents.BY_NAME[metric.base](predicted, truth)
        if metric.base == "psp":
            inverse = self.labels.inverse_propensity
            if inverse is None:
                return None
            return documents.propensity_precision_at(self._ranking(None), metric.k, truth=self.truth, inverse=inverse)
        return documents.AT[metric.base](self._ranking(metric.group), metric.k)

    def _ranking(self, group: str | None) -> Ranking:
        if group not in self._rankings:
            members = None if group is None else self.labels.groups[group]
            self._rankings[group] = documents.rank(self.scores, max(self.labels.settings.at), members)
        return self._rankings[group]


def load_run(folder: Path, labels: LabelSpace, thresholds: Thresholds | None = None) -> Run:
    """Read the validation scores for the threshold (unless it is given) and the test scores for everything else.

    The threshold `tuned` is there at once; `micro` and `sloped` read the validation scores again if they are asked for.

    Raises:
        InputError: a score file is missing or damaged, its labels are not those of the corpus, or fewer scores
            were kept than the largest k of `evaluation.at`.
    """
    thresholds = thresholds or Thresholds(lambda: _read(folder, "val", labels), labels)
    thresholds.of("tuned")
    return Run(_read(folder, "test", labels), labels, thresholds)


def _read(folder: Path, split: str, labels: LabelSpace) -> Scores:
    scores = read_scores(folder, split)
    where = f"{Path(folder)}/{split}.scores.parquet"
    if scores.label_names != labels.names:
        raise InputError(
            where, expected=f"scores of the corpus' {len(labels.names)} labels",
            got=f"{len(scores.label_names)} labels" + (", in another order or with other names"
            if len(scores.label_names) == len(labels.names) else ""),
            fix="The corpus changed: delete the evaluation folder and run again.",
        )  # fmt: skip
    if scores.dense is None and scores.top < max(labels.settings.at):
        raise InputError(
            where, expected=f"at least {max(labels.settings.at)} kept scores a document (max of evaluation.at)",
            got=f"{scores.top}", fix="Raise evaluation.top, or lower evaluation.at.",
        )  # fmt: skip
    return scores
