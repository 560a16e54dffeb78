"""Shortlists against a naive loop; ties, blocks, and files."""

import numpy as np
import pytest

from plant.corpus.reader import Tokens
from plant.ground.errors import InputError
from plant.ground.files import read_arrays, write_arrays
from plant.relevance import shortlist
from plant.relevance.shortlist import best_labels, write_shortlist


def problem(seed=0, documents=25, labels=40, vocabulary=30, levels=4):
    """Documents with repeats and relevances of few distinct values, so that sums tie; one label has no row."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 12, size=documents)
    lengths[3] = 0
    input_ids = random.integers(0, vocabulary, size=lengths.sum()).astype(np.int32)
    sizes = random.integers(1, 9, size=labels)
    sizes[7] = 0
    token_id = np.concatenate([random.choice(vocabulary, size=size, replace=False) for size in sizes]).astype(np.int32)
    relevance = (random.integers(0, levels, size=sizes.sum()) / levels).astype(np.float32)  # exact sums
    return input_ids, ends(lengths), ends(sizes), token_id, relevance


def ends(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def best(input_ids, offsets, *relevance, size):
    return best_labels(Tokens(input_ids, offsets, None, None, None), *relevance, size=size)


def naive(input_ids, offsets, indptr, token_id, relevance, size):
    rows = []
    for document in range(len(offsets) - 1):
        present = set(input_ids[offsets[document] : offsets[document + 1]].tolist())
        scores = {}
        for label in range(len(indptr) - 1):
            entries = range(indptr[label], indptr[label + 1])
            scores[label] = sum(float(relevance[e]) for e in entries if int(token_id[e]) in present)
        best = sorted((label for label in scores if scores[label] > 0), key=lambda label: (-scores[label], label))
        rows.append((best + [-1] * size)[:size])
    return np.array(rows)


@pytest.mark.parametrize("size", [1, 5, 60])
@pytest.mark.parametrize("block", [1, 90, 10_000])  # one document at a time, two, all
def test_shortlist_equals_the_naive_loop_ties_by_label_id(monkeypatch, size, block):
    monkeypatch.setattr(shortlist, "BLOCK", block)
    data = problem()
    found = best(*data, size=size)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, naive(*data, size))
    assert (found[3] == -1).all()


def test_a_repeated_token_counts_once():
    relevance = np.array([0, 1, 3]), np.array([4, 4, 2]), np.array([0.6, 0.5, 0.4], np.float32)
    once, twice = (best(np.array(ids), np.array([0, len(ids)]), *relevance, size=2) for ids in ([4, 2], [4, 4, 4, 2]))
    assert once.tolist() == twice.tolist() == [[1, 0]]


def write(folder, data, true, labels=40):
    """Relevance, tokens, and a corpus of some labels in which each document has the `true` ones."""
    input_ids, offsets, indptr, token_id, relevance = data
    write_arrays(folder / "mig.safetensors", {"indptr": indptr, "token_id": token_id, "relevance": relevance})
    spans = {"starts": np.zeros_like(input_ids), "ends": np.ones_like(input_ids)}
    write_arrays(folder / "tokens.safetensors", {"input_ids": input_ids, "offsets": offsets, **spans})
    write_arrays(folder / "labels.safetensors", {
        "indptr": ends([len(row) for row in true]), "indices": np.concatenate(true).astype(np.int32),
        "split_sizes": np.array([15, 4, 6]), "counts": np.zeros((3, labels), dtype=np.int64)})  # fmt: skip
    return write_shortlist(folder, folder, folder / "mig.safetensors", size=6, out=folder / "out")


def test_the_file_holds_all_splits_and_does_not_depend_on_the_labels_of_a_document(tmp_path):
    data, random = problem(), np.random.default_rng(5)
    expected = naive(*data, 6)
    for _ in range(2):
        true = [np.sort(random.choice(40, size=3, replace=False)) for _ in range(25)]
        facts = write(tmp_path, data, true)
        np.testing.assert_array_equal(read_arrays(tmp_path / "out")["labels"], expected)
        hits = [len(set(row.tolist()) & set(best.tolist())) for row, best in zip(true, expected, strict=True)]
        assert facts == pytest.approx({"recall_train": sum(hits[:15]) / 45, "recall_val": sum(hits[15:19]) / 12,
                                       "recall_test": sum(hits[19:]) / 18})  # fmt: skip


def test_relevance_of_other_labels_is_one_clear_error(tmp_path):
    with pytest.raises(InputError, match=r"relevance of 39 labels .* got 40 labels"):
        write(tmp_path, problem(), [[]] * 25, labels=39)
