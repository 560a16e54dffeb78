"""Which tokens of a document are ranked for a label: those that are in T_l (choice C03)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plant.ground.errors import InputError
from plant.ground.files import read_arrays
from plant.model.assemble import TrainingData
from plant.pretraining.ndcg import OUTSIDE

LOOKED_UP = 2**20  # tokens of labels that are compared with a document at once: about 20 MB


@dataclass(frozen=True)
class TopTokens:
    """T_l of every label with the relevance r_lj, for look-up by input id.

    The arrays are those of the relevance file. 131K labels with 1,000 tokens each are 1 GB, which is mapped and not
    copied.
    """

    starts: np.ndarray  # i64 (|L|), where a label's tokens begin
    sizes: np.ndarray  # i64 (|L|), how many of them are in T_l, at most k
    token_id: np.ndarray  # i32, in rank order within a label
    relevance: np.ndarray  # f32 in [0, 1], of each token
    vocabulary: int  # V, above every token id and input id

    @classmethod
    def from_csr(
        cls, indptr: np.ndarray, token_id: np.ndarray, relevance: np.ndarray, *, k: int, vocabulary: int
    ) -> "TopTokens":
        """Keep the first k tokens of each label; label l has the rows indptr[l]:indptr[l + 1], in rank order."""
        return cls(indptr[:-1], np.minimum(np.diff(indptr), k), token_id, relevance, vocabulary)

    def relevance_of(self, labels: np.ndarray, input_ids: np.ndarray) -> np.ndarray:
        """r_lj of each position of a document (n) for each label (m): f32 (m, n), -1 where the token is not in T_l."""
        tokens, where = np.unique(input_ids, return_inverse=True)  # u distinct tokens, and the place of each position
        column = np.full(self.vocabulary, -1, dtype=np.int32)
        column[tokens] = np.arange(len(tokens))
        # (m, u), some labels at a time
        found = np.full((len(labels), len(tokens)), OUTSIDE, dtype=np.float32)
        ends = np.cumsum(self.sizes[labels])
        first = 0
        while first < len(labels):
            before = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + LOOKED_UP, side="right")))
            self._find(labels[first:last], column, found[first:last])
            first = last
        return found[:, where]  # (m, n)

    def _find(self, labels: np.ndarray, column: np.ndarray, found: np.ndarray) -> None:
        """Fill in the relevance of the tokens that have a column."""
        sizes = self.sizes[labels]
        row = np.repeat(np.arange(len(labels)), sizes)
        begins = self.starts[labels] - (np.cumsum(sizes) - sizes)
        entry = np.repeat(begins, sizes) + np.arange(len(row))
        at = column[self.token_id[entry]]
        met = at >= 0
        found[row[met], at[met]] = self.relevance[entry[met]]


def load_top_tokens(source: Path, data: TrainingData, *, k: int | None) -> TopTokens:
    """T_l from `{measure}.safetensors` of the relevance room, in the trained label space; k of None keeps every token.

    Raises:
        InputError: the file has another number of labels than the corpus.
    """
    arrays = read_arrays(source)
    indptr = arrays["indptr"]
    if len(indptr) != len(data.names) + 1:
        raise InputError(
            str(source), expected=f"{len(data.names)} labels", got=str(len(indptr) - 1), fix="Delete it and run again."
        )
    sizes = np.diff(indptr)[data.trained]
    return TopTokens(
        indptr[data.trained],
        sizes if k is None else np.minimum(sizes, k),
        arrays["token_id"],
        arrays["relevance"],
        vocabulary=1 + int(max(arrays["token_id"].max(initial=0), data.corpus.input_ids.max(initial=0))),
    )


def labels_of_document(
    positives: np.ndarray, eligible: np.ndarray, negatives: int | None, random: np.random.Generator
) -> np.ndarray:
    """Labels that enter Stage 1 for one document (choice C05): its positives, then some others; or all, ascending.

    Args:
        positives: label ids of the document, all of them eligible.
        eligible: ids of the labels that Stage 1 knows, ascending.
        negatives: labels drawn from the others, without replacement; None takes every label.
        random: of the epoch.
    """
    if negatives is None:
        return eligible
    # as many labels more as there are positives: enough are left without the positives
    size = min(len(eligible), negatives + len(positives))
    drawn = eligible[random.choice(len(eligible), size=size, replace=False)]
    others = drawn[~np.isin(drawn, positives)][:negatives]
    return np.concatenate([positives, others])


def label_weights(labels: np.ndarray, positives: int, eligible: int) -> np.ndarray:
    """Weights (at least 1) that make the sum over sampled labels unbiased for the sum over all (choice C05).

    The |P| positives come first, are always there, and count once. n of the |L| - |P| other eligible labels were drawn,
    each with probability n / (|L| - |P|), so each of them counts (|L| - |P|) / n times.
    """
    drawn = len(labels) - positives
    weights = np.ones(len(labels), dtype=np.float32)
    weights[positives:] = (eligible - positives) / max(1, drawn)
    return weights


def packed(relevance: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Move the positions inside each list to the front, so that rows are as short as the longest list.

    The relevance is (m_b, n_b) for each document, -1 outside. Returns positions i64 and relevance f32, both (B, m, t);
    relevance is -1 where a row or list has ended.
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
