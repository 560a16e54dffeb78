"""Counts, measure and top k of one label after the other in one pass, compiled.

The fast twin of `contingency.joint_counts` (polars) followed by `selection.top_tokens` (NumPy), which say the same at
more length and are its oracle: the rows are the same, bit for bit. (The one exception is pmi, whose logarithm NumPy
may round another way in the last of 53 bits; relevance has steps of 2^-24.)

Memory: a few arrays as long as the vocabulary, and the rows of one call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plant.kernels.compiled import njit
from plant.relevance.measures import half_n_log_n, n_log_n, rounding

MIG, CHI2, PMI, TERM_FREQUENCY, SMOOTHED_MIG = 0, 1, 2, 3, 4
CODES = {
    "mig": MIG, "shuffled": MIG, "smoothed_mig": SMOOTHED_MIG, "chi2": CHI2, "pmi": PMI,
    "term_frequency": TERM_FREQUENCY,
}  # fmt: skip
"""The formula of each measure, by the names of `measures.FORMULAS`."""

STEPS = 2**24  # relevance is a whole number of 2^-24, as in `selection.normalised`
_STEP_BITS = 25
_BUCKETS = 4096
_BUCKET_BITS = np.uint32(19)  # float32 bits of a step (at most 2^24), shifted by these, are below _BUCKETS
_DIGIT_BITS = 11
_DIGITS = 2**_DIGIT_BITS


class Lists(NamedTuple):
    """Token ids of each document: uint32[begins[-1]] one after another, and int64[N + 1]."""

    tokens: np.ndarray
    begins: np.ndarray


class Marginals(NamedTuple):
    """What the corpus says of the tokens; of `marginals`."""

    n_documents: int
    n_token: np.ndarray  # uint32[V], documents with each token
    order: np.ndarray  # uint32, tokens that may be chosen, by n_token descending
    table: np.ndarray  # float64[N + 3], n log n
    half: np.ndarray  # float64[N + 1], the same of n + 1/2
    margin: np.ndarray  # float64[V], n log n of n_token and of N - n_token: a token's part of `measures.mig`


class Rule(NamedTuple):
    """How tokens are scored and chosen; of `rule`."""

    measure: int  # of `CODES`
    k: int  # tokens kept a label
    positive: bool  # only tokens that are more frequent with the label
    least: int  # tokens in fewer documents never count
    noise: float  # mutual information up to this is 0
    bits: np.uint64  # of a key that hold the token


class _Scratch(NamedTuple):
    """Work space of one label, as long as the vocabulary; some are one or k longer."""

    joint: np.ndarray  # uint32, documents of the label with the token; 0 between labels
    occurrences: np.ndarray  # uint32, of the token in them; 0 between labels
    touched: np.ndarray  # uint32, the tokens that do, in no order
    value: np.ndarray  # float64, their measures, -1 where they may not be chosen
    token: np.ndarray  # uint32, those that may be chosen
    step: np.ndarray  # float32, their relevances times 2^24
    keys: np.ndarray  # uint64, step and token of those that are among the best: ascending keys are ranks
    spare: np.ndarray  # uint64[k]


def marginals(n_token: np.ndarray, order: np.ndarray, n_documents: int) -> Marginals:
    """Of `contingency.document_frequency` and `selection.candidates`."""
    table, half = n_log_n(n_documents + 2), half_n_log_n(n_documents)
    margin = table[n_token] + table[n_documents - n_token]
    return Marginals(n_documents, n_token.astype(np.uint32), order.astype(np.uint32), table, half, margin)


def rule(measure: str, *, k: int, sign: str, min_documents: int, n_documents: int, n_tokens: int) -> Rule:
    """The rule of a measure that has a formula; k, sign and min_documents as in `settings.Relevance`."""
    bits = np.uint64(max(1, (n_tokens - 1).bit_length()))
    noise = rounding(n_documents + 2 * (measure == "smoothed_mig"))
    return Rule(CODES[measure], k, sign == "positive", min_documents, noise, bits)


@njit()
def distinct(tokens: np.ndarray, begins: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each document's distinct tokens, in the order of their first occurrence.

    Args:
        tokens: int32[begins[-1]], tokens of all documents one after another.
        begins: int64[N + 1].
        counted: bool[V], False for tokens that never count (special tokens).

    Returns:
        The two arrays of `Lists`, and n_token int64[V], documents with each token.
    """
    seen, n_token = ~counted, np.zeros(len(counted), np.int64)
    values, ends = np.empty(len(tokens) + 1, np.uint32), np.zeros(len(begins), np.int64)
    n = 0
    for document in range(len(begins) - 1):
        for position in range(begins[document], begins[document + 1]):
            token = np.uint32(tokens[position])
            values[n] = token  # stays only if n moves on; no branch, which nobody could predict
            n += not seen[token]
            seen[token] = True
        for place in range(ends[document], n):
            seen[values[place]] = False
            n_token[values[place]] += 1
        ends[document + 1] = n
    return values[:n], ends, n_token


@njit()
def best_tokens(
    lists: Lists, repeats: Lists, indptr: np.ndarray, documents: np.ndarray, among: Marginals, rule: Rule,
    first: int, rows: int,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The k best tokens of the labels from `first` on, until there are `rows` rows or no label is left.

    Args:
        lists: distinct tokens of each document.
        repeats: all tokens of each document (read for term frequency only).
        indptr, documents: the documents of each label, as of `contingency.label_documents`.
        among: the tokens.
        rule: measure, k, sign.
        first: label id.
        rows: after which no further label is begun.

    Returns:
        The label after the last; then of each label with documents its id and its number of rows (int64), and of
        each row token (uint32), n_joint (uint32) and relevance (float32), as of `selection.top_tokens`.
    """
    words, n_labels = len(among.n_token), len(indptr) - 1
    scratch = _Scratch(
        np.zeros(words, np.uint32), np.zeros(words, np.uint32), np.empty(words + 1, np.uint32), np.empty(words),
        np.empty(words + 1, np.uint32), np.empty(words + 1, np.float32), np.empty(words + rule.k + 1, np.uint64),
        np.empty(rule.k, np.uint64),
    )  # fmt: skip
    labels, lengths = np.empty(n_labels - first, np.int64), np.empty(n_labels - first, np.int64)
    token, n_joint = np.empty(rows + rule.k, np.uint32), np.empty(rows + rule.k, np.uint32)
    relevance = np.empty(rows + rule.k, np.float32)
    label, listed, written = first, 0, 0
    while label < n_labels and written < rows:
        holders = documents[indptr[label] : indptr[label + 1]]
        if len(holders):
            met, said = _count(lists, repeats, holders, rule, scratch)
            _score(met, said, len(holders), among, rule, scratch)
            kept = _choose(met, len(holders), among, rule, scratch)
            keys = _sorted(scratch.keys, scratch.spare, kept, int(rule.bits) + _STEP_BITS)
            for i in range(kept):
                chosen = keys[i] & ((np.uint64(1) << rule.bits) - np.uint64(1))
                token[written + i] = chosen
                n_joint[written + i] = scratch.joint[chosen]
                relevance[written + i] = np.float32(STEPS - np.int64(keys[i] >> rule.bits)) / np.float32(STEPS)
            labels[listed], lengths[listed] = label, kept
            listed += 1
            written += kept
            _clear(met, rule, scratch)
        label += 1
    return label, labels[:listed], lengths[:listed], token[:written], n_joint[:written], relevance[:written]


@njit()
def _count(lists: Lists, repeats: Lists, holders: np.ndarray, rule: Rule, scratch: _Scratch) -> tuple[int, int]:
    """Count the tokens of a label's documents: how many there are, and how often they occur in all."""
    joint, touched = scratch.joint, scratch.touched
    met, said, size = 0, 0, 0
    for document in holders:
        size += lists.begins[document + 1] - lists.begins[document]
    if size < len(joint):
        for document in holders:
            for token in lists.tokens[lists.begins[document] : lists.begins[document + 1]]:
                touched[met] = token  # stays only if met moves on
                met += joint[token] == 0
                joint[token] += np.uint32(1)
    else:  # to look through the vocabulary afterwards is less work than to take note of every token
        for document in holders:
            for token in lists.tokens[lists.begins[document] : lists.begins[document + 1]]:
                joint[token] += np.uint32(1)
        for token in range(len(joint)):
            touched[met] = token
            met += joint[token] > 0
    if rule.measure == TERM_FREQUENCY:
        for document in holders:
            said += repeats.begins[document + 1] - repeats.begins[document]
            for token in repeats.tokens[repeats.begins[document] : repeats.begins[document + 1]]:
                scratch.occurrences[token] += np.uint32(1)
    return met, said


@njit()
def _score(met: int, said: int, n_label: int, among: Marginals, rule: Rule, scratch: _Scratch) -> None:
    """Measure the tokens that were met. One plain loop a measure: such loops work on several tokens at once."""
    joint, touched, value = scratch.joint, scratch.touched, scratch.value
    if rule.measure == MIG:
        for i in range(met):
            value[i] = _mig(np.int64(joint[touched[i]]), touched[i], n_label, among, rule)
    elif rule.measure == SMOOTHED_MIG:
        for i in range(met):
            value[i] = _smoothed_mig(np.int64(joint[touched[i]]), touched[i], n_label, among, rule)
    elif rule.measure == CHI2:
        for i in range(met):
            value[i] = _chi2(np.int64(joint[touched[i]]), touched[i], n_label, among)
    elif rule.measure == PMI:
        for i in range(met):
            value[i] = _pmi(np.int64(joint[touched[i]]), touched[i], n_label, among)
    else:
        for i in range(met):
            value[i] = scratch.occurrences[touched[i]] / max(said, 1)
    if rule.positive or rule.least > 1:
        for i in range(met):
            in_all = np.int64(among.n_token[touched[i]])
            more = among.n_documents * np.int64(joint[touched[i]]) > n_label * in_all
            if in_all < rule.least or (rule.positive and not more):
                value[i] = -1.0


@njit()
def _clear(met: int, rule: Rule, scratch: _Scratch) -> None:
    for i in range(met):
        scratch.joint[scratch.touched[i]] = 0
    if rule.measure == TERM_FREQUENCY:
        for i in range(met):
            scratch.occurrences[scratch.touched[i]] = 0


@njit()
def _mig(joint: int, token: int, label: int, among: Marginals, rule: Rule) -> float:
    """`measures.mig`, its sums in the same order."""
    table, total, in_all = among.table, among.n_documents, np.int64(among.n_token[token])
    cells = table[joint] + table[label - joint] + table[in_all - joint] + table[total - label - in_all + joint]
    margins = among.margin[token] + (table[label] + table[total - label])
    value = (cells - margins + table[total]) / total
    return value if value > rule.noise else 0.0


@njit()
def _smoothed_mig(joint: int, token: int, label: int, among: Marginals, rule: Rule) -> float:
    """`measures.smoothed_mig`, its sums in the same order."""
    table, half, total, in_all = among.table, among.half, among.n_documents, np.int64(among.n_token[token])
    cells = half[joint] + half[label - joint] + half[in_all - joint] + half[total - label - in_all + joint]
    margins = (table[in_all + 1] + table[total - in_all + 1]) + (table[label + 1] + table[total - label + 1])
    value = (cells - margins + table[total + 2]) / (total + 2)
    association = total * joint - label * in_all
    kept = (total + 2) * (2 * joint + 1) - 2 * (label + 1) * (in_all + 1)
    same = np.sign(association) * np.sign(kept) > 0
    return value if same and value > rule.noise else 0.0


@njit()
def _chi2(joint: int, token: int, label: int, among: Marginals) -> float:
    """`measures.chi2`, its products in the same order."""
    total, in_all = float(among.n_documents), float(among.n_token[token])
    difference = total * joint - label * in_all
    margins = label * in_all * (total - label) * (total - in_all)
    return total * difference**2 / margins if margins > 0 else 0.0


@njit()
def _pmi(joint: int, token: int, label: int, among: Marginals) -> float:
    """`measures.pmi`; the token is in at least one document."""
    return np.log(max(joint * float(among.n_documents) / (label * float(among.n_token[token])), 1.0))


@njit()
def _absent(token: int, label: int, among: Marginals, rule: Rule) -> float:
    """The measure of a token that never occurs with the label."""
    if rule.measure == MIG:
        return _mig(0, token, label, among, rule)
    if rule.measure == SMOOTHED_MIG:
        return _smoothed_mig(0, token, label, among, rule)
    return _chi2(0, token, label, among) if rule.measure == CHI2 else 0.0


@njit()
def _choose(met: int, n_label: int, among: Marginals, rule: Rule, scratch: _Scratch) -> int:
    """Put the keys of the k best tokens into `scratch.keys`, in no order: how many they are."""
    largest = 0.0
    for i in range(met):
        largest = max(largest, scratch.value[i])
    if rule.positive:
        return _keep_met(met, largest, rule, scratch)
    for token in among.order:  # of the tokens that were not met the most frequent has the largest value
        if scratch.joint[token] == 0:
            largest = max(largest, _absent(token, n_label, among, rule))
            break
    return _add_absent(_keep_met(met, largest, rule, scratch), largest, n_label, among, rule, scratch)


@njit()
def _keep_met(met: int, largest: float, rule: Rule, scratch: _Scratch) -> int:
    """Keys of the k best of the tokens that were met.

    The k-th largest relevance lies in one of some thousand buckets, equal parts of each power of two; what lies below
    that bucket is left out, and a partition of the few that remain is exact.
    """
    step, token, keys = scratch.step, scratch.token, scratch.keys
    height = step.view(np.uint32)  # floats that are not negative order like their bits
    n, scale = 0, largest if largest > 0 else 1.0
    for i in range(met):
        step[n], token[n] = np.rint(scratch.value[i] / scale * STEPS), scratch.touched[i]
        n += scratch.value[i] >= 0  # no branch, which nobody could predict
    edge = np.uint32(0)
    if n > rule.k:
        sizes = np.zeros(_BUCKETS, np.int64)
        for i in range(n):
            sizes[height[i] >> _BUCKET_BITS] += 1
        bucket, above = _BUCKETS - 1, 0
        while above + sizes[bucket] < rule.k:
            above += sizes[bucket]
            bucket -= 1
        edge = np.uint32(bucket) << _BUCKET_BITS
    kept = 0
    for i in range(n):
        keys[kept] = _key(step[i], token[i], rule)
        kept += height[i] >= edge
    return _partition(keys, kept, rule.k)


@njit()
def _add_absent(kept: int, largest: float, n_label: int, among: Marginals, rule: Rule, scratch: _Scratch) -> int:
    """Keys of the tokens that were not met and are among the k best, beside those that are kept already.

    They come by falling value, so the first that is below k others ends the search; equal ones go by token id.
    """
    keys = scratch.keys
    least, last = -1.0, -1.0  # step of the k-th of those that were met, and of those that were not
    if kept == rule.k:
        least = STEPS - np.float64(keys[:kept].max() >> rule.bits)
    n = kept
    for token in among.order:
        if scratch.joint[token] > 0:
            continue
        step = np.rint(_absent(token, n_label, among, rule) / largest * STEPS) if largest > 0 else 0.0
        if step < max(least, last):
            break
        keys[n] = _key(step, token, rule)
        n += 1
        if n - kept == rule.k:
            last = step
    return _partition(keys, n, rule.k)


@njit()
def _key(step: float, token: int, rule: Rule) -> np.uint64:
    """Ascending keys are falling relevances, and ascending token ids where those are equal."""
    return (np.uint64(STEPS - np.int64(step)) << rule.bits) | np.uint64(token)


@njit()
def _partition(keys: np.ndarray, n: int, k: int) -> int:
    """Move the k smallest of keys[:n] to the front (quickselect); how many are there, at most k."""
    low, high = 0, n - 1
    while k < n and low < high:
        a, b, c = keys[low], keys[(low + high) // 2], keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return min(n, k)


@njit()
def _sorted(keys: np.ndarray, spare: np.ndarray, n: int, bits: int) -> np.ndarray:
    """keys[:n] in ascending order, in one of the two arrays (radix sort: some passes of 11 bits)."""
    ends = np.empty(_DIGITS, np.int64)
    for shift in range(0, bits, _DIGIT_BITS):
        ends[:] = 0
        for i in range(n):
            ends[(keys[i] >> np.uint64(shift)) & np.uint64(_DIGITS - 1)] += 1
        end = 0
        for digit in range(_DIGITS):
            ends[digit], end = end, end + ends[digit]
        for i in range(n):
            digit = (keys[i] >> np.uint64(shift)) & np.uint64(_DIGITS - 1)
            spare[ends[digit]] = keys[i]
            ends[digit] += 1
        keys, spare = spare, keys
    return keys
