"""For every baseline: what it is given, how it chooses its options, and how its scores are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from plant.baselines.registry import baselines
from plant.baselines.words import FEATURES, WEIGHTS
from plant.corpus.reader import Labels
from plant.ground.errors import InputError
from plant.ground.files import is_private, write_json, write_with
from plant.ground.identity import read_names
from plant.ground.settings import BaselineSettings, Evaluation, Relevance
from plant.ground.staging import owner_only
from plant.metrics.documents import ndcg_at_k
from plant.metrics.scores import Scores, read_scores, require_comparable, require_memory, write_scores

if TYPE_CHECKING:
    import polars as pl

SPLITS = ("val", "test")
K = 5
"""Every choice maximises nDCG@5 on validation."""


@dataclass(frozen=True)
class Sources:
    """What a baseline reads.

    Attributes:
        labels: of the corpus.
        settings: the options that are tried on validation.
        files: the inputs that the entry names beside documents and labels: the folder of `tokens`, the tables of
            `relevance` and `mentions`, the folder of another baseline's scores.
        relevance: for a baseline that measures it itself.
        category_ends: the category of a label is its name before this string.
        seed: of random draws.
        threads: worker processes; no score depends on their number.
    """

    labels: Labels
    settings: BaselineSettings = field(default_factory=BaselineSettings)
    files: Mapping[str, Path] = field(default_factory=dict)
    relevance: Relevance = field(default_factory=Relevance)
    category_ends: str | None = None
    seed: int = 0
    threads: int = 1

    @property
    def trained(self) -> np.ndarray:
        """(L,) whether a label has a training document. A baseline has no score (-inf) for the others."""
        return self.labels.counts[0] > 0

    def truth(self, split: str) -> scipy.sparse.csr_array:
        """(N, L), boolean: the true labels of the documents of a split."""
        return truth_of(self.labels, split)


@dataclass(frozen=True)
class Outcome:
    """The scores of a system, and what is written beside them.

    Attributes:
        scores: split (val, test) -> (N, L); -inf: no score. They are stored as fp16 (see `write_scores`).
        natural_threshold: a label with a score above it is predicted; None: the system has no threshold of its own.
        choices: for choices.json.
        weights, features: for weights.parquet and features.parquet (`plant.baselines.words`).
    """

    scores: Mapping[str, np.ndarray | scipy.sparse.csr_array]
    natural_threshold: float | None
    choices: Mapping[str, Any]
    weights: pl.DataFrame | None = None
    features: pl.DataFrame | None = None


@dataclass(frozen=True)
class ExplainedDocument:
    """A test document whose score is explained: its text, and its tokens of the backbone `words`."""

    text: str
    tokens: frozenset[str]


Features = Callable[[ExplainedDocument, str], Mapping[str, float]]
"""Document and label -> feature -> its value in the document."""


def run(name: str, sources: Sources, *, evaluation: Evaluation, out: Path) -> None:
    """Make a baseline's scores of val and test, and write them with choices.json and the outputs of its entry.

    Raises:
        InputError: the scores need more memory than `evaluation.memory_gb`, or the inputs are not the baseline's.
    """
    labels = sources.labels
    shape = (int(labels.split_sizes[1:].sum()), labels.n_labels)
    require_memory(shape, settings=evaluation, where=f"scores of {name}")
    made = baselines()[name].function(sources)
    write(out, labels, made, evaluation=evaluation, beside=labels.folder / "train.parquet")


def choose(
    sources: Sources, name: str, options: Iterable[Any], score: Callable[[str, Any], np.ndarray]
) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """The option with the best validation scores, the record for choices.json, and split -> scores under this option.

    `name` is that of the option in choices.json; `score` gives (N, L) float32 scores of a split under an option. Labels
    without training documents lose their scores here.
    """

    def trained_scores(split: str, option: Any) -> np.ndarray:
        scores = score(split, option)
        scores[:, ~sources.trained] = -np.inf
        return scores

    truth = sources.truth("val")
    best, choices = best_of(name, {option: ndcg(trained_scores("val", option), truth) for option in options})
    return best, choices, {split: trained_scores(split, best) for split in SPLITS}


def write(out: Path, labels: Labels, made: Outcome, *, evaluation: Evaluation, beside: Path) -> None:
    """Write the outcome of a system. If only the owner can read the file `beside`, the same holds for the outcome."""
    with owner_only(is_private(beside)):
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
    systems = [read_scores(folder, split) for folder in folders]
    for folder, scores in zip(folders, systems, strict=True):
        require_comparable(systems[0], scores, f"{split} scores of {folders[0]} and {folder}")
    if systems[0].label_names != labels.names or systems[0].document_ids != labels.document_ids(split):
        raise InputError(
            str(folders[0]), expected=f"scores for the documents and labels of {labels.folder}", got="others",
            fix="Delete the evaluation folders of this dataset and run again.",
        )  # fmt: skip
    return systems


def truth_of(labels: Labels, split: str) -> scipy.sparse.csr_array:
    """As `Sources.truth`."""
    indptr, indices = labels.part(split)
    return scipy.sparse.csr_array(
        (np.ones(len(indices), bool), indices, indptr), shape=(len(indptr) - 1, labels.n_labels)
    )


def ndcg(scores: np.ndarray | scipy.sparse.csr_array, truth: scipy.sparse.csr_array) -> float:
    """nDCG@5, the mean over documents with a true label; 0 if there is none."""
    return float(np.nan_to_num(ndcg_at_k(truth, scores, K, weights=np.ones((truth.shape[0], 1))))[0])


def best_of(name: str, values: Mapping[Any, float]) -> tuple[Any, dict[str, Any]]:
    """The option with the highest validation value (the first of equal ones), and the record for choices.json."""
    best = max(values, key=lambda option: values[option])
    tried = [{name: option, f"ndcg@{K}": value} for option, value in values.items()]
    return best, {name: best, f"{name}_chosen_by": f"ndcg@{K} on val", f"{name}_tried": tried}
