"""Stage 3 from score files to reasons: against plain arithmetic, scikit-learn, and what it must not see."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from plant.baselines.target import Sources, run
from plant.corpus.folds import deal_folds
from plant.corpus.reader import load_labels
from plant.evidence.stage3 import evidence
from plant.ground.errors import InputError
from plant.ground.settings import BaselineSettings, Evaluation, Evidence
from plant.metrics.scores import read_scores, write_scores

SIZES = {"train": 60, "val": 40, "test": 20}
LABELS = 7
BASELINES = BaselineSettings(svm_c=(1.0,), min_documents=1, log_odds_k=(2,), reasons=5)
ALL = ("network", "log_odds", "linear", "prior")


@pytest.fixture(scope="module")
def corpus(sign_documents, table_corpus, tmp_path_factory) -> Path:
    made = sign_documents(SIZES, (0.4, 0.3, 0.2, 0.15, 0.1), 0.6, groups=True)
    return table_corpus(made, tmp_path_factory.mktemp("evidence") / "corpus", relevance=10, group_column="group")


def run_baselines(corpus: Path, out: Path) -> dict[str, Path]:
    """Channel -> folder, with a made-up network that half knows the truth."""
    files = {"tokens": corpus / "words", "relevance": corpus / "mig.parquet"}
    for name, channel in (("tfidf_linear", "linear"), ("mig_log_odds", "log_odds")):
        run(name, Sources(load_labels(corpus), BASELINES, files), evaluation=Evaluation(), out=out / channel)
    random = np.random.default_rng(7)
    for split in ("val", "test"):
        given = read_scores(out / "linear", split)
        made = (3 * given.truth.toarray() - 2 + 2 * random.normal(size=given.truth.shape)).astype(np.float32)
        made[:, 6] = -np.inf
        rewrite(out / "linear", out / "network", split, truth=given.truth, scores=made)
    return {channel: out / channel for channel in ("network", "log_odds", "linear")}


def rewrite(source: Path, target: Path, split: str, *, truth=None, scores=None) -> None:
    given = read_scores(source, split)
    write_scores(
        target, split, document_ids=given.document_ids, label_names=given.label_names, names=given.names,
        truth=given.truth if truth is None else truth, scores=given.dense if scores is None else scores,
        natural_threshold=0.0, settings=Evaluation(),
    )  # fmt: skip


def rewritten(channels: dict[str, Path], out: Path, **truth) -> dict[str, Path]:
    """The channels with another truth of some splits."""
    for channel, folder in channels.items():
        shutil.copytree(folder, out / channel)
        for split, other in truth.items():
            rewrite(folder, out / channel, split, truth=other)
    return {channel: out / channel for channel in channels}


@pytest.fixture(scope="module")
def channels(corpus, tmp_path_factory) -> dict[str, Path]:
    return run_baselines(corpus, tmp_path_factory.mktemp("evidence") / "scores")


def make(corpus: Path, folders: dict[str, Path], out: Path, *, shown=0, **recipe):
    settings = Evidence(**{"folds": 4, **recipe})
    used = {channel: folders[channel] for channel in settings.channels if channel != "prior"}
    evidence(
        used, corpus=corpus, settings=settings, evaluation=Evaluation(), out=out, seed=0, shown=shown,
        tokens=corpus / "words",
    )  # fmt: skip
    return tuple(read_scores(out, split) for split in ("val", "test"))


def choices(folder: Path) -> dict:
    return json.loads((folder / "choices.json").read_text())


def logits(corpus, channels, split, record) -> np.ndarray:
    """The formula in plain NumPy, from the weights on record; label 6 has no score."""
    n = load_labels(corpus).counts[0].astype(float)
    total = np.full((SIZES[split], LABELS), record["constant"])
    for channel, weight in record["weights"].items():
        if isinstance(weight, dict):
            u = np.clip((np.log1p(n) - np.log1p(n[n > 0].min())) / (np.log1p(n.max()) - np.log1p(n[n > 0].min())), 0, 1)
            weight = (1 - u) * weight["rarest_label"] + u * weight["most_frequent_label"]
        prior = np.log((n + 0.5) / (60 - n + 0.5))[None]
        score = prior if channel == "prior" else read_scores(channels[channel], split).dense.astype(float)
        total = total + weight * np.maximum(score, -1e9)
    return total


# --- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("chosen", [ALL, ALL[:1], ALL[1:], ("linear", "network")])
def test_the_scores_are_the_weighted_sum_on_record(corpus, channels, tmp_path, chosen, slopes):
    val, test = make(corpus, channels, tmp_path, channels=chosen, slopes=slopes)
    record = choices(tmp_path)
    assert set(record["weights"]) == set(chosen)
    expected = logits(corpus, channels, "test", record)
    np.testing.assert_allclose(test.dense[:, :6], expected[:, :6], rtol=2e-3, atol=2e-3)
    fold_of = deal_folds(load_labels(corpus).groups("val"), 4, 0, purpose="evidence", key="folds")
    for fold, one in enumerate(record["folds"]):
        own = fold_of == fold
        assert one["documents"] == own.sum()
        expected = logits(corpus, channels, "val", one)[own]
        np.testing.assert_allclose(val.dense[own][:, :6], expected[:, :6], rtol=2e-3, atol=2e-3)
    assert np.isneginf(test.dense[:, 6]).all()  # no training document
    assert np.isfinite(test.dense[:, :6]).all()
    assert val.natural_threshold == test.natural_threshold == 0


def test_the_scores_of_a_fold_do_not_depend_on_its_truth_and_test_scores_do(corpus, channels, tmp_path):
    val, test = make(corpus, channels, tmp_path / "a")
    own = deal_folds(load_labels(corpus).groups("val"), 4, 0, purpose="evidence", key="folds") == 2
    truth = val.truth.toarray()
    truth[own] = truth[own][:, ::-1]
    others = rewritten(channels, tmp_path, val=sp.csr_array(truth))
    other_val, other_test = make(corpus, others, tmp_path / "b")
    np.testing.assert_array_equal(other_val.dense[own], val.dense[own])
    assert (other_val.dense[~own][:, :6] != val.dense[~own][:, :6]).any(axis=1).all()
    assert (other_test.dense[:, :6] != test.dense[:, :6]).any(axis=1).all()


def test_test_truth_plays_no_part(corpus, channels, tmp_path):
    val, test = make(corpus, channels, tmp_path / "a")
    other = make(corpus, rewritten(channels, tmp_path, test=sp.csr_array(~test.truth.toarray())), tmp_path / "b")
    np.testing.assert_array_equal(other[0].dense, val.dense)
    np.testing.assert_array_equal(other[1].dense, test.dense)
    assert choices(tmp_path / "a") == choices(tmp_path / "b")


def test_what_it_is_worth_on_validation_is_on_record(corpus, channels, tmp_path):
    val, _ = make(corpus, channels, tmp_path)
    told = choices(tmp_path)["validation"]
    truth, known = val.truth.toarray()[:, :6], val.dense[:, :6].astype(float)
    network = read_scores(channels["network"], "val").dense[:, :6].astype(float)
    assert (told["pairs"], told["positives"]) == (40 * 6, truth.sum())
    for name, score, rtol in (("network_alone", network, 1e-6), ("out_of_fold", known, 5e-3)):
        loss = np.mean(np.log1p(np.exp(np.where(truth, -score, score))))
        assert told[name]["log_loss"] == pytest.approx(loss, rel=rtol)
    assert told["out_of_fold"]["log_loss"] < told["network_alone"]["log_loss"]
    assert told["out_of_fold"]["calibration_error"] < told["network_alone"]["calibration_error"]
    make(corpus, channels, tmp_path / "words", channels=("log_odds", "linear"))
    assert choices(tmp_path / "words")["validation"]["network_alone"] is None


# --- reasons --------------------------------------------------------------------------------------


@pytest.mark.parametrize("slopes", [False, True])
def test_the_contributions_sum_to_the_score(corpus, channels, read_reasons, tmp_path, slopes):
    _, test = make(corpus, channels, tmp_path, slopes=slopes, shown=6)
    told = read_reasons(tmp_path)
    ids, names = list(test.document_ids), list(test.label_names)
    assert told["document_id"].unique(maintain_order=True).to_list() == ids[:6]
    record = choices(tmp_path)
    whole = logits(corpus, channels, "test", record)
    for (document, label), rows in told.group_by("document_id", "label", maintain_order=True):
        place, column = ids.index(document), names.index(label)
        score = rows["score"][0]
        assert score == pytest.approx(whole[place, column], abs=1e-9)
        assert np.float16(np.float32(score)) == np.float16(test.dense[place, column])
        assert rows["channel"].unique(maintain_order=True).to_list() == ["constant", *ALL]
    top = told.group_by("document_id", maintain_order=True).agg(pl.col("label").unique(maintain_order=True))["label"]
    for place, labels in enumerate(top.to_list()):
        assert labels == [names[i] for i in np.argsort(-test.dense[place], kind="stable")[:5]]


def test_the_order_in_which_channels_are_given_changes_nothing(corpus, channels, tmp_path):
    make(corpus, channels, tmp_path / "one", shown=5, slopes=True)
    evidence(
        dict(sorted(channels.items(), key=lambda item: item[0][::-1])), corpus=corpus,
        settings=Evidence(folds=4, slopes=True),
        evaluation=Evaluation(), out=tmp_path / "other", seed=0, shown=5, tokens=corpus / "words",
    )  # fmt: skip
    assert choices(tmp_path / "one") == choices(tmp_path / "other")
    for name in ("evidence.parquet", "reasons.parquet"):
        assert pl.read_parquet(tmp_path / "one" / name).equals(pl.read_parquet(tmp_path / "other" / name))


def test_the_words_are_those_of_the_two_baselines(corpus, channels, tmp_path):
    make(corpus, channels, tmp_path, shown=8)
    told, weights = pl.read_parquet(tmp_path / "reasons.parquet"), choices(tmp_path)["weights"]
    texts = dict(pl.read_parquet(corpus / "test.parquet", columns=["document_id", "text"]).iter_rows())
    vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))
    vectorizer.fit(pl.read_parquet(corpus / "train.parquet")["text"].to_list())
    linear = pl.read_parquet(channels["linear"] / "weights.parquet")
    log_odds = pl.read_parquet(channels["log_odds"] / "weights.parquet")
    words = told.filter(part="word")
    assert {*words["channel"]} == {"log_odds", "linear"}
    for row in words.iter_rows(named=True):
        table, value = log_odds, 1.0
        assert row["feature"] in texts[row["document_id"]]
        if row["channel"] == "linear":
            table = linear
            value = vectorizer.transform([texts[row["document_id"]]])[0, vectorizer.vocabulary_[row["feature"]]]
        weight = table.filter(label=row["label"], feature=row["feature"])["weight"].item()
        assert row["contribution"] == pytest.approx(weights[row["channel"]] * weight * value, rel=1e-9)
    rest = told.filter(part="other words", channel="log_odds")["contribution"].abs().max()
    assert rest <= 0.01 * weights["log_odds"]  # what rounding the stored score to 16 bits leaves


# --- faults and privacy ---------------------------------------------------------------------------


def test_scores_of_other_documents_and_too_few_patients_are_refused(corpus, channels, tmp_path):
    given = read_scores(channels["network"], "val")
    for split in ("val", "test"):
        rewrite(channels["network"], tmp_path / "network", split)
    write_scores(
        tmp_path / "network", "val", document_ids=[f"other {one}" for one in given.document_ids], truth=given.truth,
        label_names=given.label_names, scores=given.dense, natural_threshold=0.0, settings=Evaluation(),
    )  # fmt: skip
    with pytest.raises(InputError, match="the same documents"):
        make(corpus, {**channels, "network": tmp_path / "network"}, tmp_path / "out")
    with pytest.raises(InputError, match="scores for the documents and labels of"):
        make(corpus, {"network": tmp_path / "network"}, tmp_path / "out", channels=("network",))
    with pytest.raises(InputError, match="at most 20, the groups of documents, got 21"):
        make(corpus, channels, tmp_path / "out", folds=21)
    assert not (tmp_path / "out").exists()


def test_what_is_made_of_private_scores_is_private(corpus, channels, tmp_path):
    folder = tmp_path / "network"
    for split in ("val", "test"):
        rewrite(channels["network"], folder, split)
    for file in folder.iterdir():
        file.chmod(0o600)
    make(corpus, {**channels, "network": folder}, tmp_path / "out", shown=1)
    assert {file.stat().st_mode & 0o077 for file in (tmp_path / "out").iterdir()} == {0}
