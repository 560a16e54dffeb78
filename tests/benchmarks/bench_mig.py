"""The relevance table of MIG (appendix B.1), from the tokenised corpus on disk to parquet and safetensors on disk.

fast: `kernels.relevance`; plain: counts by polars, measure and top k by NumPy. Corpora are drawn with a fixed seed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl
from run import Job
from safetensors.numpy import save_file

from plant.ground.settings import Relevance
from plant.relevance.table import write_relevance


@dataclass(frozen=True)
class Scale:
    """A corpus to draw: Zipf words, Zipf labels, and twenty words of its own for each label."""

    documents: int
    words: int
    length: int  # tokens of a document
    power: float  # of Zipf's law; it makes 603 tokens of a document of MIMIC-III distinct, and 30 of a short title
    labels: int
    labels_a_document: float
    k: int = 1000


TINY = Scale(1_500, 2_000, 60, 1.2427743625876246, 120, 4.0, k=100)
MIMIC3 = Scale(47_719, 50_000, 1_500, 1.1953190493686634, 8_929, 14.7)
LARGE = Scale(100_000, 30_000, 40, 1.2673023279940026, 131_072, 10.0, k=200)
JOBS = {
    "MIG table, MIMIC-III (47,719 documents, 8,929 labels)": Job("table", asdict(MIMIC3), asdict(TINY)),
    "MIG table, short titles, 131,072 labels": Job("table", asdict(LARGE), asdict(TINY)),
}


def table(way: str, **sizes: float) -> Callable[[], str]:
    """The rule `relevance`; its result is a digest of both files."""
    holder = tempfile.TemporaryDirectory()
    folder = draw(Scale(**sizes), Path(holder.name) / "corpus")
    small = draw(Scale(50, 300, 30, 1.3, 40, 2.0), Path(holder.name) / "small")

    def write(corpus: Path, k: int) -> str:
        files = {"parquet": corpus / "out.parquet", "arrays": corpus / "out.safetensors"}
        write_relevance(corpus, corpus / "tokens", "mig", Relevance(k=k), **files, compiled=way == "fast")
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in files.values())).hexdigest()
        if corpus == folder:
            holder.cleanup()
        return digest

    write(small, 5)  # machine code is loaded, or made, before the clock runs
    return lambda: write(folder, sizes["k"])


def draw(scale: Scale, folder: Path) -> Path:
    """Write the corpus."""
    random = np.random.default_rng(0)
    shares = np.cumsum(1 / (np.arange(scale.words) + 2.7) ** scale.power)
    ids = random.permutation(scale.words).astype(np.int32)
    cells = 2**22
    word = ids[np.searchsorted(shares / shares[-1], (np.arange(cells) + 0.5) / cells).clip(max=scale.words - 1)]
    sizes = np.maximum(1, random.gamma(4, scale.length / 4, scale.documents).astype(np.int64))
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    input_ids = word[random.integers(0, cells, offsets[-1], np.int32)]
    indptr, labels = _labels(scale, random)
    own = ids[random.integers(scale.words // 250, scale.words, (scale.labels, 20))]
    most = np.minimum(np.diff(indptr) * 2, sizes // 2)  # two words of its own for each label of a document
    within = np.arange(most.sum()) - np.repeat(np.cumsum(most) - most, most)
    label = labels[np.repeat(indptr[:-1], most) + within // 2]
    input_ids[np.repeat(offsets[:-1], most) + within] = own[label, random.integers(0, 20, len(label))]
    _write(scale, folder, offsets, input_ids, indptr, labels)
    return folder


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
    arrays = {"indptr": indptr, "indices": labels, "counts": counts, "split_sizes": np.array([scale.documents, 0, 0])}
    save_file(arrays, folder / "labels.safetensors")
    names = [f"{label // 100:05d}.{label % 100:02d}" for label in range(scale.labels)]
    pl.DataFrame({"label": names}).write_parquet(folder / "labels.parquet")
    pl.DataFrame({"text": ["not read"]}).write_parquet(folder / "train.parquet")
    texts = {"input_ids": input_ids, "offsets": offsets} | dict.fromkeys(("starts", "ends"), np.zeros(0, np.int32))
    save_file(texts, folder / "tokens" / "tokens.safetensors")
    tokens = [f"token {token:x}" for token in range(scale.words)]
    vocabulary = pl.DataFrame({"token": tokens, "special": [False] * scale.words})
    vocabulary.write_parquet(folder / "tokens" / "vocabulary.parquet")
