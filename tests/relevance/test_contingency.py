"""Counts against naive loops, for any size of the blocks."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.relevance import contingency
from plant.relevance.contingency import (
    document_frequency,
    joint_counts,
    label_documents,
    label_spans,
    spans,
    token_lists,
)

V, L = 7, 4
corpora = st.lists(
    st.tuples(st.lists(st.integers(0, V - 1), max_size=9), st.sets(st.integers(0, L - 1))), min_size=1, max_size=12
)
EVERY = np.ones(V, bool)


def arrays(documents):
    offsets = np.cumsum([0, *(len(words) for words, _ in documents)])
    return np.array([word for words, _ in documents for word in words], np.int32), offsets


def by_label(documents):
    indptr = np.cumsum([0, *(len(labels) for _, labels in documents)])
    return label_documents(indptr, np.array([label for _, row in documents for label in sorted(row)], np.int32), L)


def counted(documents, *, distinct, block):
    lists = token_lists(*arrays(documents), counted=EVERY, distinct=distinct, block=block)
    indptr, holders = by_label(documents)
    rows = {}
    for first, last in label_spans(lists, indptr, holders, block):
        joint = joint_counts(lists, indptr, holders, first=first, last=last, block=block)
        for label in range(first, last):
            token, count = joint.row(label)
            assert (np.diff(token) > 0).all()
            rows[label] = dict(zip(token.tolist(), count.tolist(), strict=True))
    return rows


@given(corpora, st.integers(1, 200))
def test_joint_document_counts_equal_a_naive_loop_for_any_block_size(documents, block):
    expected = {label: Counter(w for words, row in documents if label in row for w in set(words)) for label in range(L)}
    assert counted(documents, distinct=True, block=block) == expected


@given(corpora, st.integers(1, 200))
def test_occurrences_equal_a_naive_loop_for_any_block_size(documents, block):
    expected = {label: Counter(w for words, row in documents if label in row for w in words) for label in range(L)}
    assert counted(documents, distinct=False, block=block) == expected


@given(corpora, st.integers(1, 50))
def test_distinct_lists_are_the_sorted_sets_of_the_tokens_that_count(documents, block):
    counting = EVERY.copy()
    counting[3] = False
    lists = token_lists(*arrays(documents), counted=counting, distinct=True, block=block)
    assert lists.lists.to_list() == [sorted(set(words) - {3}) for words, _ in documents]
    assert lists.sizes.tolist() == [len(set(words) - {3}) for words, _ in documents]


@given(corpora)
def test_lists_with_repeats_keep_the_order_and_leave_out_what_does_not_count(documents):
    counting = EVERY.copy()
    counting[3] = False
    lists = token_lists(*arrays(documents), counted=counting, distinct=False)
    assert lists.lists.to_list() == [[word for word in words if word != 3] for words, _ in documents]


@given(corpora)
def test_document_frequency_counts_each_document_once(documents):
    lists = token_lists(*arrays(documents), counted=EVERY, distinct=True)
    assert document_frequency(lists).tolist() == [sum(w in words for words, _ in documents) for w in range(V)]


@given(corpora)
def test_label_documents_is_the_transpose(documents):
    indptr, holders = by_label(documents)
    rows = [holders[indptr[label] : indptr[label + 1]].tolist() for label in range(L)]
    assert rows == [[d for d, (_, row) in enumerate(documents) if label in row] for label in range(L)]


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 25), st.integers(1, 5))
def test_spans_cover_everything_once_within_the_block(sizes, block, most):
    cut = list(spans(np.array(sizes, np.int64), block, most=most))
    assert [i for first, last in cut for i in range(first, last)] == list(range(len(sizes)))
    for first, last in cut:
        assert last - first <= most
        assert sum(sizes[first:last]) <= block or last - first == 1


def test_keys_in_memory_stay_within_the_block_even_for_one_large_label(monkeypatch):
    documents = [([0, 1, 2], {0, 1})] * 50
    seen = []
    count = contingency._count
    monkeypatch.setattr(contingency, "_count", lambda *args: seen.append(3 * len(args[1])) or count(*args))
    assert counted(documents, distinct=True, block=30) == {
        0: {0: 50, 1: 50, 2: 50},
        1: {0: 50, 1: 50, 2: 50},
        2: {},
        3: {},
    }
    assert max(seen) <= 30 and sum(seen) == 300


def test_blocks_of_labels_never_overflow_a_32_bit_key():
    lists = contingency.TokenLists(None, np.array([1]), 2**20)
    cut = label_spans(lists, np.arange(10_001), np.zeros(10_000, np.int64), block=10**9)
    assert max(last - first for first, last in cut) * 2**20 <= 2**32
    assert cut[-1][1] == 10_000


@pytest.mark.parametrize("distinct", [True, False])
def test_no_documents_give_no_lists(distinct):
    lists = token_lists(np.zeros(0, np.int32), np.zeros(1, np.int64), counted=EVERY, distinct=distinct)
    assert (len(lists.lists), lists.n_documents) == (0, 0)
