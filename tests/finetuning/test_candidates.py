"""Shortlists in training and in prediction: against sets, and against scoring all labels."""

import numpy as np
import pytest
import torch

from plant.finetuning import scoring
from plant.finetuning.candidates import Shortlist, load_shortlist
from plant.finetuning.scoring import predict_candidates, predict_logits, validation_f1
from plant.ground.errors import InputError
from plant.ground.files import write_arrays
from plant.ground.settings import Finetuning
from plant.metrics.f1 import best_threshold
from plant.model.assemble import TrainingData
from plant.model.batches import multi_hot

# ids of a full list of 9 labels, of which 1, 4 and 8 are not trained; rows of length 0 to 4
TRAINED = np.array([0, 2, 3, 5, 6, 7])
FULL = np.full((30, 4), -1, dtype=np.int32)
_random = np.random.default_rng(3)
for _document in range(30):
    _length = _random.integers(0, 5)
    FULL[_document, :_length] = _random.choice(9, size=_length, replace=False)


def shortlist(size=4):
    trained_id = np.full(9, -1)
    trained_id[TRAINED] = np.arange(6)
    return Shortlist(FULL, trained_id, size)


def allowed(document, size=4):
    """The same by sets: the trained labels on the first `size` places."""
    return [TRAINED.tolist().index(label) for label in FULL[document, :size].tolist() if label in TRAINED]


@pytest.mark.parametrize("size", [2, 4])
def test_candidates_are_the_positives_and_the_shortlist_once_each(toy, size):
    batch = np.arange(30)
    lists, truth = shortlist(size).with_positives(toy, batch)
    for row, document in enumerate(batch):
        found = lists.labels[row][lists.inside[row]].tolist()
        assert len(found) == len(set(found))
        assert set(found) == set(toy.labels(document).tolist()) | set(allowed(document, size))
        assert lists.labels[row][truth[row]].tolist() == toy.labels(document).tolist()
        assert not (truth[row] & ~lists.inside[row]).any()


def test_prediction_asks_for_the_shortlist_alone_whatever_is_true(toy):
    lists = shortlist().of(np.arange(30))
    assert [row[inside].tolist() for row, inside in zip(lists.labels, lists.inside, strict=True)] == [
        allowed(document) for document in range(30)
    ]


def test_scores_of_candidates_are_those_of_all_labels_and_nothing_where_a_row_ends(toy, make):
    model, documents = make(), np.array([7, 2, 9, 0, 4, 21])
    lists, scores = predict_candidates(model, toy, documents, shortlist(), batch_size=2)
    everything = predict_logits(model, toy, documents, batch_size=3)
    expected = np.where(lists.inside, np.take_along_axis(everything, lists.labels, axis=1), -np.inf)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert not lists.inside.all()


def test_validation_equals_the_dense_search_with_no_score_outside_the_shortlist(toy, make):
    model, documents = make(), np.arange(20, 30)
    dense = predict_logits(model, toy, documents, batch_size=4)
    truth = multi_hot(toy, documents, 6, torch.device("cpu")).numpy()
    assert validation_f1(model, toy, documents, None, batch_size=4) == best_threshold(dense, truth, "macro_f1_present")
    for row, document in enumerate(documents):
        dense[row, np.setdiff1d(np.arange(6), allowed(document))] = -np.inf
    expected = best_threshold(dense, truth, "macro_f1_present")
    found = validation_f1(model, toy, documents, shortlist(), batch_size=4)
    assert found.objective == pytest.approx(expected.objective)
    assert found.value == pytest.approx(expected.value, abs=1e-5)
    assert found.objective < validation_f1(model, toy, documents, None, batch_size=4).objective


@pytest.mark.parametrize("best", [6, 2])
def test_large_validation_keeps_the_best_labels_of_each_document(toy, monkeypatch, best, make):
    model, documents = make(), np.arange(20, 30)
    dense = predict_logits(model, toy, documents, batch_size=4)
    truth = multi_hot(toy, documents, 6, torch.device("cpu")).numpy()
    np.put_along_axis(dense, np.argsort(-dense, axis=1)[:, best:], -np.inf, axis=1)
    expected = best_threshold(dense, truth, "macro_f1_present")
    monkeypatch.setattr(scoring, "DENSE_SCORES", 0)
    monkeypatch.setattr(scoring, "BEST", best)
    monkeypatch.setattr(scoring, "PART", 20)  # three documents at a time
    found = validation_f1(model, toy, documents, None, batch_size=4)
    assert found.objective == pytest.approx(expected.objective)
    assert found.value == pytest.approx(expected.value, abs=1e-5)


def corpus_of(toy):
    return TrainingData(toy, TRAINED, list("abcdefghi"))


def test_a_shortlist_is_loaded_where_the_label_set_is_beyond_the_setting(toy, tmp_path):
    write_arrays(tmp_path / "s.safetensors", {"labels": FULL})
    data = corpus_of(toy)
    assert load_shortlist(tmp_path / "s.safetensors", data, Finetuning(shortlist=4, shortlist_above=9)) is None
    assert load_shortlist(None, data, Finetuning()) is None
    found = load_shortlist(tmp_path / "s.safetensors", data, Finetuning(shortlist=3, shortlist_above=8))
    lists, expected = found.of(np.arange(30)), shortlist(3).of(np.arange(30))
    np.testing.assert_array_equal(lists.labels, expected.labels)
    np.testing.assert_array_equal(lists.inside, expected.inside)


MISFITS = {
    "other documents": (FULL[:5], 2, "30 rows"),
    "too narrow": (FULL, 5, "at least 5"),
    "other labels": (FULL + 9, 4, "of 9 labels"),
}


@pytest.mark.parametrize(("labels", "size", "message"), MISFITS.values(), ids=MISFITS)
def test_a_shortlist_that_does_not_fit_is_one_clear_error(toy, tmp_path, labels, size, message):
    source = tmp_path / "s.safetensors"
    write_arrays(source, {"labels": labels})
    with pytest.raises(InputError, match=message):
        load_shortlist(source, corpus_of(toy), Finetuning(shortlist=size, shortlist_above=0))
