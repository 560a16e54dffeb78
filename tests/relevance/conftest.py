"""Small corpora by the file contracts, and the relevance of every (label, token) pair by naive loops."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file


@dataclass(frozen=True)
class Toy:
    """Documents (train, then val, then test) as token ids and label ids."""

    documents: list[list[int]]
    labels: list[list[int]]
    split_sizes: tuple[int, int, int]
    n_tokens: int = 30
    n_labels: int = 6
    special: tuple[int, ...] = ()

    @property
    def train(self) -> list[tuple[list[int], list[int]]]:
        return list(zip(self.documents, self.labels, strict=True))[: self.split_sizes[0]]

    def write(self, folder: Path) -> tuple[Path, Path]:
        """(corpus folder, tokens folder)."""
        tokens = folder / "tokens"
        tokens.mkdir(parents=True)
        edges = np.cumsum([0, *self.split_sizes])
        names = [f"label {label}" for label in range(self.n_labels)]
        for split, first, last in zip(("train", "val", "test"), edges, edges[1:], strict=False):
            groups = {"group_id": [f"d{i}" for i in range(first, last)]}
            pl.DataFrame(groups, schema={"group_id": pl.String}).write_parquet(folder / f"{split}.parquet")
        counts = np.zeros((3, self.n_labels), np.int64)
        for i, row in enumerate(self.labels):
            counts[np.searchsorted(edges, i, side="right") - 1, row] += 1
        pl.DataFrame({"label": names, "n_train": counts[0]}).write_parquet(folder / "labels.parquet")
        arrays = {
            "indptr": np.cumsum([0, *map(len, self.labels)]),
            "indices": np.array([label for row in self.labels for label in row], np.int32),
            "split_sizes": np.array(self.split_sizes, np.int64),
            "counts": counts,
        }
        save_file(arrays, folder / "labels.safetensors")
        ids = np.array([token for document in self.documents for token in document], np.int32)
        offsets = np.cumsum([0, *map(len, self.documents)])
        save_file({"input_ids": ids, "offsets": offsets, "starts": ids, "ends": ids}, tokens / "tokens.safetensors")
        words, special = zip(*((f"t{token}", token in self.special) for token in range(self.n_tokens)), strict=True)
        pl.DataFrame({"token": words, "special": special}).write_parquet(tokens / "vocabulary.parquet")
        return folder, tokens


@pytest.fixture(scope="session")
def toy_corpus() -> Toy:
    """40 documents; tokens 0..24 occur in training, 25..29 only in val and test; label 4 only in test, 5 nowhere."""
    random = np.random.default_rng(0)
    documents, labels = [], []
    for i in range(40):
        row = np.flatnonzero(random.random(4) < (0.5, 0.3, 0.1, 0.05)).tolist() or [0]
        frequencies = 1 / np.arange(1, 26)
        words = random.choice(25, size=random.integers(0, 12), p=frequencies / frequencies.sum()).tolist()
        words += [20 + label for label in row if random.random() < 0.8]
        if i >= 30:
            words.append(25 + i % 5)
        documents.append(words)
        labels.append(sorted([*row, 4]) if i >= 35 else row)
    return Toy(documents, labels, (30, 5, 5))


def naive_value(measure: str, n_joint: int, n_token: int, n_label: int, total: int, share: float) -> float:
    """The measure of one pair from probabilities and logarithms, one cell at a time."""
    if measure == "term_frequency":
        return share
    if measure == "pmi":
        return max(0.0, math.log(total * n_joint / (n_label * n_token))) if n_joint else 0.0
    if measure == "smoothed_mig":
        return naive_smoothed(n_joint, n_token, n_label, total)
    value = 0.0
    for x, y, n in (
        (1, 1, n_joint),
        (0, 1, n_label - n_joint),
        (1, 0, n_token - n_joint),
        (0, 0, total - n_label - n_token + n_joint),
    ):
        p_x = (n_token if x else total - n_token) / total
        p_y = (n_label if y else total - n_label) / total
        expected = p_x * p_y
        if measure == "mig" and n:
            value += n / total * math.log(n / total / expected)
        if measure == "chi2" and expected:
            value += total * (n / total - expected) ** 2 / expected
    return value if value > 1e-13 else 0.0


def naive_smoothed(n_joint: int, n_token: int, n_label: int, total: int) -> float:
    """Mutual information of the four cells with half a document more in each; 0 where the association turns."""
    cells = np.array([[n_joint, n_label - n_joint], [n_token - n_joint, total - n_label - n_token + n_joint]]) + 0.5
    if np.sign(n_joint / total - n_token * n_label / total**2) * np.linalg.det(cells) <= 1e-12:
        return 0.0
    p = cells / cells.sum()
    independent = p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
    value = float((p * np.log(p / independent)).sum())
    return value if value > 1e-13 else 0.0


def naive_table(
    train: list[tuple[list[int], list[int]]], tokens: list[int], label: int, *, measure: str, k: int, sign: str
) -> list[tuple[int, int, float]]:
    """(token, n_joint, relevance) of the k best of `tokens`, by scoring every one of them."""
    total = len(train)
    with_label = [words for words, row in train if label in row]
    everything = sum(len(words) for words in with_label)
    rows = []
    for token in tokens:
        n_token = sum(token in words for words, _ in train)
        n_joint = sum(token in words for words in with_label)
        if sign == "positive" and not n_joint * total > len(with_label) * n_token:
            continue
        share = sum(words.count(token) for words in with_label) / everything if everything else 0.0
        rows.append((token, n_joint, naive_value(measure, n_joint, n_token, len(with_label), total, share)))
    largest = max((value for *_, value in rows), default=0.0)
    scaled = [(t, n, round(value / largest * 2**24) / 2**24 if largest else 0.0) for t, n, value in rows]
    return sorted(scaled, key=lambda row: (-row[2], row[0]))[:k]


@pytest.fixture(scope="session")
def oracle():
    return naive_table


@pytest.fixture(scope="session")
def naive():
    return naive_value
