"""Scores, attention and cached features of a trained classifier, through files: against the model called by hand."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import torch
from toys import lookup

from plant.evaluation.attention import write_attention
from plant.evaluation.metrics import write_metrics as evaluate
from plant.finetuning import predict
from plant.finetuning.candidates import Shortlist
from plant.finetuning.predict import predict_split
from plant.finetuning.scoring import predict_logits
from plant.ground.checkpoints import save_tensors
from plant.ground.errors import InputError
from plant.ground.files import read_arrays, write_arrays
from plant.ground.settings import Evaluation
from plant.metrics.scores import read_scores
from plant.model.assemble import load_training_data, load_weights, save_weights
from plant.model.classifier import LabelClassifier
from plant.model.features import read_features, write_features
from plant.pretraining.lists import TopTokens

NAMES = ("a", "b", "never", "z")  # "never" has no training document
DOCUMENTS = {
    "train": [([11, 12, 13], ["a"]), ([14, 11], ["a", "z"]), ([15, 16, 17, 18], ["b"])],
    "val": [([11, 19], ["a"]), ([15], ["b", "never"])],
    "test": [([16, 17], ["b"]), ([11, 12, 20], ["a", "never"]), ([], ["z"])],
}


def make(data):
    torch.manual_seed(0)
    return LabelClassifier(lookup(30, 8), n_labels=len(data.trained), hidden_size=8, heads=2, pool_size=4)


@pytest.fixture
def folder(tmp_path, corpus_files):
    """A corpus with its tokens and their vocabulary."""
    vocabulary = {"token_id": range(30), "token": [f"t{i}" for i in range(30)], "special": [False] * 30}
    pl.DataFrame(vocabulary).write_parquet(tmp_path / "vocabulary.parquet")
    return corpus_files(tmp_path, DOCUMENTS, NAMES)


def test_only_labels_with_a_training_document_are_trained(folder):
    data = load_training_data(folder, folder)
    assert [data.names[label] for label in data.trained] == ["a", "b", "z"]
    assert data.corpus.labels(4).tolist() == [1]  # b and never
    assert data.corpus.documents("test").tolist() == [5, 6]  # the last has no token


@pytest.fixture
def evaluated(monkeypatch, tmp_path, corpus_files):
    """Metrics of made-up logits (N, L) as a model would bring them, with the scores kept whole or the best 20."""

    def evaluate_both(logits, truth):
        names, ids = [f"label {label:03d}" for label in range(truth.shape[1])], np.arange(len(truth))
        rows = [([0], [names[label] for label in np.flatnonzero(row)]) for row in truth]
        corpus_files(tmp_path, {"train": [([0], names)] * 9, "val": rows, "test": rows}, names)
        corpus = SimpleNamespace(splits=dict.fromkeys(("val", "test"), (0,)), documents=lambda _: ids)
        data = SimpleNamespace(names=names, trained=np.arange(len(names)), corpus=corpus)
        monkeypatch.setattr(predict, "predict_logits", lambda model, corpus, part, batch_size: logits[part])
        monkeypatch.setattr(predict, "PART", 7)
        for limit in (300, 10):
            settings, out = Evaluation(dense_limit=limit, top=20, at=(1, 8, 20)), tmp_path / str(limit)
            for split in ("val", "test"):
                predict_split(None, data, split, corpus=tmp_path, out=out, settings=settings, batch_size=2)
            assert (read_scores(out, "test").dense is None) == (limit == 10)
            yield evaluate(out, tmp_path / "labels.parquet", settings)

    return evaluate_both


def test_the_truth_decides_no_tie_at_the_last_kept_score(evaluated):
    """8 of 300 labels of a document have a score above all others, which are equal; half its true labels are there."""
    random, logits, truth = np.random.default_rng(0), np.zeros((40, 300), np.float32), np.zeros((40, 300), bool)
    for row in range(40):
        chosen = random.permutation(300)
        logits[row, chosen[:8]], truth[row, chosen[4:12]] = random.integers(1, 3, 8), True
    whole, kept = evaluated(logits, truth)
    same = [f"{name}@{k}" for name in ("p", "r", "ndcg", "rp") for k in (1, 8, 20)]
    same += ["micro_f1", "macro_f1_present", "micro_precision", "micro_recall", "document_f1"]
    assert [kept[name] for name in same] == [whole[name] for name in same]
    assert whole["threshold"]["value"] == kept["threshold"]["value"]


def test_constant_scores_rank_labels_by_their_id_whatever_is_true(evaluated):
    truth = np.random.default_rng(1).random((40, 300)) < 0.05
    truth[:, 299] = True
    for metrics in evaluated(np.zeros((40, 300), np.float32), truth):
        assert metrics["p@20"] == pytest.approx(truth[:, :20].mean())


# candidates of train, val and test documents by the full label list; "a" and "never" of test1 are true, "a" is not on
# its list, and test0 has no true label on its own
LISTED = np.array([[0, -1], [3, 0], [1, -1], [0, 1], [1, 2], [3, 0], [1, 3], [0, -1]], dtype=np.int32)


def shortlist():
    return Shortlist(LISTED, np.array([0, 1, -1, 2]), 2)


@pytest.mark.parametrize("listed", [None, shortlist()], ids=["all labels", "shortlist"])
@pytest.mark.parametrize("dense_limit", [10_000, 2], ids=["dense", "top K"])
@pytest.mark.parametrize(("top", "part"), [(1, 2000), (2, 1)])  # documents at once: of the third alone none has a token
def test_scores_are_the_logits_and_other_labels_have_none_whether_true_or_not(
    folder, tmp_path, monkeypatch, dense_limit, top, part, listed
):
    monkeypatch.setattr(predict, "PART", part)
    data = load_training_data(folder, folder)
    model, settings = make(data), Evaluation(dense_limit=dense_limit, top=top, at=(1,))
    predict_split(model, data, "test", corpus=folder, out=tmp_path / "out", settings=settings, batch_size=2,
                  shortlist=listed)  # fmt: skip
    scores = read_scores(tmp_path / "out", "test")
    assert scores.document_ids == ("test0", "test1", "test2")
    assert scores.natural_threshold == 0
    assert scores.truth.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]]
    allowed = np.zeros((3, 4), dtype=bool)  # the third has no token
    allowed[([0, 0, 1, 1], [3, 0, 1, 3]) if listed else np.ix_([0, 1], [0, 1, 3])] = True
    expected = np.full((3, 4), -np.inf)
    expected[np.ix_([0, 1], [0, 1, 3])] = predict_logits(model, data.corpus, np.array([5, 6]), batch_size=1)
    expected[~allowed] = -np.inf
    if dense_limit == 10_000:
        np.testing.assert_allclose(scores.dense, expected, rtol=2e-3)
    else:
        assert scores.dense is None
    kept = np.full((3, 4), np.nan)
    entries = scores.kept.tocoo()
    kept[entries.coords] = entries.data
    for row in range(3):
        best = set(np.flatnonzero(np.argsort(np.argsort(-expected[row])) < top)) & set(np.flatnonzero(allowed[row]))
        stored = best | set(scores.truth[[row]].indices.tolist())
        assert set(np.flatnonzero(~np.isnan(kept[row])).tolist()) == stored
        np.testing.assert_allclose(kept[row, [*stored]], expected[row, [*stored]], rtol=2e-3)


@pytest.mark.parametrize("dense_limit", [10_000, 2], ids=["dense", "top K"])
def test_truth_leaks_neither_into_scores_of_a_shortlist_nor_into_the_threshold(folder, tmp_path, dense_limit):
    """Other labels on the test documents, and on the validation documents that are scored: the same scores."""
    found = []
    for swapped in (False, True):
        if swapped:
            arrays = read_arrays(folder / "labels.safetensors")
            indices = arrays["indices"].copy()
            indices[arrays["indptr"][3] :] = [3, 0, 2, 1, 0, 1, 2]  # from the first validation document on
            write_arrays(folder / "labels.safetensors", {**arrays, "indices": indices})
        data = load_training_data(folder, folder)
        settings = Evaluation(dense_limit=dense_limit, top=2, at=(1,))
        model, out = make(data), tmp_path / f"out{swapped}"
        for split in ("val", "test"):
            predict_split(model, data, split, corpus=folder, out=out, settings=settings, batch_size=2,
                          shortlist=shortlist())  # fmt: skip
        found.append([read_scores(out, split) for split in ("val", "test")])
    for one, two in zip(*found, strict=True):
        assert (one.truth != two.truth).nnz
        assert (one.retrieved != two.retrieved).nnz == 0
        assert one.retrieved.nnz == two.retrieved.nnz


def test_weights_of_another_backbone_or_of_a_part_of_it_are_refused(folder, tmp_path):
    data = load_training_data(folder, folder)
    model = make(data)
    for parameter, message in ((False, r"no table\.weight"), (True, r"unknown names \['more\.weight'\]")):
        model.backbone.table.weight.requires_grad_(parameter)
        save_weights(model, tmp_path, head=True)
        if parameter:
            save_tensors(tmp_path / "backbone.safetensors", dict(model.backbone.table.state_dict(prefix="more.")))
        with pytest.raises(InputError, match=message):
            load_weights(make(data), tmp_path, head=True)


def test_attention_rows_are_distributions_over_the_tokens_read(folder, tmp_path):
    data = load_training_data(folder, folder)
    top = TopTokens.from_csr(np.array([0, 2, 2, 2]), np.array([11, 20]), np.array([1, 0.5]), k=9, vocabulary=30)
    write_attention(make(data), data, top, corpus=folder, vocabulary=folder / "vocabulary.parquet",
                    out=tmp_path / "attention.parquet", documents=2)  # fmt: skip
    table = pl.read_parquet(tmp_path / "attention.parquet")
    shown = table.filter((pl.col("document_id") == "test1") & (pl.col("label") == "a"))
    assert shown["token"].to_list() == ["t11", "t12", "t20"]
    assert shown["relevance"].to_list() == [1.0, None, 0.5]
    sums = table.group_by("document_id", "label").agg(pl.col("weight").sum())["weight"]
    np.testing.assert_allclose(sums.to_numpy(), 1, rtol=1e-5)


def test_features_on_disk_are_the_states_of_every_token_in_order(folder, tmp_path):
    data = load_training_data(folder, folder)
    backbone = lookup(30, 8)
    write_features(backbone, data.corpus, tmp_path / "features.safetensors", device=torch.device("cpu"))
    features = read_features(tmp_path / "features.safetensors")
    expected = backbone.table.weight.detach().numpy()[data.corpus.input_ids].astype(np.float16)
    np.testing.assert_array_equal(features, expected)
    with_features = load_training_data(folder, folder, tmp_path / "features.safetensors")
    assert with_features.corpus.features.shape == (len(data.corpus.input_ids), 8)
