"""MIG and top k compiled against the plain way, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.ground.settings import Relevance
from plant.relevance.choice import Training, compiled_choice, plain_choice
from plant.relevance.contingency import label_documents


def corpus(seed, *, documents, words, labels, length, least=1):
    """Zipf words, some of them special, and labels of every frequency; the last label is on no document."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(random.integers(0, 2 * length, documents))))
    shares = 1 / np.arange(1, words + 1)
    input_ids = random.choice(words, size=offsets[-1], p=shares / shares.sum()).astype(np.int32)
    input_ids = random.permutation(words).astype(np.int32)[input_ids]
    carried = random.random((documents, labels - 1)) < 1 / np.arange(1, labels)
    document, label = np.nonzero(carried)
    indptr, holders = label_documents(np.searchsorted(document, np.arange(documents + 1)), label, labels)
    counted = np.ones(words, bool)
    counted[random.choice(words, size=words // 10, replace=False)] = False
    return Training(
        tuple(f"l{i}" for i in range(labels)), tuple(f"w{i}" for i in range(words)), input_ids, offsets,
        counted, indptr, holders, min_documents=least,
    )  # fmt: skip


def joined(pieces):
    """label -> (tokens, n_joint, relevance) as bytes, so that equal means equal in every bit."""
    found = {}
    for piece in pieces:
        ends = np.cumsum(piece.lengths)
        for label, first, last in zip(piece.labels.tolist(), ends - piece.lengths, ends, strict=True):
            part = slice(first, last)
            found[label] = (
                piece.token[part].astype(np.int64).tobytes(),
                piece.n_joint[part].astype(np.int64).tobytes(),
                piece.relevance[part].tobytes(),
            )
    return found


def both(training, chosen):
    whole = chosen.model_copy(update={"rows_in_memory": 10**6})
    return joined(compiled_choice(training, chosen)), joined(plain_choice(training, "mig", whole))


@pytest.mark.parametrize("sign", ["both", "positive"])
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), documents=st.integers(2, 60), words=st.integers(12, 90), k=st.integers(1, 10),
    least=st.integers(1, 3), rows=st.integers(1, 60),
)  # fmt: skip
def test_compiled_rows_are_those_of_the_plain_way_in_every_bit(sign, seed, documents, words, k, least, rows):
    training = corpus(seed, documents=documents, words=words, labels=7, length=8, least=least)
    k = min(k, len(training.order))
    if not k:
        return
    compiled, expected = both(training, Relevance(k=k, sign=sign, min_documents=least, rows_in_memory=rows))
    assert compiled == expected


@pytest.mark.parametrize("sign", ["both", "positive"])
@pytest.mark.parametrize("k", [5, 400, 1500])
def test_compiled_rows_are_those_of_the_plain_way_where_many_tokens_tie(sign, k):
    training = corpus(1, documents=700, words=3000, labels=60, length=90)
    compiled, expected = both(training, Relevance(k=k, sign=sign))
    assert len(expected) > 50
    assert compiled == expected


def test_a_label_on_every_document_gets_the_smallest_ids_with_relevance_zero():
    training = corpus(2, documents=50, words=60, labels=4, length=9)  # label 0 is on every document
    compiled, expected = both(training, Relevance(k=5))
    tokens, _, relevance = compiled[0]
    assert np.frombuffer(tokens, np.int64).tolist() == sorted(training.order.tolist())[:5]
    assert not any(relevance)
    assert compiled == expected
