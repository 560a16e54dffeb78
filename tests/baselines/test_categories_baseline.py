"""Log-odds of a label's category against plain counting."""

import json
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import mutual_info_score

from plant.baselines.target import Sources
from plant.baselines.target import run as run_baseline
from plant.corpus.reader import load_labels
from plant.evidence.stage3 import evidence
from plant.ground.settings import BaselineSettings, Evaluation, Evidence
from plant.metrics.scores import read_scores

SIZES = {"train": 60, "val": 30, "test": 20}
CODES = ("a1.0", "a1.1", "b2", "c3.5", "a1.9")  # the last one has no training document
SETTINGS = BaselineSettings(svm_c=(1.0,), min_documents=1, log_odds_k=(1, 3), reasons=10_000)


def documents() -> dict[str, list[dict]]:
    """Each category has a word that most of its documents hold, each label another; accents and inflections."""
    random = np.random.default_rng(1)
    made: dict[str, list[dict]] = {}
    for split, size in SIZES.items():
        made[split] = []
        for i in range(size):
            codes = [code for code in CODES[:4] if random.random() < 0.35] or ["b2"]
            words = [f"noise{w}" for w in random.integers(0, 15, size=5)]
            for code in codes:
                if random.random() < 0.8:
                    words.append(f"cat{code.split('.')[0]}")
                if random.random() < 0.5:
                    words.append(f"síg{code.replace('.', 'x')}" + random.choice(["", "s", "al"]))
            codes += ["a1.9"] if split != "train" and i == 1 else []
            made[split].append({"id": f"{split}{i}", "text": " ".join(random.permutation(words)), "labels": codes})
    return made


MADE = documents()


@pytest.fixture(scope="module")
def corpus(table_corpus, tmp_path_factory) -> Path:
    return table_corpus(MADE, tmp_path_factory.mktemp("categories") / "corpus")


def run(corpus: Path, out: Path, name="category_log_odds", **settings) -> None:
    chosen = SETTINGS.model_copy(update=settings)
    sources = Sources(load_labels(corpus), chosen, {"tokens": corpus / "words"}, category_ends=".")
    run_baseline(name, sources, evaluation=Evaluation(), out=out)


def naive(k: int, split: str) -> dict[str, np.ndarray]:
    """Category -> scores of the documents of a split, from counts of one word after the other."""
    train = [(set(re.findall(r"\w+", row["text"])), {c.split(".")[0] for c in row["labels"]}) for row in MADE["train"]]
    words = sorted(set().union(*(some for some, _ in train)))
    held = [set(re.findall(r"\w+", row["text"])) for row in MADE[split]]
    found = {}
    for category in ("a1", "b2", "c3"):
        has = [category in carried for _, carried in train]
        n, total, s = sum(has), len(train), 0.5
        information = {word: mutual_info_score([word in some for some, _ in train], has) for word in words}
        best = sorted(words, key=lambda word: -information[word])[:k]
        scores = np.full(len(held), math.log((n + s) / (total - n + s)))
        for word in best:
            joint = sum(word in some and flag for (some, _), flag in zip(train, has, strict=True))
            everywhere = sum(word in some for some, _ in train)
            p, q = (joint + s) / (n + 2 * s), (everywhere - joint + s) / (total - n + 2 * s)
            scores += [math.log(p / q) if word in some else math.log((1 - p) / (1 - q)) for some in held]
        found[category] = scores
    return found


@pytest.mark.parametrize("k", [1, 3])
def test_the_scores_are_those_of_counting_the_categorys_documents(corpus, tmp_path, k):
    run(corpus, tmp_path, log_odds_k=(k,))
    for split in ("val", "test"):
        scores, expected = read_scores(tmp_path, split), naive(k, split)
        for place, name in enumerate(scores.label_names):
            own = scores.dense[:, place]
            if name == "a1.9":
                assert np.isneginf(own).all()
            else:
                np.testing.assert_allclose(own, expected[name.split(".")[0]], rtol=2e-3, atol=2e-3)
    record = json.loads((tmp_path / "choices.json").read_text())
    assert (record["k"], record["categories"]) == (k, 3)


def test_test_documents_have_no_part_in_it(corpus, table_corpus, tmp_path):
    run(corpus, tmp_path / "a")
    changed = [row | {"labels": ["b2"]} for row in MADE["test"]]
    run(table_corpus({**MADE, "test": changed}, tmp_path / "corpus"), tmp_path / "b")
    for split in ("val", "test"):
        before, after = (read_scores(tmp_path / name, split) for name in "ab")
        columns = [after.label_names.index(name) for name in before.label_names]
        np.testing.assert_array_equal(before.dense, after.dense[:, columns])


def test_reasons_of_both_channels_sum_to_the_score_and_leave_nothing_over(corpus, read_reasons, tmp_path):
    """All weights are kept here, so the words that are listed are all of each score."""
    run(corpus, tmp_path / "categories", log_odds_k=(3,))
    run(corpus, tmp_path / "characters", "tfidf_characters")
    grams = pl.read_parquet(tmp_path / "characters/features.parquet")["feature"]
    assert grams.str.contains("sig").any()  # the accent is gone
    assert not grams.str.contains("íg").any()
    channels = {name: tmp_path / name for name in ("characters", "categories")}
    recipe = Evidence(channels=("characters", "categories", "prior"), folds=3)
    out = tmp_path / "out"
    evidence(
        channels, corpus=corpus, settings=recipe, evaluation=Evaluation(), out=out, seed=0, shown=8,
        tokens=corpus / "words",
    )  # fmt: skip
    told = read_reasons(out)
    weights = json.loads((out / "choices.json").read_text())["weights"]
    assert weights["characters"] > 0.01
    assert weights["categories"] > 0.01
    assert told.filter(part="other words")["contribution"].abs().max() < 5e-3
    here = told.filter(channel="categories", part="word")
    texts = {row["id"]: row["text"].split() for row in MADE["test"]}
    assert len(here)
    for row in here.iter_rows(named=True):
        assert row["feature"] in texts[row["document_id"]]
