"""Relevance measures: pure functions of counts, over (label l, token t) pairs.

Symbols: N training documents; n_label of them carry l; n_token contain t; n_joint do both. The 2x2 table is

                 t present                t absent
    l present    n_joint                  n_label - n_joint
    l absent     n_token - n_joint        N - n_label - n_token + n_joint

A new measure is a function and an entry of `MEASURES` here; nothing else changes. Every measure is at least 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from plant.ground.errors import InputError, nearest
from plant.ground.settings import Settings


@dataclass(frozen=True)
class PairCounts:
    """Counts of pairs; arrays or single numbers that broadcast. `n_documents` is N >= 1.

    Only for term frequency: `occurrences` of the token, and of all tokens, in the label's documents.
    """

    n_joint: np.ndarray | int
    n_token: np.ndarray | int
    n_label: np.ndarray | int
    n_documents: int
    occurrences: np.ndarray | int | None = None
    label_occurrences: np.ndarray | int = 0

    def of(self, token: np.ndarray) -> PairCounts:
        """Of some tokens, where the arrays hold all tokens by id."""
        occurrences = None if self.occurrences is None else np.asarray(self.occurrences)[token]
        n_joint, n_token = np.asarray(self.n_joint)[token], np.asarray(self.n_token)[token]
        return replace(self, n_joint=n_joint, n_token=n_token, occurrences=occurrences)


def mig(counts: PairCounts) -> np.ndarray:
    """Mutual information of the two presences, in nats, over all four cells (appendix B.1).

    r_lt = sum over (x, y) in {0, 1}^2 of P(x, y) log(P(x, y) / (P(x) P(y))), 0 log 0 = 0
         = [sum of n log n over the four cells - over the four margins + N log N] / N

    so one table of n log n serves every pair. The formula is blind to the sign: a token that avoids the
    label scores too.

    Returns:
        float64 in [0, log 2], higher is more informative. 0 where the presences are independent, and
        where the label or the token is in every document or in none. Values within the rounding error
        of the sum (2e-15 log N) are set to 0, so that noise never becomes a label's maximum.
    """
    total = counts.n_documents
    table = n_log_n(total)
    joint, token, label = (np.asarray(n) for n in (counts.n_joint, counts.n_token, counts.n_label))
    cells = table[joint] + table[label - joint] + table[token - joint] + table[total - label - token + joint]
    margins = (table[token] + table[total - token]) + (table[label] + table[total - label])
    value = (cells - margins + table[total]) / total
    return np.where(value > rounding(total), value, 0.0)


def smoothed_mig(counts: PairCounts) -> np.ndarray:
    """Mutual information of the two presences where every cell holds half a document more (Jeffreys' prior), in nats.

    With one or two positive documents MIG is high by chance, and all tokens that only they hold have one value. Half a
    document per cell lowers the value of rare tokens and hardly changes that of frequent ones. If the half documents
    reverse an association, its value is 0.

    Returns:
        float64 in [0, log 2).
    """
    total = counts.n_documents
    half, table = n_log_n(total, 0.5), n_log_n(total + 2)
    joint, token, label = (np.asarray(n, np.int64) for n in (counts.n_joint, counts.n_token, counts.n_label))
    cells = half[joint] + half[label - joint] + half[token - joint] + half[total - label - token + joint]
    margins = (table[token + 1] + table[total - token + 1]) + (table[label + 1] + table[total - label + 1])
    value = (cells - margins + table[total + 2]) / (total + 2)
    association = total * joint - label * token
    kept = (total + 2) * (2 * joint + 1) - 2 * (label + 1) * (token + 1)  # twice the smoothed association
    same = ((association > 0) & (kept > 0)) | ((association < 0) & (kept < 0))
    return np.where(same & (value > rounding(total + 2)), value, 0.0)


def rounding(total: int) -> float:
    """Largest error of `mig` in nats: of a sum of nine terms of at most N log N, divided by N."""
    return 2e-15 * float(np.log(max(total, 2)))


@lru_cache(maxsize=4)
def n_log_n(largest: int, more: float = 0.0) -> np.ndarray:
    """Table of (n + more) log(n + more) for n = 0..largest, with 0 log 0 = 0."""
    n = np.arange(largest + 1, dtype=np.float64) + more
    table = n * np.log(np.where(n > 0, n, 1.0))
    table.flags.writeable = False
    return table


def term_frequency(counts: PairCounts) -> np.ndarray:
    """Normalised token occurrences in the label's documents (section 4, ablation 6, footnote 4).

    r_lt = occurrences of t in the documents of l / occurrences of all tokens in them

    Returns:
        float64 in [0, 1]; 0 where the label's documents have no token.
    """
    return np.asarray(counts.occurrences) / np.maximum(counts.label_occurrences, 1)


def pmi(counts: PairCounts) -> np.ndarray:
    """Positive pointwise mutual information, in nats.

    r_lt = max(0, log(N n_joint / (n_label n_token))), 0 where n_joint = 0

    Returns:
        float64 in [0, log N]. Negative associations are 0, so that all values lie on one side.

    >>> float(pmi(PairCounts(n_joint=2, n_token=2, n_label=4, n_documents=8)).round(6))
    0.693147
    """
    joint = np.asarray(counts.n_joint, dtype=np.float64)
    expected = np.asarray(counts.n_label, dtype=np.float64) * np.asarray(counts.n_token, dtype=np.float64)
    ratio = np.divide(joint * counts.n_documents, expected, out=np.ones_like(joint * expected), where=expected > 0)
    return np.log(np.maximum(ratio, 1.0))


def chi2(counts: PairCounts) -> np.ndarray:
    """Pearson's chi-squared statistic of the 2x2 table, without continuity correction.

    r_lt = N (a d - b c)^2 / (n_label n_token (N - n_label) (N - n_token)),
    with a d - b c = N n_joint - n_label n_token

    Returns:
        float64 in [0, N]; 0 where a margin is 0. Like MIG it is blind to the sign.
    """
    total = float(counts.n_documents)
    joint, token, label = (np.asarray(n, dtype=np.float64) for n in (counts.n_joint, counts.n_token, counts.n_label))
    difference = total * joint - label * token
    margins = label * token * (total - label) * (total - token)
    return np.divide(total * difference**2, margins, out=np.zeros_like(difference * margins), where=margins > 0)


def is_positive(counts: PairCounts) -> np.ndarray:
    """True where the token is more frequent with the label: N n_joint > n_label n_token."""
    joint, token, label = (np.asarray(n, dtype=np.int64) for n in (counts.n_joint, counts.n_token, counts.n_label))
    return counts.n_documents * joint > label * token


def inverse_document_frequency(counts: PairCounts) -> np.ndarray:
    """log(N / n_token), in nats: the label's own documents have no part in it."""
    return np.log(counts.n_documents / np.asarray(counts.n_token))


def constant(counts: PairCounts) -> np.ndarray:
    """1 for every pair: a control. Static attention then adds one and the same sum of states for every label."""
    return np.ones(np.shape(counts.n_token))


Formula = Callable[[PairCounts], np.ndarray]


@dataclass(frozen=True)
class Measure:
    """An entry of the registry.

    Attributes:
        name: in configs and file names.
        formula: of counts. None: tokens and values are drawn at random.
        occurrences: the formula reads the number of occurrences.
        shuffled: the label rows change places over the training documents first.
        described: only the tokens of the label's description score (choice C28).
        signed: `relevance.sign` has a part. A measure that reads no count of the label has none.
        control: it says nothing of the labels, so a system with it is a control and not a planted one.
    """

    name: str
    formula: Formula | None
    occurrences: bool = False
    shuffled: bool = False
    described: bool = False
    signed: bool = True
    control: bool = False


MEASURES = {
    entry.name: entry
    for entry in (
        Measure("mig", mig), Measure("smoothed_mig", smoothed_mig),
        Measure("term_frequency", term_frequency, occurrences=True), Measure("pmi", pmi), Measure("chi2", chi2),
        Measure("random", None, control=True), Measure("shuffled", mig, shuffled=True, control=True),
        Measure("constant", constant, signed=False, control=True),
        Measure("description", inverse_document_frequency, described=True),
    )
}  # fmt: skip


def check_measures(settings: Settings) -> None:
    """Every measure that a recipe names must exist; the config's types do not know them."""
    named = {f"pretrainings.{name}.measure": recipe.measure for name, recipe in settings.pretrainings.items()}
    named |= {f"finetunings.{name}.static_measure": one.static_measure for name, one in settings.finetunings.items()}
    for where, name in named.items():
        if name not in MEASURES:
            raise InputError(
                where, expected=f"one of {', '.join(MEASURES)}", got=repr(name), fix=nearest(name, MEASURES)
            )
