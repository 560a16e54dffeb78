"""Corpora of the sizes that the paper has, drawn with fixed seeds, by the project's file contracts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from safetensors.numpy import save_file


@dataclass(frozen=True)
class Scale:
    """A corpus to draw: Zipf words, Zipf labels, and twenty words of its own for each label."""

    name: str
    documents: int
    words: int
    length: int  # tokens a document, of which `distinct` are distinct
    distinct: int
    labels: int
    labels_a_document: float
    k: int = 1000

    @property
    def triples(self) -> float:
        """(document, label, token) with the token in the document and the label on it, about."""
        return self.documents * self.labels_a_document * self.distinct


def draw(scale: Scale, folder: Path, *, seed: int = 0, pairs: bool = True) -> Path:
    """Write the corpus, and what the others start from: tokens.parquet and labels.parquet of pairs in `pairs/`."""
    random = np.random.default_rng(seed)
    shares = _zipf(scale.words, scale.length, scale.distinct)
    ids = random.permutation(scale.words).astype(np.int32)
    cells = 2**22
    word = ids[np.searchsorted(np.cumsum(shares), (np.arange(cells) + 0.5) / cells).clip(max=scale.words - 1)]
    sizes = np.maximum(1, random.gamma(4, scale.length / 4, scale.documents).astype(np.int64))
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    input_ids = np.concatenate(
        [word[random.integers(0, cells, min(cells, offsets[-1] - at))] for at in range(0, offsets[-1], cells)]
    )
    indptr, labels = _labels(scale, random)
    own = ids[random.integers(scale.words // 250, scale.words, (scale.labels, 20))]
    most = np.minimum(np.diff(indptr) * 2, sizes // 2)  # two words of its own for each label of a document
    within = np.arange(most.sum()) - np.repeat(np.cumsum(most) - most, most)
    label = labels[np.repeat(indptr[:-1], most) + within // 2]
    input_ids[np.repeat(offsets[:-1], most) + within] = own[label, random.integers(0, 20, len(label))]
    _write(scale, folder, offsets, input_ids, indptr, labels)
    if pairs:
        _write_pairs(scale, folder, offsets, input_ids, indptr, labels)
    return folder


def _zipf(words: int, length: int, distinct: int) -> np.ndarray:
    """Shares 1 / (rank + 2.7)^a, where a makes `distinct` of `length` draws distinct on average."""
    low, high = 0.0, 3.0
    for _ in range(40):
        power = (low + high) / 2
        shares = 1 / (np.arange(words) + 2.7) ** power
        shares /= shares.sum()
        seen = (1 - np.exp(length * np.log1p(-shares))).sum()
        low, high = (power, high) if seen > distinct else (low, power)
    return shares


def _labels(scale: Scale, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """CSR of the labels of each document, about as many as asked for."""
    n = random.poisson(scale.labels_a_document, scale.documents)
    document = np.repeat(np.arange(scale.documents), n)
    label = 10 * ((scale.labels + 10) / 10) ** random.random(len(document)) - 10  # shares 1 / (label + 10), about
    label = label.astype(np.int64).clip(max=scale.labels - 1)
    keys = np.sort(document * scale.labels + label)
    keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique takes ten times as long
    indptr = np.searchsorted(keys // scale.labels, np.arange(scale.documents + 1))
    return indptr, (keys % scale.labels).astype(np.int32)


def _write(
    scale: Scale, folder: Path, offsets: np.ndarray, input_ids: np.ndarray, indptr: np.ndarray, labels: np.ndarray
) -> None:
    (folder / "tokens").mkdir(parents=True)
    counts = np.zeros((3, scale.labels), np.int64)
    counts[0] = np.bincount(labels, minlength=scale.labels)
    split_sizes = np.array([scale.documents, 0, 0])
    arrays = {"indptr": indptr, "indices": labels, "split_sizes": split_sizes, "counts": counts}
    save_file(arrays, folder / "labels.safetensors")
    names = [f"{label // 100:05d}.{label % 100:02d}" for label in range(scale.labels)]
    pl.DataFrame({"label": names}).write_parquet(folder / "labels.parquet")
    pl.DataFrame({"text": ["not read"]}).write_parquet(folder / "train.parquet")
    unused = np.zeros(0, np.int32)
    texts = {"input_ids": input_ids, "offsets": offsets, "starts": unused, "ends": unused}
    save_file(texts, folder / "tokens" / "tokens.safetensors")
    vocabulary = {"token": [f"token {token:x}" for token in range(scale.words)]}
    pl.DataFrame(vocabulary).with_columns(special=pl.lit(value=False)).write_parquet(
        folder / "tokens" / "vocabulary.parquet"
    )


def _write_pairs(
    scale: Scale, folder: Path, offsets: np.ndarray, input_ids: np.ndarray, indptr: np.ndarray, labels: np.ndarray
) -> None:
    from plant.relevance.kernel import distinct

    (folder / "pairs").mkdir()
    values, begins, _ = distinct(input_ids, offsets, np.ones(scale.words, bool))
    for name, at, of in (("token", begins, values), ("label", indptr, labels)):
        document = np.repeat(np.arange(scale.documents, dtype=np.uint32), np.diff(at))
        pl.DataFrame({"document": document, name: of.astype(np.uint32)}).write_parquet(
            folder / "pairs" / f"{name}s.parquet"
        )
