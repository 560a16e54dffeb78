"""Which tokens of a document are ranked for a label: T_l met with the document (choice C03)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plant.errors import InputError
from plant.files import read_arrays
from plant.model.assemble import TrainingData
from plant.pretraining.ndcg import OUTSIDE


@dataclass(frozen=True)
class TopTokens:
    """T_l of every label with the relevance r_lj, for look-up by input id.

    Attributes:
        keys: label * vocabulary + token id, ascending.
        relevance: f32, of each key, in [0, 1].
        vocabulary: size V of the tokenizer.
    """

    keys: np.ndarray
    relevance: np.ndarray
    vocabulary: int

    @classmethod
    def from_csr(
        cls, indptr: np.ndarray, token_id: np.ndarray, relevance: np.ndarray, *, k: int, vocabulary: int
    ) -> "TopTokens":
        """Keep the first k of each label; the rows come in rank order.

        Args:
            indptr: i64 (|L| + 1).
            token_id: i32, in rank order within a label.
            relevance: f32 in [0, 1], descending within a label.
            k: tokens kept a label.
            vocabulary: V; every token id is below it.
        """
        sizes = np.diff(indptr)
        label = np.repeat(np.arange(len(sizes)), sizes)
        kept = np.arange(len(token_id)) - np.repeat(indptr[:-1], sizes) < k
        keys = label[kept].astype(np.int64) * vocabulary + token_id[kept]
        order = np.argsort(keys)
        return cls(keys[order], relevance[kept][order].astype(np.float32), vocabulary)

    def relevance_of(self, labels: np.ndarray, input_ids: np.ndarray) -> np.ndarray:
        """r_lj of each position of a document for each label; a token's repeats share one relevance.

        Args:
            labels: label ids (m).
            input_ids: of the document (n).

        Returns:
            f32 (m, n): in [0, 1], or -1 where the position's token is not in T_l.
        """
        if not len(self.keys):
            return np.full((len(labels), len(input_ids)), OUTSIDE, dtype=np.float32)
        tokens, where = np.unique(input_ids, return_inverse=True)
        wanted = labels[:, None].astype(np.int64) * self.vocabulary + tokens[None, :]
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        found = np.where(self.keys[at] == wanted, self.relevance[at], np.float32(OUTSIDE))
        return found[:, where]


def load_top_tokens(source: Path, data: TrainingData, *, k: int | None) -> TopTokens:
    """T_l from a relevance file, in the trained label space.

    Args:
        source: `{measure}.safetensors` of the relevance room.
        data: whose label space is used.
        k: tokens kept a label; None keeps what the file has.

    Raises:
        InputError: the file has another number of labels than the corpus.
    """
    arrays = read_arrays(source)
    indptr = arrays["indptr"]
    if len(indptr) != len(data.names) + 1:
        raise InputError(
            str(source), expected=f"{len(data.names)} labels", got=str(len(indptr) - 1), fix="Delete it and run again."
        )
    rows = [slice(indptr[label], indptr[label + 1]) for label in data.trained]
    return TopTokens.from_csr(
        np.concatenate([[0], np.cumsum([row.stop - row.start for row in rows])]),
        np.concatenate([arrays["token_id"][row] for row in rows]),
        np.concatenate([arrays["relevance"][row] for row in rows]),
        k=int(np.diff(indptr).max()) if k is None else k,
        # above every id that is looked up: a key belongs to one label only
        vocabulary=1 + int(max(arrays["token_id"].max(initial=0), data.corpus.input_ids.max(initial=0))),
    )


def labels_of_document(
    positives: np.ndarray, n_labels: int, negatives: int | None, random: np.random.Generator
) -> np.ndarray:
    """Labels that enter Stage 1 for one document (choice C05): its positives and some others, or all.

    Args:
        positives: label ids of the document.
        n_labels: |L|.
        negatives: labels drawn from the others, without replacement; None takes every label.
        random: of the epoch.

    Returns:
        Label ids, positives first.
    """
    if negatives is None:
        return np.arange(n_labels)
    # drawn from all labels, more than needed, and thinned: the label set may be large, the draw small
    drawn = random.choice(n_labels, size=min(n_labels, negatives + len(positives)), replace=False)
    others = drawn[~np.isin(drawn, positives)][:negatives]
    return np.concatenate([positives, others])


def packed(relevance: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Move the positions inside each list to the front, so that rows are as short as the longest list.

    Args:
        relevance: for each document (m_b, n_b) with -1 outside.

    Returns:
        positions i64 and relevance f32, both (B, m, t); relevance is -1 where a row or list has ended.
    """
    m = max(part.shape[0] for part in relevance)
    t = max(1, max(int((part >= 0).sum(1).max(initial=0)) for part in relevance))
    positions = np.zeros((len(relevance), m, t), dtype=np.int64)
    values = np.full((len(relevance), m, t), OUTSIDE, dtype=np.float32)
    for document, part in enumerate(relevance):
        row, column = np.nonzero(part >= 0)
        slot = np.arange(len(row)) - np.concatenate([[0], np.cumsum(np.bincount(row, minlength=m))])[row]
        positions[document, row, slot] = column
        values[document, row, slot] = part[row, column]
    return positions, values
