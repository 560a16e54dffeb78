"""Shortlists: a few candidate labels of every document, where the label set is too large to score whole.

    score(d, l) = sum over the distinct tokens t of document d of r_lt

with the relevance r_lt of a measure's file (0 for tokens that are not among the label's k). Nothing of the
document but its tokens is read, so the list is the same for a document whose labels are not known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy

from plant.corpus.reader import SPLITS, Labels, Tokens, load_labels, load_tokens
from plant.ground.errors import InputError
from plant.ground.files import read_arrays, write_arrays
from plant.metrics.top import top_labels
from plant.relevance.contingency import presence, spans

BLOCK = 8_000_000
"""Scores (document, label), and tokens, that are in memory at once: about 0.3 GB each."""


def write_shortlist(corpus: Path, tokens: Path, relevance: Path, *, size: int, out: Path) -> dict[str, float]:
    """Write the shortlists of all splits: the array `labels` of `best_labels`, from the file of a measure.

    Returns:
        For each split the share of true labels that are on their document's shortlist, in [0, 1]: facts for the
        record, which no score is made from.

    Raises:
        InputError: the files do not belong together.
    """
    labels, texts = load_labels(corpus), load_tokens(tokens)
    arrays = read_arrays(relevance)
    if len(arrays["indptr"]) != labels.n_labels + 1 or texts.n_documents != labels.n_documents:
        raise InputError(
            str(relevance),
            expected=f"relevance of {labels.n_labels} labels and tokens of {labels.n_documents} documents",
            got=f"{len(arrays['indptr']) - 1} labels and {texts.n_documents} documents",
            fix="Delete the relevance and the tokens and run again.",
        )
    best = best_labels(texts, arrays["indptr"], arrays["token_id"], arrays["relevance"], size=size)
    write_arrays(out, {"labels": best})
    return {f"recall_{split}": _recall(best, labels, split) for split in SPLITS}


def best_labels(
    tokens: Tokens, indptr: np.ndarray, token_id: np.ndarray, relevance: np.ndarray, *, size: int
) -> np.ndarray:
    """The labels of largest summed relevance of each document.

    Args:
        tokens: of all documents.
        indptr, token_id, relevance: T_l of each label as CSR, as in the relevance file.
        size: labels a document.

    Returns:
        int32 (N, size), label ids by falling score, equal scores by label id; -1 where no further label has a score
        above 0.
    """
    n_labels = len(indptr) - 1
    vocabulary = 1 + int(max(token_id.max(initial=0), tokens.input_ids.max(initial=0)))
    by_label = scipy.sparse.csr_array((relevance, token_id, indptr), shape=(n_labels, vocabulary))
    by_token = by_label.T.tocsr()  # one copy of the relevance, ordered by token
    best = np.empty((tokens.n_documents, size), dtype=np.int32)
    for first, last in spans(np.diff(tokens.offsets), BLOCK, most=max(1, BLOCK // max(1, n_labels))):
        scores = (presence(tokens, slice(first, last), vocabulary) @ by_token).toarray()
        best[first:last] = top_labels(np.where(scores > 0, scores, -np.inf), size)
    return best


def _recall(best: np.ndarray, labels: Labels, split: str) -> float:
    """Share of a split's true labels that are on their document's shortlist; 0 where it has none."""
    rows = labels.rows(split)
    listed = total = 0
    for document in range(rows.start, rows.stop):
        true = labels.row(document)
        listed += int(np.isin(true, best[document]).sum())
        total += len(true)
    return listed / total if total else 0.0
