"""Coverage of label descriptions against plain loops over words."""

import json
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.baselines.descriptions import Phrases
from plant.baselines.target import Sources, run
from plant.corpus.reader import load_labels
from plant.ground.errors import InputError
from plant.ground.settings import Evaluation
from plant.metrics.scores import read_scores

ROWS = {
    "train": [("a1", "high fever and a cough", "fever;cough"), ("a2", "no pain", "pain"), ("a3", "a cough", "cough")],
    "val": [("b1", "Cough, with FEVER", "cough"), ("b2", "pain of the chest", "pain;unseen")],
    "test": [("c1", "coughing", "cough"), ("c2", "acute chest pain", "pain"), ("c3", "fever high", "fever")],
}
TEXTS = {"fever": ["high fever", "pyrexia"], "cough": ["cough"], "pain": ["chest pain, acute", "pain of the chest"]}


def naive(described: list[list[str]], texts: list[str]) -> np.ndarray:
    """The formula of the module's head, one word at a time."""
    split = [[re.findall(r"\w\w+", phrase.lower()) for phrase in phrases] for phrases in described]
    labels = sum(any(phrase for phrase in phrases) for phrases in split)
    own = [{word for phrase in phrases for word in phrase} for phrases in split]

    def g(word):
        return math.log((labels + 1) / (sum(word in some for some in own) + 0.5))

    scores = np.zeros((len(texts), len(described)))
    for row, text in enumerate(texts):
        here = set(re.findall(r"\w\w+", text.lower()))
        for label, phrases in enumerate(split):
            for phrase in phrases:
                if phrase:
                    words = set(phrase)
                    share = sum(g(word) for word in words & here) / sum(g(word) for word in words)
                    scores[row, label] = max(scores[row, label], share)
    return scores


@pytest.fixture
def build(table_corpus):
    """The corpus of ROWS with some descriptions, label -> phrases."""

    def make(folder: Path, described: dict[str, list[str]]) -> Path:
        folder.mkdir()
        path = str(folder / "described.csv") if described else None
        if path:
            pairs = [(label, phrase) for label, phrases in described.items() for phrase in phrases]
            pl.DataFrame(pairs, schema=["label", "description"], orient="row").write_csv(path)
        made = {
            split: [{"id": one, "text": text, "labels": labels.split(";")} for one, text, labels in rows]
            for split, rows in ROWS.items()
        }
        return table_corpus(made, folder, descriptions=path)

    return make


WORDS = st.lists(st.sampled_from(["high", "fever", "cough", "of", "the", "Chest", "a"]), max_size=4).map(" ".join)


@given(st.lists(st.lists(WORDS, max_size=3), min_size=1, max_size=5), st.lists(WORDS, min_size=1, max_size=4))
def test_the_coverage_is_the_naive_one(described, texts):
    phrases = Phrases.of(["; ".join(some) for some in described])
    if not phrases.phrase:
        return
    expected = naive(described, texts)
    np.testing.assert_allclose(phrases.coverage(texts, len(described)), expected, atol=1e-6)
    for text, row in zip(texts, expected, strict=True):
        best = phrases.best(text)
        assert {label: pytest.approx(share) for label, (_, share) in best.items()} == {
            label: value for label, value in enumerate(row) if value > 0
        }
        for label, (phrase, _) in best.items():
            assert phrase in [some.strip() for some in described[label]]


def test_the_baseline_scores_trained_labels_by_what_is_there(build, tmp_path):
    corpus = build(tmp_path / "corpus", {**TEXTS, "unseen": ["chest"]})
    run("descriptions", Sources(load_labels(corpus)), evaluation=Evaluation(), out=tmp_path / "out")
    names = pl.read_parquet(corpus / "labels.parquet")["label"].to_list()
    assert names == ["cough", "fever", "pain", "unseen"]
    for split in ("val", "test"):
        scores = read_scores(tmp_path / "out", split)
        assert np.isneginf(scores.dense[:, 3]).all()
        texts = [text for _, text, _ in ROWS[split]]
        expected = naive([TEXTS[name] for name in names[:3]], texts)
        np.testing.assert_allclose(scores.dense[:, :3], expected, rtol=1e-3)
    assert scores.natural_threshold is None
    assert scores.dense[0].max() == 0  # "coughing" is another word
    table = pl.read_parquet(tmp_path / "out/weights.parquet")
    assert table.select("label", "feature").rows() == [(name, one) for name in names[:3] for one in TEXTS[name]]
    assert set(table["weight"]) == {1.0}
    record = json.loads((tmp_path / "out/choices.json").read_text())
    assert (record["phrases"], record["described_labels"]) == (5, 3)


def test_a_label_without_a_description_scores_zero_and_none_at_all_is_an_error(build, tmp_path):
    corpus = build(tmp_path / "corpus", {"cough": ["cough"]})
    run("descriptions", Sources(load_labels(corpus)), evaluation=Evaluation(), out=tmp_path / "out")
    assert (read_scores(tmp_path / "out", "val").dense[:, 1] == 0).all()
    bare = build(tmp_path / "bare", {})
    with pytest.raises(InputError, match="descriptions, for the baseline `descriptions`, got 4 labels without one"):
        run("descriptions", Sources(load_labels(bare)), evaluation=Evaluation(), out=tmp_path / "none")
    assert not (tmp_path / "none").exists()
