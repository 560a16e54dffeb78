"""Attention at three points of training, on relevant and on marked tokens: a tiny network against loops by hand."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.metrics import ndcg_score
from torch import nn

from plant.evaluation.attention import write_attention_points
from plant.evaluation.attention_marks import write_marks_study
from plant.evaluation.attention_mass import highest_grades, sampled, write_mass
from plant.evaluation.points import POINTS, TrainedNetwork, attention, logits_of_parts
from plant.ground.files import write_arrays
from plant.ground.settings import AttentionStudy, Finetuning
from plant.model.assemble import load_training_data, save_weights
from plant.model.batches import pad_documents
from plant.model.classifier import LabelClassifier
from plant.pretraining.lists import TopTokens

NAMES = ("a", "b", "never")  # "never" has no training document
DOCUMENTS = {
    "train": [([11, 12, 13], ["a"]), ([14, 11], ["a", "b"])],
    "val": [([11, 19, 12, 11], ["a"]), ([15], ["b", "never"])],
    "test": [([16, 17, 11], ["b"]), ([11, 12, 20, 12, 5], ["a", "b", "never"]), ([12], ["a"])],
}
PATIENTS = ("z", "y", "z")  # of the documents of a split, by place
LISTS = {"a": {11: 1.0, 12: 0.5, 13: 0.0}, "b": {16: 1.0, 17: 1.0, 20: 0.25}}
LINES = [  # characters that people marked
    ("test0", "b", 4, 7), ("test1", "a", 0, 9), ("test1", "b", 8, 9), ("test1", "never", 0, 3), ("test2", "a", 0, 3),
]  # fmt: skip
PAIRS = {("test0", "b"): {1}, ("test1", "a"): {0, 1, 2}, ("test1", "b"): {2}, ("test2", "a"): {0}}


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 8)

    def forward(self, input_ids, mask):
        return self.table(input_ids) * mask[..., None]


def make(seed):
    torch.manual_seed(seed)
    return LabelClassifier(Embedding(), n_labels=2, hidden_size=8, attention="per_label", projection=8)


@pytest.fixture
def folder(tmp_path):
    """A corpus with its tokens; token i of a text has the characters 4 i to 4 i + 3."""
    rows = [row for documents in DOCUMENTS.values() for row in documents]
    for split, documents in DOCUMENTS.items():
        table = [{"document_id": f"{split}{i}", "group_id": PATIENTS[i]} for i in range(len(documents))]
        pl.DataFrame(table).write_parquet(tmp_path / f"{split}.parquet")
    pl.DataFrame({"label": NAMES}).write_parquet(tmp_path / "labels.parquet")
    write_arrays(tmp_path / "labels.safetensors", {
        "indptr": np.cumsum([0, *(len(labels) for _, labels in rows)]).astype(np.int64),
        "indices": np.array([NAMES.index(label) for _, labels in rows for label in labels], dtype=np.int32),
        "split_sizes": np.array([2, 2, 3]), "counts": np.zeros((3, 3), dtype=np.int64)})  # fmt: skip
    places = np.concatenate([np.arange(len(tokens)) for tokens, _ in rows]).astype(np.int32)
    write_arrays(tmp_path / "tokens.safetensors", {
        "input_ids": np.concatenate([tokens for tokens, _ in rows]).astype(np.int32),
        "offsets": np.cumsum([0, *(len(tokens) for tokens, _ in rows)]).astype(np.int64),
        "starts": 4 * places, "ends": 4 * places + 3})  # fmt: skip
    return tmp_path


@pytest.fixture
def run(folder):
    """A network whose stages have weights of other seeds."""
    for stage, seed in (("planted", 1), ("trained", 2)):
        save_weights(make(seed), folder / stage, head=stage == "trained")
    tokens = [(token, value) for name in ("a", "b") for token, value in LISTS[name].items()]
    ids, values = (np.array(part) for part in zip(*tokens, strict=True))
    top = TopTokens.from_csr(np.array([0, 3, 6]), ids.astype(np.int32), values.astype(np.float32), k=9, vocabulary=30)
    data = load_training_data(folder, folder)
    return TrainedNetwork(data, top, make(0), Finetuning(), folder / "planted", folder / "trained", folder, folder)


def softmax_of(seed, tokens, label):
    """The attention of the network of a seed, by hand."""
    classifier = make(seed)
    hidden = classifier.backbone.table.weight[list(tokens)][None]
    scores = classifier.attention.token_logits(hidden, torch.tensor([[label]]))[0, 0]
    return (scores.exp() / scores.exp().sum()).detach().numpy()


def logit_of(seed, tokens, label):
    classifier = make(seed)
    hidden = classifier.backbone.table.weight[list(tokens)][None]
    mask = torch.ones(1, len(tokens), dtype=torch.bool)
    return float(classifier.logits(hidden, mask, torch.tensor([[label]])).detach())


def test_each_point_has_its_own_weights(run):
    document = run.data.corpus.documents("test")[1]
    labels = np.array([0, 1])
    found = {point: attention(run.classifier, read, document, labels) for point, read in run.points()}
    for seed, point in enumerate(POINTS):
        for label in labels:
            expected = softmax_of(seed, DOCUMENTS["test"][1][0], label)
            np.testing.assert_allclose(found[point][label], expected, rtol=1e-5)


def test_without_stage_1_stage_2_starts_from_random_weights(run):
    document = run.data.corpus.documents("test")[1]
    unplanted = replace(run, planted=None)
    found = [attention(run.classifier, read, document, np.array([0])) for _, read in unplanted.points()]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[1], found[2])


def test_mass_and_entropy_are_those_of_a_loop(run, tmp_path):
    write_mass(run, settings=AttentionStudy(grades=2), out=tmp_path / "mass.parquet")
    table = pl.read_parquet(tmp_path / "mass.parquet")
    assert table.height == len(POINTS) * 2  # "never" is not trained
    for seed, point in enumerate(POINTS):
        tokens = DOCUMENTS["val"][0][0]  # 11, 19, 12, 11
        weights = softmax_of(seed, tokens, 0)
        row = table.row(by_predicate=(pl.col("point") == point) & (pl.col("label") == "a"), named=True)
        assert (row["document"], row["cluster"], row["tokens"]) == (0, 0, 4)
        assert row["mass_first"] == pytest.approx(weights[0] + weights[3])  # every place of token 11
        assert row["mass_grades"] == pytest.approx(1 - weights[1])
        assert (row["uniform_first"], row["uniform_grades"]) == (0.5, 0.75)
        nats = -sum(w * math.log(w) for w in weights)
        assert row["entropy"] == pytest.approx(nats, rel=1e-5)
        assert row["relative_entropy"] == pytest.approx(nats / math.log(4), rel=1e-5)
        single = table.row(by_predicate=(pl.col("point") == point) & (pl.col("label") == "b"), named=True)
        # token 15 is in no list, and a document of one token has no relative entropy
        assert (single["mass_first"], single["entropy"], single["relative_entropy"]) == (None, 0.0, None)


def test_equal_relevance_is_one_grade_and_zero_is_none():
    relevance = np.array([[0.5, 0.9, -1.0, 0.9, 0.0, 0.2], [0.0, -1.0, -1.0, 0.0, 0.0, 0.0]])
    assert highest_grades(relevance, 1).tolist() == [[False, True, False, True, False, False], [False] * 6]
    assert highest_grades(relevance, 2)[0].tolist() == [True, True, False, True, False, False]
    assert highest_grades(relevance, 9)[0].tolist() == [True, True, False, True, False, True]


def test_attention_against_marks_is_that_of_a_loop(run, tmp_path):
    marks = pl.DataFrame(LINES, schema=["document_id", "label", "start", "end"], orient="row")
    out = tmp_path / "marks.parquet"
    counts = write_marks_study(run, marks, settings=AttentionStudy(at=2), out=out)
    assert counts == {"marked_pairs": 5, "measured_pairs": 4}
    table = pl.read_parquet(out)
    keys, measures = {"scorer", "document", "cluster", "label"}, {"ndcg", "mass", "recall", "drop"}
    assert set(table.columns) == {*keys, "tokens", "marked", *measures}
    assert sorted(set(table.select("document", "cluster").iter_rows())) == [(0, 0), (1, 1), (2, 0)]
    assert set(table["scorer"]) == {*POINTS, "uniform", "random", "relevance", "marked", "occlusion"}
    for (document, label), places in PAIRS.items():
        number, name = int(document[-1]), NAMES.index(label)
        tokens, truth = DOCUMENTS["test"][number][0], np.zeros(len(DOCUMENTS["test"][number][0]))
        truth[list(places)] = 1
        rows = {row["scorer"]: row for row in table.filter(document=number, label=label).iter_rows(named=True)}
        assert {row["marked"] for row in rows.values()} == {len(places)}
        whole = logit_of(2, tokens, name)

        def logit_without(hidden, tokens=tokens, name=name):
            left = [token for place, token in enumerate(tokens) if place not in hidden]
            return logit_of(2, left, name)

        scores = {point: softmax_of(seed, tokens, name) for seed, point in enumerate(POINTS)}
        relevance = np.array([LISTS[label].get(token, 0) for token in tokens])
        scores |= {"relevance": relevance, "uniform": np.ones(len(tokens)), "marked": truth}
        if len(tokens) > 1:
            scores["occlusion"] = np.round([whole - logit_without({place}) for place in range(len(tokens))], 5)
        for scorer, values in scores.items():
            row, positive = rows[scorer], np.maximum(values, 0)
            share = positive / positive.sum() if positive.sum() else np.full(len(tokens), 1 / len(tokens))
            assert row["mass"] == pytest.approx((share * truth).sum(), rel=1e-4)
            if len(tokens) > 1:
                assert row["ndcg"] == pytest.approx(ndcg_score([truth], [values], k=2), rel=1e-4)
            if scorer != "uniform" and len(places) < len(tokens):
                first = set(np.argsort(-values, kind="stable")[: len(places)].tolist())
                assert row["drop"] == pytest.approx(whole - logit_without(first), rel=1e-3, abs=1e-5)
        assert rows["marked"]["ndcg"] == rows["marked"]["recall"] == 1
        for value in ("mass", "recall"):
            assert rows["uniform"][value] == pytest.approx(len(places) / len(tokens))
        assert rows["uniform"]["drop"] is None
        assert (rows["after_stage_2"]["drop"] is None) == (len(tokens) == 1)  # no token would be left


@pytest.mark.parametrize("with_marks", [True, False])
def test_texts_are_written_with_attention_at_each_point_relevance_and_marks(run, folder, tmp_path, with_marks):
    pl.DataFrame({"token": [f"t{i}" for i in range(30)]}).write_parquet(folder / "vocabulary.parquet")
    marks = pl.DataFrame(LINES, schema=["document_id", "label", "start", "end"], orient="row") if with_marks else None
    out = tmp_path / "points.parquet"
    write_attention_points(run, marks, vocabulary=folder / "vocabulary.parquet", documents=2, out=out)
    table = pl.read_parquet(out)
    assert table.select("document_id", "label").unique(maintain_order=True).rows() == [
        ("test0", "b"), ("test1", "b"), ("test1", "a"),  # the rarest label first
    ]  # fmt: skip
    shown = table.filter(document_id="test1", label="a")
    assert shown["token"].to_list() == ["t11", "t12", "t20", "t12", "t5"]
    assert shown["relevance"].to_list() == [1.0, 0.5, 0.0, 0.5, 0.0]
    assert shown["marked"].to_list() == ([True, True, True, False, False] if with_marks else [None] * 5)
    for seed, point in enumerate(POINTS):
        np.testing.assert_allclose(shown[point], softmax_of(seed, DOCUMENTS["test"][1][0], 0), rtol=1e-5)


@pytest.mark.parametrize("recipe", [{"static_attention": 2.0}, {"static_attention": 2.0, "static_place": "weights"},
                                    {"segment": 2, "decoder_state": "sum"}])  # fmt: skip
def test_what_a_recipe_keeps_is_part_of_its_attention_and_of_its_logits(run, folder, recipe):
    indptr, ids = np.array([0, 3, 6, 6]), [*LISTS["a"], *LISTS["b"]]
    values = [*LISTS["a"].values(), *LISTS["b"].values()]
    write_arrays(folder / "mig.safetensors", {"indptr": indptr, "token_id": np.array(ids, dtype=np.int32),
                                              "relevance": np.array(values, dtype=np.float32)})  # fmt: skip
    kept = replace(run, recipe=Finetuning(**recipe), planted=None, static=folder / "mig.safetensors")
    *_, (_, corpus) = kept.points()
    document, tokens = corpus.documents("test")[1], DOCUMENTS["test"][1][0]  # 11, 12, 20, 12, 5
    found = attention(kept.classifier, corpus, document, np.array([0]))[0]
    bare, static = softmax_of(2, tokens, 0), 2 * np.array([LISTS["a"].get(token, 0) for token in tokens])
    if "segment" in recipe:
        parts = [softmax_of(2, tokens[start : start + 2], 0) for start in (0, 2, 4)]
        expected = np.concatenate(parts) / 3
    else:
        expected = bare + static if "static_place" in recipe else bare * np.exp(static)
        expected = expected / expected.sum()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # two altered documents of different length: the whole one, and one without its second token
    parts = [np.arange(5), np.array([0, 2, 3, 4])]
    logits = logits_of_parts(kept.classifier, corpus, document, np.array([0, 1]), parts)
    padded = pad_documents(corpus, [document], torch.device("cpu"))
    whole = kept.classifier.predict(padded, torch.tensor([[0, 1]]))
    np.testing.assert_allclose(logits[0], whole[0], rtol=1e-5)
    assert not np.allclose(logits[1], logits[0])


def test_a_sample_is_fixed_by_its_seed_and_keeps_the_order():
    documents = list(range(10, 40))
    assert sampled(documents, 50, 0) == documents
    assert sampled(documents, 5, 0) == sampled(documents, 5, 0) == sorted(sampled(documents, 5, 0))
    assert sampled(documents, 5, 0) != sampled(documents, 5, 1)
    assert sampled(documents, 0, 0) == []
