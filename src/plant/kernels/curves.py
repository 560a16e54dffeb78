"""Area under the ROC curve and average precision in many resamples at once: one walk down a ranking.

For a label, let g run over its distinct scores from the highest down. Let P_g be the weight of the positives and T_g
that of the negatives at this score, and R_g and N_g the weights of the positives and negatives at or above it:

    AUC = sum_g P_g (N - N_g + T_g / 2) / (P N),      AP = sum_g P_g / P * R_g / (R_g + N_g)

This is the definition of scikit-learn, ties included: `roc_auc_score` and `average_precision_score` with
`sample_weight` are the plain functions that the kernels must equal. With whole numbers as weights every sum is exact.

What it buys: scikit-learn sorts each label again in each resample; here a label is sorted once, and the inner loops add
the weights of all resamples side by side. docs/evidence/speed.md has the times of whole runs.
"""

import numpy as np

from plant.kernels.compiled import njit

_TINY = 1e-300


@njit()
def curve_areas(  # type: ignore[no-untyped-def]
    starts, documents, codes, truth, signs, retrieved, weights, total, others, rows, auc, precision
):
    """Fill `auc` and `precision` (labels, B); NaN without a positive (or, AUC, without a negative).

    Args:
        starts: (labels + 1,), the entries of label i are starts[i]:starts[i + 1], from the highest score down and at
            equal scores the positives first.
        documents, codes, truth: of each entry; equal scores have equal codes.
        signs: of each entry; -1 takes the weight of a negative away again.
        retrieved: of each entry; False where there is no score, so that a positive adds nothing to AP.
        weights: (N, B), not negative.
        total: (B,), weight of all documents.
        others, rows: (n, B), and a row of it for each entry: weight of further negatives at or above its score.
        auc, precision: (labels, B), written.
    """
    resamples = weights.shape[1]
    hit, tie, found, seen = np.empty(resamples), np.empty(resamples), np.empty(resamples), np.empty(resamples)
    pairs, precise = np.empty(resamples), np.empty(resamples)
    for label in range(starts.size - 1):
        found[:], seen[:], pairs[:], precise[:] = 0, 0, 0, 0
        entry, end = starts[label], starts[label + 1]
        while end > entry and not truth[end - 1]:  # negatives below the last positive change nothing
            end -= 1
        while entry < end:
            level = entry
            if not truth[level]:  # no positive has this score
                _add(seen, signs[entry], weights[documents[entry]])
                entry += 1
                continue
            hit[:], tie[:] = 0, 0
            while entry < starts[label + 1] and codes[entry] == codes[level]:
                _add(hit if truth[entry] else tie, signs[entry], weights[documents[entry]])
                entry += 1
            for b in range(resamples):
                found[b] += hit[b]
                seen[b] += tie[b]
                pairs[b] += hit[b] * (0.5 * tie[b] - seen[b])
            if retrieved[level]:
                above = others[rows[level]]
                for b in range(resamples):
                    precise[b] += hit[b] * (found[b] / max(found[b] + seen[b] + above[b], _TINY))
        for b in range(resamples):
            every = found[b] * (total[b] - found[b])
            auc[label, b] = (every + pairs[b]) / every if every > 0 else np.nan
            precision[label, b] = precise[b] / found[b] if found[b] > 0 else np.nan


@njit()
def level_sums(codes, truth, levels, weights, sums):  # type: ignore[no-untyped-def]
    """Add the weights of (documents, labels) entries to `sums` (levels, 3, B), for one list of all of them.

    `levels` are the distinct codes of the positives, descending. Of each level: the weight of the negatives between it
    and the level above, of the negatives at it, and of its positives. Negatives below the last level are left out.
    """
    ascending = levels[::-1].copy()
    for document in range(codes.shape[0]):
        places = levels.size - np.searchsorted(ascending, codes[document], side="right")
        for label in range(codes.shape[1]):
            level = places[label]  # the first level that is not above the code
            if level < levels.size:
                kind = 2 if truth[document, label] else 1 if levels[level] == codes[document, label] else 0
                _add(sums[level, kind], 1, weights[document])


@njit()
def _add(sums, sign, row):  # type: ignore[no-untyped-def]
    for b in range(sums.size):
        sums[b] += sign * row[b]
