"""What every baseline is given, how it chooses, and how its scores are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from plant.baselines.registry import Baseline
from plant.baselines.words import FEATURES, WEIGHTS
from plant.corpus.reader import Labels
from plant.ground.errors import InputError
from plant.ground.files import is_private, write_json, write_with
from plant.ground.identity import read_names
from plant.ground.settings import BaselineSettings, Evaluation, Relevance
from plant.ground.staging import owner_only
from plant.metrics.comparable import require_comparable
from plant.metrics.documents import Ranking, ndcg_at
from plant.metrics.f1 import top_labels
from plant.metrics.scores import Scores, read_scores, require_memory, write_scores
from plant.metrics.top import top_stored

SPLITS = ("val", "test")
K = 5
"""Labels a document in the criterion of every choice, nDCG@5."""


@dataclass(frozen=True)
class Sources:
    """What a baseline reads.

    Attributes:
        labels: of the corpus.
        settings: the options that are tried on validation.
        files: what its entry names as inputs beside documents and labels: the folder of `tokens`, the tables of
            `relevance` and `mentions`, the folder of another baseline's scores.
        relevance: which words are chosen, where a baseline measures relevance itself.
        category_ends: what a label's category ends before.
        seed: of what is drawn.
        threads: worker processes; no score depends on it.
    """

    labels: Labels
    settings: BaselineSettings = field(default_factory=BaselineSettings)
    files: Mapping[str, Path] = field(default_factory=dict)
    relevance: Relevance = field(default_factory=Relevance)
    category_ends: str | None = None
    seed: int = 0
    threads: int = 1

    def truth(self, split: str) -> sp.csr_array:
        """(N, L), boolean: the true labels of the documents of a split."""
        return truth_of(self.labels, split)


@dataclass(frozen=True)
class Outcome:
    """What a system makes.

    Attributes:
        scores: (N, L) of val and of test, -inf where there is none.
        natural_threshold: above which a label is predicted; None where the system has no such point.
        choices: for choices.json.
        weights, features: for weights.parquet and features.parquet (`plant.baselines.words`).
    """

    scores: Mapping[str, np.ndarray | sp.csr_array]
    natural_threshold: float | None
    choices: Mapping[str, Any]
    weights: pl.DataFrame | None = None
    features: pl.DataFrame | None = None


@dataclass(frozen=True)
class Document:
    """A test document whose score is explained: its text, and its tokens of the backbone `words`."""

    text: str
    tokens: frozenset[str]


Features = Callable[[Document, str], Mapping[str, float]]
"""Document and label -> feature -> its value there."""


def run(baseline: Baseline, sources: Sources, *, evaluation: Evaluation, out: Path) -> None:
    """Make and write the scores of val and test, choices.json, and what else the entry names.

    Raises:
        InputError: the scores need more memory than `evaluation.memory_gb`, or the inputs are not the baseline's.
    """
    labels = sources.labels
    shape = (int(labels.split_sizes[1:].sum()), labels.n_labels)
    require_memory(shape, settings=evaluation, where=f"scores of {baseline.name}")
    write(out, labels, baseline.function(sources), evaluation)


def write(out: Path, labels: Labels, made: Outcome, evaluation: Evaluation) -> None:
    """Write what a system made; readable by the owner only where the corpus is."""
    with owner_only(is_private(labels.folder / "train.parquet")):
        for split in SPLITS:
            write_scores(
                out, split, document_ids=labels.document_ids(split), label_names=labels.names,
                truth=truth_of(labels, split), scores=made.scores[split], natural_threshold=made.natural_threshold,
                settings=evaluation, names=read_names(labels.folder),
            )  # fmt: skip
        write_json(Path(out) / "choices.json", dict(made.choices))
        for name, table in ((WEIGHTS, made.weights), (FEATURES, made.features)):
            if table is not None:
                write_with(Path(out) / name, table.write_parquet)


def read_comparable(folders: Sequence[Path], split: str, labels: Labels) -> list[Scores]:
    """The scores of some systems for the documents and labels of a corpus.

    Raises:
        InputError: scores are missing, or of other documents or labels.
    """
    found = [read_scores(folder, split) for folder in folders]
    for folder, scores in zip(folders, found, strict=True):
        require_comparable(found[0], scores, f"{split} scores of {folders[0]} and {folder}")
    if found[0].label_names != labels.names or found[0].document_ids != labels.document_ids(split):
        raise InputError(
            str(folders[0]), expected=f"scores for the documents and labels of {labels.folder}", got="others",
            fix="Delete the evaluation folders of this dataset and run again.",
        )  # fmt: skip
    return found


def truth_of(labels: Labels, split: str) -> sp.csr_array:
    """(N, L), boolean: the true labels of the documents of a split."""
    indptr, indices = labels.part(split)
    return sp.csr_array((np.ones(len(indices), bool), indices, indptr), shape=(len(indptr) - 1, labels.n_labels))


def ndcg(scores: np.ndarray | sp.csr_array, truth: sp.csr_array) -> float:
    """nDCG@5, the mean over documents with a true label; 0 where there is none.

    >>> ndcg(np.array([[0.9, 0.1, 0.5]]), sp.csr_array(np.array([[True, False, True]])))
    1.0
    """
    best = top_labels(scores, K) if isinstance(scores, np.ndarray) else top_stored(scores, K)
    rows, places = np.nonzero(best >= 0)
    hits = np.zeros(best.shape, bool)
    hits[rows, places] = np.asarray(truth[rows, best[rows, places]]).ravel()
    terms = ndcg_at(Ranking(best, hits, np.diff(truth.indptr)), K)
    return float(np.nan_to_num(terms.total(np.ones((truth.shape[0], 1))))[0])


def best_of(name: str, values: Mapping[Any, float]) -> tuple[Any, dict[str, Any]]:
    """The option with the highest validation value (the first of equals), and the record for choices.json.

    >>> best_of("k", {1: 0.5, 2: 0.7})[0]
    2
    """
    best = max(values, key=lambda option: values[option])
    tried = [{name: option, f"ndcg@{K}": value} for option, value in values.items()]
    return best, {name: best, f"{name}_chosen_by": f"ndcg@{K} on val", f"{name}_tried": tried}
