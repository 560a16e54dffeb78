"""Counts against naive loops, for any size of the blocks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.relevance.contingency import TokenLists, distinct_tokens, joint_counts, label_documents, spans

V, L = 7, 4
corpora = st.lists(
    st.tuples(st.lists(st.integers(0, V - 1), max_size=9), st.sets(st.integers(0, L - 1))), min_size=1, max_size=12
)


def by_label(documents):
    indptr = np.cumsum([0, *(len(labels) for _, labels in documents)])
    return label_documents(indptr, np.array([label for _, row in documents for label in sorted(row)], np.int32), L)


@pytest.mark.parametrize("distinct", [True, False])
@given(documents=corpora, block=st.integers(1, 200))
def test_counts_equal_a_naive_loop_for_any_block_size(distinct, documents, block):
    kept = [sorted(set(words)) if distinct else words for words, _ in documents]
    lists = TokenLists(np.array([w for words in kept for w in words], np.uint32), np.cumsum([0, *map(len, kept)]))
    expected = [
        [sum(words.count(w) for words, (_, row) in zip(kept, documents, strict=True) if label in row) for w in range(V)]
        for label in range(L)
    ]
    found = list(joint_counts(lists, *by_label(documents), n_tokens=V, block=block))
    assert [row.tolist() for row in found] == expected


@given(documents=corpora, special=st.sets(st.integers(0, V - 1)), block=st.integers(1, 30))
def test_distinct_tokens_are_the_sets_of_counted_tokens_for_any_block_size(documents, special, block):
    ids = np.array([token for words, _ in documents for token in words], np.int32)
    offsets = np.cumsum([0, *(len(words) for words, _ in documents)])
    counted = np.array([token not in special for token in range(V)])
    tokens, begins = distinct_tokens(ids, offsets, counted, block=block)
    assert [tokens[a:b].tolist() for a, b in itertools.pairwise(begins)] == [
        sorted(set(words) - special) for words, _ in documents
    ]


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 25), st.integers(1, 5))
def test_spans_cover_everything_once_within_the_block(sizes, block, most):
    cut = list(spans(np.array(sizes, np.int64), block, most=most))
    assert [i for first, last in cut for i in range(first, last)] == list(range(len(sizes)))
    for first, last in cut:
        assert last - first <= most
        assert sum(sizes[first:last]) <= block or last - first == 1
