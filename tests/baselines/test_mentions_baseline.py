"""Marked mentions against plain loops: where they are found, what they count for, and how they become reasons."""

import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.baselines.mentions import Dictionary, least_stretch
from plant.baselines.target import Sources, run
from plant.corpus.marks import write_mentions
from plant.corpus.reader import load_labels
from plant.evidence.stage3 import evidence
from plant.ground.settings import BaselineSettings, Evaluation, Evidence, OwnTable
from plant.metrics.scores import read_scores

SIZES = {"train": 40, "val": 16, "test": 12}
SIGNS = ["ache of head", "red skin", "cold", "wide of left eye"]
SETTINGS = BaselineSettings(mention_slack=(0, 3))


def documents(seed: int = 0) -> dict[str, list[dict]]:
    """Label l shows as the words of SIGNS[l], sometimes with a word between them; label 4 is marked nowhere."""
    random = np.random.default_rng(seed)
    made: dict[str, list[dict]] = {}
    for split, size in SIZES.items():
        made[split] = []
        for i in range(size):
            labels = np.flatnonzero(random.random(5) < 0.35).tolist() or [0]
            parts = []
            for label in range(4):
                if random.random() < (0.8 if label in labels else 0.1):
                    words = SIGNS[label].split()
                    words.insert(int(random.integers(1, len(words) + 1)), random.choice(["very", "of"]))
                    parts.append(" ".join(words if random.random() < 0.5 else SIGNS[label].split()))
            parts += [f"noise{w} of" for w in random.integers(0, 20, size=5)]
            text = " ".join(random.permutation(parts))
            made[split].append({"id": f"{split}{i}", "text": text, "labels": [f"l{label}" for label in labels]})
    return made


MADE = documents()


@pytest.fixture(scope="module")
def corpus(table_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mentions")
    marked = [
        (row["id"], label, SIGNS[int(label[1])])
        for split, rows in MADE.items() for row in rows for label in row["labels"]
        if label != "l4" and SIGNS[int(label[1])] in row["text"]
    ]  # fmt: skip
    pl.DataFrame(marked, schema=["document", "label", "mention"], orient="row").write_csv(folder / "marked.csv")
    titles = [(f"l{label}", sign) for label, sign in enumerate(SIGNS)]
    pl.DataFrame(titles, schema=["label", "description"], orient="row").write_csv(folder / "titles.csv")
    paths = {"mentions": str(folder / "marked.csv"), "descriptions": str(folder / "titles.csv")}
    corpus = table_corpus(MADE, folder / "corpus", **paths)
    files = {split: str(corpus / f"raw_{split}.parquet") for split in MADE}
    write_mentions(OwnTable(source="table", files=files, **paths), corpus, corpus / "mentions.parquet")
    return corpus


def make(name: str, corpus: Path, out: Path, settings=SETTINGS) -> None:
    sources = Sources(load_labels(corpus), settings, {"mentions": corpus / "mentions.parquet"})
    run(name, sources, evaluation=Evaluation(), out=out)


def words_of(text: str) -> list[str]:
    return re.findall(r"\w\w+", text.lower())


def is_found(mention: str, text: str, slack: int) -> bool:
    """By the definition: some stretch of |m| + slack words holds every word that is asked for."""
    train = [set(words_of(row["text"])) for row in MADE["train"]]
    asked = {word for word in words_of(mention) if sum(word in some for some in train) <= len(train) / 2}
    asked = asked or set(words_of(mention))
    words, length = words_of(text), len(words_of(mention)) + slack
    return any(asked <= set(words[start : start + length]) for start in range(len(words)))


def naive(split: str, slack: int, smoothing: float) -> np.ndarray:
    """Scores of labels 0 to 4 by the formulas of the module's head."""
    train = MADE["train"]
    marked = {
        label: {SIGNS[label]} for label in range(4)
        if any(f"l{label}" in row["labels"] and SIGNS[label] in row["text"] for row in train)
    }  # fmt: skip
    scores = np.zeros((SIZES[split], 5))
    for label in range(5):
        own = marked.get(label, set())
        bare = [row for row in train if not any(is_found(m, row["text"], slack) for m in own)]
        with_label = sum(f"l{label}" in row["labels"] for row in bare)
        scores[:, label] = math.log((with_label + smoothing) / (len(bare) - with_label + smoothing))
        for place, row in enumerate(MADE[split]):
            odds = []
            for m in own:
                if is_found(m, row["text"], slack):
                    hits = [other for other in train if is_found(m, other["text"], slack)]
                    joint = sum(f"l{label}" in other["labels"] for other in hits)
                    odds.append(math.log((joint + smoothing) / (len(hits) - joint + smoothing)))
            if odds:
                scores[place, label] = max(odds)
    return scores


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=5, unique=True).map(sorted), min_size=1, max_size=3))
def test_the_least_stretch_is_that_of_all_choices(positions):
    flat = list(itertools.chain(*positions))
    if len(set(flat)) < len(flat):
        return  # a position holds one word
    assert least_stretch(positions) == min(max(some) - min(some) + 1 for some in itertools.product(*positions))


@pytest.mark.parametrize("slack", [0, 3])
def test_the_scores_are_the_naive_ones(corpus, tmp_path, slack):
    settings = BaselineSettings(mention_slack=(slack,), smoothing=0.7)
    make("mentions", corpus, tmp_path, settings)
    for split in ("val", "test"):
        scores = read_scores(tmp_path, split)
        assert scores.natural_threshold == 0
        np.testing.assert_allclose(scores.dense, naive(split, slack, 0.7), rtol=2e-3, atol=2e-3)


def test_the_slack_is_chosen_on_validation_and_mentions_of_test_documents_are_not_read(corpus, tmp_path):
    table = pl.read_parquet(corpus / "mentions.parquet")
    assert set(table["document_id"].str.slice(0, 5)) == {"train"}
    make("mentions", corpus, tmp_path, SETTINGS)
    record = json.loads((tmp_path / "choices.json").read_text())
    tried = {one["slack"]: one["ndcg@5"] for one in record["slack_tried"]}
    assert set(tried) == {0, 3}
    assert record["slack"] == max(tried, key=tried.get)
    assert record["mentions"] == 4
    assert tried[0] != tried[3]


def test_common_words_are_not_asked_for_unless_nothing_else_is_left():
    texts = ["of the left eye"] * 2 + ["of the left"] * 3 + ["of the"] * 4 + ["of"]  # "left" is in half of them
    dictionary = Dictionary.of([("the", "eye"), ("of", "the"), ("the", "left", "eye")], texts)
    assert dictionary.required == (("eye",), ("the", "of"), ("eye", "left"))
    assert dictionary.matches("an eye") == {0: 0}
    assert dictionary.matches("the end, much of it") == {1: 2}


def test_reasons_name_the_phrase_that_counts_and_sum_to_the_score(corpus, read_reasons, tmp_path):
    make("mentions", corpus, tmp_path / "m", SETTINGS)
    make("descriptions", corpus, tmp_path / "d")
    channels = {"descriptions": tmp_path / "d", "mentions": tmp_path / "m"}
    recipe = Evidence(channels=("descriptions", "mentions", "prior"), folds=4)
    out = tmp_path / "out"
    evidence(channels, corpus=corpus, settings=recipe, evaluation=Evaluation(), out=out, seed=0, shown=12)
    told = read_reasons(out)
    weights = json.loads((out / "choices.json").read_text())["weights"]
    slack = json.loads((tmp_path / "m/choices.json").read_text())["slack"]
    texts = {row["id"]: row["text"] for row in MADE["test"]}
    listed = told.filter(part="word")
    assert set(listed["channel"]) == {"descriptions", "mentions"}
    for row in listed.filter(channel="mentions").iter_rows(named=True):
        assert row["feature"] == SIGNS[int(row["label"][1])]
        assert is_found(row["feature"], texts[row["document_id"]], slack)
    found = listed.filter(channel="descriptions")
    assert found["contribution"].max() == pytest.approx(weights["descriptions"], rel=1e-6)  # a whole description
    rest = told.filter(part="other words")["contribution"].abs().max()
    assert rest <= 0.01 * max(weights["descriptions"], weights["mentions"])  # what rounding the stored score leaves
