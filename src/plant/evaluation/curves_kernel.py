"""The sums of `curves.py` for many resamples, as one compiled walk down each label's ranking.

Resamples are taken CHUNK at a time, so that the weights in use stay in the cache and every inner loop is a vector
loop over resamples. The walk of a label ends at its last positive. Counts are float64: whole numbers, so exact.
"""

import numpy as np
from numba import njit

CHUNK = 512


@njit(cache=True)
def areas(  # type: ignore[no-untyped-def]
    starts, documents, codes, truth, signs, above_rows, above, weights, total, never, auc, precision
):
    """Fill `auc` and `precision` (labels, B).

    The other arguments: the fields of `curves.Entries`, the bounds above each entry, W (N, B), the (B,) weight of
    all documents of a label, and the code of -inf.
    """
    hit, tie, found, seen = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
    positives, pairs, precise = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
    drawn = np.empty((weights.shape[0], CHUNK), dtype=weights.dtype)
    for begin in range(0, weights.shape[1], CHUNK):
        width = min(CHUNK, weights.shape[1] - begin)
        drawn[:, :width] = weights[:, begin : begin + width]
        for label in range(starts.size - 1):
            entry, end = starts[label], starts[label + 1]
            positives[:], found[:], seen[:], pairs[:], precise[:] = 0, 0, 0, 0, 0
            left = _add_true(positives, drawn, documents, truth, entry, end, width)
            while left > 0:
                code, first, true = codes[entry], entry, 0
                while entry < end and codes[entry] == code:
                    true += truth[entry]
                    entry += 1
                if true == 0:
                    _add_false(seen, drawn, documents, truth, signs, first, entry, width)
                    continue
                left -= true
                hit[:], tie[:] = 0, 0
                _add_true(hit, drawn, documents, truth, first, entry, width)
                _add_false(tie, drawn, documents, truth, signs, first, entry, width)
                for b in range(width):
                    seen[b] += tie[b]
                    found[b] += hit[b]
                    pairs[b] += hit[b] * (total[begin + b] - positives[b] - seen[b] + 0.5 * tie[b])
                if code > never:
                    bounds = above[above_rows[first], begin : begin + width]
                    for b in range(width):  # whole numbers: where anything is found, the sum is at least 1
                        precise[b] += hit[b] * found[b] / max(found[b] + seen[b] + bounds[b], 1.0)
            for b in range(width):
                negatives = total[begin + b] - positives[b]
                precision[label, begin + b] = precise[b] / positives[b] if positives[b] > 0 else np.nan
                defined = positives[b] > 0 and negatives > 0
                auc[label, begin + b] = pairs[b] / (positives[b] * negatives) if defined else np.nan


@njit(cache=True)
def _add_true(sums, drawn, documents, truth, first, last, width):  # type: ignore[no-untyped-def]
    """Add the weights of the true entries to `sums` and return how many there are."""
    number = 0
    for entry in range(first, last):
        if truth[entry]:
            number += 1
            row = drawn[documents[entry]]
            for b in range(width):
                sums[b] += row[b]
    return number


@njit(cache=True)
def _add_false(sums, drawn, documents, truth, signs, first, last, width):  # type: ignore[no-untyped-def]
    """Add the signed weights of the false entries to `sums`."""
    for entry in range(first, last):
        if truth[entry]:
            continue
        row = drawn[documents[entry]]
        if signs[entry] > 0:
            for b in range(width):
                sums[b] += row[b]
        else:
            for b in range(width):
                sums[b] -= row[b]
