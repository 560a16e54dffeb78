"""What every baseline is scored on, how it chooses, and how it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from plant.corpus.reader import Labels
from plant.ground.files import is_private, write_json
from plant.ground.settings import Evaluation
from plant.ground.staging import owner_only
from plant.metrics.documents import ndcg_at_k
from plant.metrics.scores import write_scores

SPLITS = ("val", "test")
K = 5
"""Labels a document in the criterion of every choice, nDCG@5."""


def truth_of(labels: Labels, split: str) -> sp.csr_array:
    """(N, L), boolean: the true labels of the documents of a split."""
    indptr, indices = labels.part(split)
    return sp.csr_array((np.ones(len(indices), bool), indices, indptr), shape=(len(indptr) - 1, labels.n_labels))


def ndcg(scores: np.ndarray | sp.csr_array, truth: sp.csr_array) -> float:
    """nDCG@5, the mean over documents with a true label; 0 where there is none.

    >>> ndcg(np.array([[0.9, 0.1, 0.5]]), sp.csr_array(np.array([[True, False, True]])))
    1.0
    """
    return float(np.nan_to_num(ndcg_at_k(truth, scores, K, weights=np.ones((truth.shape[0], 1))))[0])


def best_of(name: str, values: Mapping[Any, float]) -> tuple[Any, dict[str, Any]]:
    """The option with the highest validation value (the first of equals), and the record for choices.json.

    >>> best_of("k", {1: 0.5, 2: 0.7})[0]
    2
    """
    best = max(values, key=lambda option: values[option])
    tried = [{name: option, f"ndcg@{K}": value} for option, value in values.items()]
    return best, {name: best, f"{name}_chosen_by": f"ndcg@{K} on val", f"{name}_tried": tried}


def write(
    out: Path,
    *,
    document_ids: Mapping[str, Sequence[str]],
    label_names: Sequence[str],
    truth: Mapping[str, sp.csr_array],
    scores: Mapping[str, np.ndarray | sp.csr_array],
    natural_threshold: float | None,
    evaluation: Evaluation,
    choices: Mapping[str, Any],
    beside: Path,
    names: tuple[str | None, str | None],
) -> None:
    """Write the scores of val and test and choices.json; readable by the owner only where `beside` is.

    `names` are those of the split and of the label space.
    """
    with owner_only(is_private(beside)):
        for split in SPLITS:
            write_scores(
                out, split, document_ids=document_ids[split], label_names=label_names, truth=truth[split],
                scores=scores[split], natural_threshold=natural_threshold, settings=evaluation, names=names,
            )  # fmt: skip
        write_json(Path(out) / "choices.json", dict(choices))
