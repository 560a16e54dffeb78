"""The ways to a MIG table: each prepares, and returns the work, which writes out.parquet and out.safetensors.

Ours starts from the tokenised corpus (every token of every document). The others are given more: the distinct
(document, token) pairs as parquet, and the tokens' document frequencies. After counting they share the NumPy code of
measure and choice and the writer, so that what differs is the counting.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from mig_corpus import Scale, draw
from safetensors.numpy import load_file

TRIPLES = 40_000_000  # (document, label, token) that a join has in one go
TINY = Scale("tiny", 1_500, 2_000, 60, 40, 120, 4.0, k=100)

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # label (ascending), token, documents with both


def ours(folder: str, k: int) -> Callable[[], None]:
    """The rule `relevance` as it runs."""
    return _rule(Path(folder), k, compiled=True)


def polars_twin(folder: str, k: int) -> Callable[[], None]:
    """The same with polars: gather, sort, run lengths."""
    return _rule(Path(folder), k, compiled=False)


def _rule(folder: Path, k: int, *, compiled: bool) -> Callable[[], None]:
    from plant.ground.settings import Relevance
    from plant.relevance.table import write_relevance

    def work(corpus: Path, tokens_kept: int) -> None:
        files = {"parquet": corpus / "out.parquet", "arrays": corpus / "out.safetensors"}
        write_relevance(corpus, corpus / "tokens", "mig", Relevance(k=tokens_kept), **files, compiled=compiled)

    with tempfile.TemporaryDirectory() as small:  # machine code is loaded, or made, before the clock runs
        work(draw(replace(TINY, documents=50), Path(small) / "c"), 5)
    return lambda: work(folder, k)


def joined(folder: str, k: int, way: str, every: int = 1) -> Callable[[], None]:
    """Counts from pairs by another library, of the labels of `part(labels, every)`."""
    from plant.ground.settings import Relevance
    from plant.relevance.choice import Training
    from plant.relevance.contingency import spans
    from plant.relevance.table import load_training, write_choice

    base = Path(folder)
    training: Training = load_training(base, base / "tokens", "mig", Relevance(k=k))
    n_labels = len(training.names)
    sizes = np.bincount(
        np.repeat(np.arange(n_labels), np.diff(training.indptr)),
        weights=np.diff(training.lists.begins)[training.documents], minlength=n_labels,
    )  # fmt: skip
    sizes[~part(n_labels, every)] = 0
    blocks = list(spans(sizes.astype(np.int64), TRIPLES, most=n_labels))
    count = COUNTING[way]

    def work() -> None:
        labels = pl.read_parquet(base / "pairs" / "labels.parquet")
        if every > 1:
            labels = labels.filter(pl.Series(part(n_labels, every)[labels["label"].to_numpy()]))
        pieces = _chosen(training, count(base / "pairs" / "tokens.parquet", labels, blocks, len(training.words)), k)
        files = {"parquet": base / "out.parquet", "arrays": base / "out.safetensors"}
        write_choice(training, pieces, **files, metadata={"measure": "mig"})

    return work


def part(labels: int, every: int) -> np.ndarray:
    """bool[labels]: one label of `every`, over all frequencies (ids go by frequency); all for 1."""
    return np.arange(labels) % every == every // 2


def _chosen(training: Any, blocks: Iterable[Pairs], k: int) -> Iterator[Any]:
    """Measure and top k, label by label."""
    from plant.relevance.selection import LabelCounts, top_tokens

    from plant.relevance.choice import _joined

    n_label = np.diff(training.indptr)
    for label, token, n_joint in blocks:
        begins = np.flatnonzero(np.diff(label, prepend=-1))
        labels, ends = label[begins], [*begins[1:].tolist(), len(label)]
        pieces = [
            top_tokens(counts, training.candidates, measure="mig", k=k)
            for one, a, b in zip(labels, begins, ends, strict=True)
            for counts in (LabelCounts(int(n_label[one]), token[a:b], n_joint[a:b]),)
        ]
        for at in range(0, len(pieces), 250):
            yield _joined(labels[at : at + 250].tolist(), pieces[at : at + 250])


def _by_scipy(tokens_file: Path, labels: pl.DataFrame, blocks: list[tuple[int, int]], words: int) -> Iterator[Pairs]:
    from scipy import sparse

    tokens = pl.read_parquet(tokens_file)
    documents = 1 + max(int(tokens["document"].max()), int(labels["document"].max()))
    begins = np.concatenate(([0], np.cumsum(np.bincount(tokens["document"].to_numpy(), minlength=documents))))
    ones = np.ones(len(tokens), np.int32)
    has_token = sparse.csr_matrix((ones, tokens["token"].to_numpy(), begins), (documents, words))
    places = (labels["label"].to_numpy(), labels["document"].to_numpy())
    of_label = sparse.csr_matrix((np.ones(len(labels), np.int32), places), (blocks[-1][1], documents))
    for first, last in blocks:
        product = of_label[first:last] @ has_token
        label = np.repeat(np.arange(first, last), np.diff(product.indptr))
        yield label, product.indices.astype(np.int64), product.data.astype(np.int64)


def _by_duckdb(tokens_file: Path, labels: pl.DataFrame, blocks: list[tuple[int, int]], words: int) -> Iterator[Pairs]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute(f"CREATE TABLE tokens AS SELECT * FROM read_parquet('{tokens_file}')")
    connection.register("given", labels.to_arrow())
    connection.execute("CREATE TABLE labels AS SELECT * FROM given")
    for first, last in blocks:
        counted = connection.execute(
            f"SELECT label::UBIGINT * {words} + token AS key, count(*)::INTEGER AS n FROM labels JOIN tokens "
            f"USING (document) WHERE label >= {first} AND label < {last} GROUP BY key"
        ).fetchnumpy()
        yield _by_label(np.asarray(counted["key"]), np.asarray(counted["n"]), words)


def _by_polars_join(
    tokens_file: Path, labels: pl.DataFrame, blocks: list[tuple[int, int]], words: int
) -> Iterator[Pairs]:
    tokens = pl.read_parquet(tokens_file)
    for first, last in blocks:
        key = ((pl.col("label") - first) * words + pl.col("token")).alias("key")
        chosen = labels.lazy().filter(pl.col("label").is_between(first, last, closed="left"))
        counted = (
            chosen.join(tokens.lazy(), on="document").select(key).group_by("key").len().collect(engine="streaming")
        )
        found = counted["key"].to_numpy().astype(np.int64) + first * words
        yield _by_label(found, counted["len"].to_numpy(), words)


def _by_label(key: np.ndarray, n: np.ndarray, words: int) -> Pairs:
    order = np.argsort(key)
    key = key[order].astype(np.int64)
    return key // words, key % words, n[order].astype(np.int64)


COUNTING = {"scipy": _by_scipy, "duckdb": _by_duckdb, "polars join": _by_polars_join}


def digest(folder: Path, every: int = 1) -> str:
    """Of count, token, joint documents and relevance of every row of the labels of `part`, in order."""
    arrays = load_file(folder / "out.safetensors")
    sizes = np.diff(arrays["indptr"])
    labels = part(len(sizes), every)
    rows = slice(None) if every == 1 else np.flatnonzero(np.repeat(labels, sizes))
    table = pl.read_parquet(folder / "out.parquet", columns=["token_id", "n_joint", "relevance"])
    for name in ("token_id", "relevance"):
        if not np.array_equal(table[name].to_numpy(), arrays[name]):
            raise AssertionError(f"{folder.name}: {name} of the two files do not agree")
    parts = [sizes[labels], *(table[name].to_numpy()[rows] for name in table.columns)]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


# --- ways that nobody can wait for: a slice is measured ---------------------------------------------------


def dense_slice(folder: str, documents: int, labels: int, part: str) -> Callable[[], float]:
    """The authors' way: dense products of presence matrices, then four cells of every pair."""
    base = Path(folder)
    words = pl.scan_parquet(base / "tokens" / "vocabulary.parquet").select(pl.len()).collect().item()
    has = {"token": np.zeros((documents, words), np.float32), "label": np.zeros((documents, labels), np.float32)}
    for name, presence in has.items():
        pairs = pl.scan_parquet(base / "pairs" / f"{name}s.parquet")
        few = pairs.filter((pl.col("document") < documents) & (pl.col(name) < presence.shape[1])).collect()
        presence[few["document"], few[name]] = 1
    joint, n_label, n_token = has["label"].T @ has["token"], has["label"].sum(0)[:, None], has["token"].sum(0)[None, :]
    total = float(documents)

    def product() -> float:
        return float((has["label"].T @ has["token"]).max())

    def cells() -> float:
        value = np.zeros_like(joint)
        for cell, margin in (
            (joint, n_label * n_token), (n_label - joint, n_label * (total - n_token)),
            (n_token - joint, (total - n_label) * n_token),
            (total - n_label - n_token + joint, (total - n_label) * (total - n_token)),
        ):  # fmt: skip
            value += np.where(cell > 0, cell * np.log(np.maximum(cell, 1) * total / np.maximum(margin, 1)), 0)
        return float(value.max() / total)

    return product if part == "product" else cells


def classifier_slice(folder: str, words: int) -> Callable[[], float]:
    """scikit-learn for one label and some words."""
    from scipy import sparse
    from sklearn.feature_selection import mutual_info_classif

    base = Path(folder)
    tokens = pl.scan_parquet(base / "pairs" / "tokens.parquet").filter(pl.col("token") < words).collect()
    labels = pl.read_parquet(base / "pairs" / "labels.parquet")
    documents = 1 + int(labels["document"].max())
    places = (tokens["document"].to_numpy(), tokens["token"].to_numpy())
    has_token = sparse.csc_matrix((np.ones(len(tokens), np.int8), places), (documents, words))
    carried = np.zeros(documents, np.int8)
    carried[labels.filter(pl.col("label") == 0)["document"]] = 1
    return lambda: float(mutual_info_classif(has_token, carried, discrete_features=True).max())
