"""The sums of `curves.py` for many resamples, compiled (numba: no compiler is needed on the user's machine).

What AUC and AP of a label need is not its ranking but, for each score that a positive has (a *level*, highest first),
four sums of weights: of the negatives between it and the level above (a *run*), of the negatives at it (*ties*), and
of its positives. So the documents of a label are not sorted but put into the buckets of its levels, and within a
bucket stay in their own order, which is how their weights lie in memory; below the last level they are dropped.
That is done once, whatever the number of resamples.

Then weights are added bucket by bucket: one byte a weight, CHUNK resamples side by side, so that one instruction adds
16 to 64 of them. Bytes are widened before they can overflow; whole numbers are exact up to the last division.
docs/speed/bootstrap.md counts the operations.
"""

import numpy as np
from numba import uint8

from plant.kernels.compiled import njit

CHUNK = 512
"""Resamples that are summed side by side: measured best of 64 to 2048 (the weights of a chunk stay in the cache)."""
BUCKETS = 5
"""Of a level: its run, the signed-out entries of the run, ties, signed-out ties, positives."""
GUIDED = 256
"""Levels of a label from which on a table pays that says where to search."""
_RUN, _TIE, _TRUE = 0, 2, 4
_STEP = 8_000_000  # so many bytes of 255 still fit a signed 32-bit sum


def pack(weights: np.ndarray) -> np.ndarray | None:
    """W (N, B) as bytes, (chunks, N, width), a chunk's columns side by side and the last one filled up with 0.

    None where a weight is not a whole number of a byte.
    """
    documents, resamples = weights.shape
    small = weights.astype(np.uint8)
    if not np.array_equal(small, weights):
        return None
    chunks = -(-resamples // CHUNK)
    width = -(-resamples // (64 * chunks)) * 64
    packed = np.zeros((chunks, documents, width), dtype=np.uint8)
    for chunk in range(chunks):
        part = small[:, chunk * width : (chunk + 1) * width]
        packed[chunk, :, : part.shape[1]] = part
    return packed


@njit()
def _guide(levels):  # type: ignore[no-untyped-def]
    """guide[h]: the number of levels (descending) whose upper 16 bits are h or more; a search begins beside them."""
    guide = np.zeros((1 << 16) + 1, dtype=np.int64)
    for level in levels:
        guide[level >> 16] += 1
    for h in range((1 << 16) - 1, -1, -1):
        guide[h] += guide[h + 1]
    return guide


@njit()
def place(  # type: ignore[no-untyped-def]
    starts, documents, codes, truth, signs, levels, level_starts, order, cuts
):
    """Put the documents of each label into the buckets of its levels: bucket k is order[cuts[k]:cuts[k + 1]].

    Reads the fields of `curves.Entries` (the order of a label's entries does not matter, and is kept in a bucket) and
    the levels, those of label i from the highest down at level_starts[i]:level_starts[i + 1]. `cuts` holds BUCKETS
    numbers a level and one more.
    """
    position, cuts[0] = 0, 0
    for label in range(starts.size - 1):
        begin, end, base = starts[label], starts[label + 1], level_starts[label]
        number = level_starts[label + 1] - base
        guide = _guide(levels[base : base + number]) if number > GUIDED else np.zeros(1, dtype=np.int64)
        bucket = np.empty(end - begin, dtype=np.int32)
        counts = np.zeros(BUCKETS * number, dtype=np.int64)
        for entry in range(begin, end):
            code = codes[entry]
            if number == 0 or code < levels[base + number - 1]:
                bucket[entry - begin] = -1
                continue
            low, left = base, number
            if number > GUIDED:
                low += guide[(code >> 16) + 1]
                left = min(guide[code >> 16] - guide[(code >> 16) + 1] + 1, base + number - low)
            while left > 1:  # without branches: the first level that is not above the code
                half = left >> 1
                low += half * (levels[low + half - 1] > code)
                left -= half
            negative = (_TIE if levels[low] == code else _RUN) + (signs[entry] < 0)
            k = BUCKETS * (low - base) + (_TRUE if truth[entry] else negative)
            bucket[entry - begin] = k
            counts[k] += 1
        for k in range(counts.size):
            start, position = position, position + counts[k]
            counts[k] = start
            cuts[BUCKETS * base + k + 1] = position
        for entry in range(begin, end):
            k = bucket[entry - begin]
            if k >= 0:
                order[counts[k]] = documents[entry]
                counts[k] += 1


@njit()
def areas(  # type: ignore[no-untyped-def]
    order, cuts, level_starts, retrieved, packed, limit, above_rows, above, total, auc, precision
):
    """Fill `auc` and `precision` (labels, B).

    Args:
        order, cuts, level_starts: of `place`.
        retrieved: of each level; False for -inf, where positives add nothing to AP.
        packed: of `pack`.
        limit: weights that can be added up in a byte.
        above_rows, above: a level's row in `above` (rows, B), the weight of the bounds at or above it.
        total: (B,), weight of all documents of a label.
        auc, precision: NaN without a positive (or, AUC, a negative).
    """
    width = packed.shape[2]
    narrow, wide = np.empty(width, dtype=np.uint8), np.empty(width, dtype=np.int32)
    sums = np.empty((3, width))
    seen, tie, hit = sums[0], sums[1], sums[2]  # negatives above, at, and positives at the level
    found, pairs, precise, bound = np.empty(width), np.empty(width), np.empty(width), np.zeros(width)
    for chunk in range(packed.shape[0]):
        rows, first = packed[chunk], chunk * width
        columns = min(width, total.size - first)
        for label in range(level_starts.size - 1):
            found[:], seen[:], pairs[:], precise[:] = 0, 0, 0, 0
            for level in range(level_starts[label], level_starts[label + 1]):
                hit[:], tie[:] = 0, 0
                for k in range(BUCKETS):
                    first_document, last = cuts[BUCKETS * level + k], cuts[BUCKETS * level + k + 1]
                    sign = 1.0 if k % 2 == 0 else -1.0
                    _add(sums[k // 2], sign, rows, order[first_document:last], limit, narrow, wide)
                for b in range(width):
                    found[b] += hit[b]
                    seen[b] += tie[b]
                    pairs[b] += hit[b] * (0.5 * tie[b] - seen[b])
                if retrieved[level]:
                    bound[:columns] = above[above_rows[level], first : first + columns]
                    for b in range(width):  # whole numbers: where anything is found, the sum is at least 1
                        precise[b] += hit[b] * (found[b] / max(found[b] + seen[b] + bound[b], 1.0))
            for b in range(columns):
                negatives = total[first + b] - found[b]
                defined = found[b] > 0 and negatives > 0
                every = found[b] * negatives
                auc[label, first + b] = (every + pairs[b]) / every if defined else np.nan
                precision[label, first + b] = precise[b] / found[b] if found[b] > 0 else np.nan


@njit()
def totals(order, cuts, packed, limit, sums):  # type: ignore[no-untyped-def]
    """Add to `sums` (lists, B) the weights of the documents order[cuts[i]:cuts[i + 1]] of each list."""
    width = packed.shape[2]
    narrow, wide, one = np.empty(width, dtype=np.uint8), np.empty(width, dtype=np.int32), np.empty(width)
    for chunk in range(packed.shape[0]):
        first = chunk * width
        columns = min(width, sums.shape[1] - first)
        for i in range(cuts.size - 1):
            if cuts[i] == cuts[i + 1]:
                continue
            one[:] = 0
            _add(one, 1.0, packed[chunk], order[cuts[i] : cuts[i + 1]], limit, narrow, wide)
            for b in range(columns):
                sums[i, first + b] += one[b]


@njit()
def _add(sums, sign, rows, documents, limit, narrow, wide):  # type: ignore[no-untyped-def]
    """sums += sign * the rows of the documents; `narrow` and `wide` are scratch."""
    width = sums.size
    if documents.size <= limit:
        if documents.size:
            _add_bytes(narrow, rows, documents)
            for b in range(width):
                sums[b] += sign * narrow[b]
        return
    for begin in range(0, documents.size, _STEP):
        wide[:] = 0
        for first in range(begin, min(begin + _STEP, documents.size), limit):
            _add_bytes(narrow, rows, documents[first : min(first + limit, begin + _STEP, documents.size)])
            for b in range(width):
                wide[b] += narrow[b]
        for b in range(width):
            sums[b] += sign * wide[b]


@njit()
def _add_bytes(narrow, rows, documents):  # type: ignore[no-untyped-def]
    """narrow = sum of the rows of the documents, eight at a time: fewer stores."""
    narrow[:] = 0
    whole = documents.size - documents.size % 8
    for i in range(0, whole, 8):
        r0, r1, r2, r3 = rows[documents[i]], rows[documents[i + 1]], rows[documents[i + 2]], rows[documents[i + 3]]
        r4, r5, r6, r7 = rows[documents[i + 4]], rows[documents[i + 5]], rows[documents[i + 6]], rows[documents[i + 7]]
        for b in range(narrow.size):
            narrow[b] += uint8(r0[b] + r1[b] + r2[b] + r3[b] + r4[b] + r5[b] + r6[b] + r7[b])
    for i in range(whole, documents.size):
        r0 = rows[documents[i]]
        for b in range(narrow.size):
            narrow[b] += r0[b]
