"""Log-odds of documents, cross-fitted: against loops, and what they must not depend on."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from plant.corpus.folds import deal_folds
from plant.ground.errors import InputError
from plant.ground.files import read_arrays
from plant.ground.settings import Relevance
from plant.relevance import residual as room
from plant.relevance.residual import write_residual

K, SMOOTHING = 3, 0.5


def make(toy, folder, *, folds=5, measure="mig", groups=None):
    """float16 (N, L) and the facts."""
    if not folder.exists():
        toy.write(folder)
    if groups is not None:
        train = pl.read_parquet(folder / "train.parquet").with_columns(pl.Series("group_id", groups))
        train.write_parquet(folder / "train.parquet")
    out = folder / f"{measure}.residual{K}x{folds}.safetensors"
    facts = write_residual(
        folder, folder / "tokens", measure, Relevance(k=K), folds=folds, smoothing=SMOOTHING, out=out
    )
    return read_arrays(out)["log_odds"].reshape(len(toy.documents), toy.n_labels), facts


def naive(oracle, train, words, label):
    """e of one document by loops over probabilities."""
    known = sorted({token for some, _ in train for token in some})
    with_label = [some for some, row in train if label in row]
    value = math.log((len(with_label) + SMOOTHING) / (len(train) - len(with_label) + SMOOTHING))
    if not with_label:
        return value
    for token, n_joint, _ in oracle(train, known, label, measure="mig", k=K, sign="both"):
        n_token = sum(token in some for some, _ in train)
        p = (n_joint + SMOOTHING) / (len(with_label) + 2 * SMOOTHING)
        q = (n_token - n_joint + SMOOTHING) / (len(train) - len(with_label) + 2 * SMOOTHING)
        value += math.log(p / q) if token in words else math.log((1 - p) / (1 - q))
    return value


@pytest.mark.parametrize(("folds", "groups", "block"), [(5, 30, 10**6), (5, 30, 40), (1, 30, 40), (3, 6, 10**6)])
def test_training_documents_get_log_odds_of_the_other_folds_and_the_rest_of_all(
    toy_corpus, oracle, tmp_path, monkeypatch, folds, groups, block
):
    monkeypatch.setattr(room, "BLOCK", block)
    patients = np.array([f"d{i % groups}" for i in range(30)])
    found, _ = make(toy_corpus, tmp_path / "c", folds=folds, groups=patients)
    fold = deal_folds(patients, folds, 0, purpose="relevance", key="folds")
    for document in range(40):
        others = toy_corpus.train
        if document < 30 and folds > 1:
            others = [pair for pair, one in zip(toy_corpus.train, fold, strict=True) if one != fold[document]]
        for label in range(4):
            expected = naive(oracle, others, toy_corpus.documents[document], label)
            assert found[document, label] == pytest.approx(expected, rel=2e-3, abs=2e-3)


def test_the_log_odds_of_a_training_document_do_not_depend_on_its_own_labels(toy_corpus, tmp_path):
    before, _ = make(toy_corpus, tmp_path / "a")
    inside, _ = make(toy_corpus, tmp_path / "a", folds=1)
    moved = 0
    for document in (0, 7, 21):
        labels = [list(row) for row in toy_corpus.labels]
        labels[document] = [label for label in range(4) if label not in labels[document]]
        other = replace(toy_corpus, labels=labels)
        after, _ = make(other, tmp_path / f"b{document}")
        assert (after[document] == before[document]).all()
        assert (after != before).any()
        moved += (make(other, tmp_path / f"b{document}", folds=1)[0][document] != inside[document]).any()
    assert moved == 3


def test_a_label_that_the_other_folds_lack_has_its_prior_alone(toy_corpus, tmp_path):
    labels = [[label for label in row if label != 3] for row in toy_corpus.labels]
    labels[4] = [3]
    found, _ = make(replace(toy_corpus, labels=labels), tmp_path / "c")
    fold = deal_folds(np.array([f"d{i}" for i in range(30)]), 5, 0, purpose="relevance", key="folds")
    rest = int((fold != fold[4]).sum())
    assert found[4, 3] == pytest.approx(math.log(SMOOTHING / (rest + SMOOTHING)), rel=1e-3)


@pytest.fixture(scope="module")
def noise(toy_corpus):
    """Labels that have nothing to do with the text."""
    random = np.random.default_rng(5)
    documents = [random.choice(25, size=8, replace=False).tolist() for _ in range(900)]
    labels = [random.choice(4, size=1).tolist() for _ in range(900)]
    return replace(toy_corpus, documents=documents, labels=labels, split_sizes=(300, 300, 300))


def test_without_information_only_in_sample_log_odds_are_above_validation(noise, tmp_path):
    _, fitted = make(noise, tmp_path / "c", folds=5)
    _, inside = make(noise, tmp_path / "c", folds=1)
    assert fitted["true_val"] == inside["true_val"]
    unseen = (fitted["true_val"] + fitted["true_test"]) / 2
    assert abs(fitted["true_train"] - unseen) < 0.04
    assert inside["true_train"] - unseen > 0.12


@pytest.mark.parametrize("measure", ["random", "shuffled", "chi2"])
def test_every_measure_may_choose_the_tokens(toy_corpus, tmp_path, measure):
    found, _ = make(toy_corpus, tmp_path / "c", measure=measure)
    assert np.isfinite(found).all()
    assert (found[:, :4] != make(toy_corpus, tmp_path / "c")[0][:, :4]).any()


def test_what_cannot_be_is_one_clear_error(toy_corpus, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="at most 30, the groups"):
        make(toy_corpus, tmp_path / "c", folds=31)
    monkeypatch.setattr(room, "LARGEST", 200)
    with pytest.raises(InputError, match="40 documents and 6 labels"):
        make(toy_corpus, tmp_path / "c")
