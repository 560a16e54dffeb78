"""Smaller training splits: nested, deterministic, and with every label in proportion."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.corpus.draws import cut, stratified
from plant.ground import seeds

CORPORA = st.lists(
    st.lists(st.sampled_from("abcdef"), unique=True, max_size=4), min_size=1, max_size=24
)  # label lists, also empty ones


def frame_of(labels: list[list[str]], others: int = 0) -> pl.DataFrame:
    """Training documents with these labels; validation and test documents after them."""
    ids = [f"d{i:05d}" for i in range(len(labels) + others)]
    split = ["train"] * len(labels) + ["val", "test"] * (others // 2) + ["test"] * (others % 2)
    rows = {"document_id": ids, "labels": [*labels, *[["a"]] * others], "split": split}
    return pl.DataFrame(rows, schema_overrides={"labels": pl.List(pl.String)})


def zipf_corpus(documents: int, labels: int, mean: float, seed: int = 0) -> list[list[str]]:
    random = np.random.default_rng(seed)
    weights = (np.arange(labels) + 5.0) ** -1.1
    lengths = 1 + random.negative_binomial(3, 3 / (3 + mean), documents)
    drawn = random.choice(labels, size=lengths.sum(), p=weights / weights.sum())
    edges = np.concatenate([[0], np.cumsum(lengths)])
    return [sorted({f"l{j:05d}" for j in drawn[a:b]}) for a, b in pairwise(edges)]


@settings(deadline=None)
@given(CORPORA, st.integers(0, 3), st.sampled_from(["random", "stratified"]), st.data())
def test_a_smaller_training_split_is_part_of_a_larger_one(labels, seed, draw, data):
    frame = frame_of(labels, others=5)
    size = data.draw(st.integers(1, len(labels)))
    larger = data.draw(st.integers(size, len(labels)))
    small, large = (cut(frame, n, draw=draw, seed=seed) for n in (size, larger))
    assert (small["split"] == "train").sum() == size
    assert (large["split"] == "train").sum() == larger
    assert set(small["document_id"]) <= set(large["document_id"])
    assert small.filter(pl.col("split") != "train").equals(frame.filter(pl.col("split") != "train"))
    assert small["document_id"].is_sorted()  # the order of the frame


@settings(deadline=None)
@given(CORPORA, st.integers(0, 3), st.randoms(use_true_random=False), st.data())
def test_the_order_of_the_documents_plays_no_part(labels, seed, random, data):
    size = data.draw(st.integers(0, len(labels)))
    order = random.sample(range(len(labels)), len(labels))
    ids = pl.Series([f"d{i:02d}" for i in range(len(labels))])
    column = pl.Series(labels, dtype=pl.List(pl.String))
    drawn = ids[stratified(ids, column, size, seed=seed)]
    shuffled = ids[order][stratified(ids[order], column[order], size, seed=seed)]
    assert sorted(drawn) == sorted(shuffled)
    assert len(set(drawn)) == size


def test_the_random_draw_is_the_start_of_one_permutation():
    frame = frame_of([["a"]] * 30, others=4)
    order = seeds.generator(3, "corpus", "train_size").permutation(30)
    kept = cut(frame, 12, draw="random", seed=3).filter(pl.col("split") == "train")["document_id"]
    assert set(kept) == {f"d{i:05d}" for i in order[:12]}


@pytest.mark.parametrize("documents", [60, 61])
def test_of_each_pair_the_one_goes_left_that_keeps_the_sum_of_squares_small(documents):
    """The rule word for word, in fractions: sum over all labels of (excess on the left)^2 / documents that have it."""
    labels = zipf_corpus(documents, 12, 3, seed=4)
    ids = pl.Series([f"d{i:02d}" for i in range(documents)])
    half = set(stratified(ids, pl.Series(labels), (documents + 1) // 2, seed=7).tolist())
    order = seeds.generator(7, "corpus", "train_size", "halves").permutation(np.arange(documents)).tolist()
    count = Counter(label for own in labels for label in own)
    excess: Counter[str] = Counter()

    def cost(left: int, right: int) -> Fraction:
        now = {j: excess[j] + (j in labels[left]) - (j in labels[right]) for j in count}
        return sum((Fraction(n * n, count[j]) for j, n in now.items()), Fraction(0))

    decided = 0
    for first, second in zip(order[0 : documents - 1 : 2], order[1::2], strict=True):
        left, right = (first, second) if first in half else (second, first)
        assert right not in half
        assert left in half
        assert cost(left, right) <= cost(right, left)  # if they are equal, either may go left
        decided += cost(left, right) != cost(right, left)
        excess.update(labels[left])
        excess.subtract(labels[right])
    assert decided > 20
    assert documents % 2 == 0 or order[-1] in half


@pytest.mark.parametrize("size", [40, 150, 600])
def test_labels_are_nearer_to_their_proportion_than_by_chance(size):
    labels = zipf_corpus(3000, 400, 8)
    frame = frame_of(labels)
    names = sorted({label for own in labels for label in own})
    position = {name: i for i, name in enumerate(names)}

    def counts(rows: list[list[str]]) -> np.ndarray:
        return np.bincount([position[label] for own in rows for label in own], minlength=len(names))

    wanted = counts(labels) * size / 3000
    frequent = wanted >= 1

    def unevenness(draw: str, seed: int) -> float:
        kept = cut(frame, size, draw=draw, seed=seed)  # type: ignore[arg-type]
        return float(np.abs(counts(kept["labels"].to_list()) - wanted)[frequent].mean())

    ours = [unevenness("stratified", seed) for seed in range(3)]
    assert len(set(ours)) == 3  # another seed gives another draw
    chance = [unevenness("random", seed) for seed in range(20)]
    assert max(ours) < min(chance)
