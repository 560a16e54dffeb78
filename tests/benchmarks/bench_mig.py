"""The MIG table, from files to files, beside the ways that one would take otherwise; all must give the same rows.

Ours starts from the tokenised corpus (every token of every document). The others are given more: the distinct
(document, token) pairs as parquet, and the tokens' document frequencies. After counting they share the NumPy code of
measure and choice and the writer, so that what differs is the counting.

duckdb is imported if it is there (`pip install --target FOLDER duckdb` and FOLDER on PYTHONPATH): the project does not
need it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from common import Measured, Row, fresh, row
from safetensors.numpy import load_file, save_file

TRIPLES = 40_000_000  # (document, label, token) that a join has in one go


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


MIMIC3 = Scale("MIMIC-III", 47_700, 50_000, 1500, 599, 8_929, 14.7)
MIMIC4 = Scale("MIMIC-IV", 122_000, 50_000, 1500, 599, 7_942, 15.65)
WIKI10 = Scale("WIKI10-31K", 14_146, 101_938, 2000, 673, 30_938, 18.64)
AMAZON = Scale("AmazonTitles-1.3M, 20,000 labels", 2_248_619, 128_000, 9, 8, 20_000, 0.34)
TINY = Scale("tiny", 1_500, 2_000, 60, 40, 120, 4.0, k=100)


def rows(quick: bool) -> list[Row]:
    """Ours beside the others at four scales, and how ours grows."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        if quick:
            return [
                *_side_by_side(TINY, base, ALL),
                *_dense(TINY, base),
                *_classifier(TINY, base),
                *_growth(TINY, base),
            ]
        found = [*_side_by_side(MIMIC3, base, ALL), *_dense(MIMIC3, base), *_classifier(MIMIC3, base)]
        found += _side_by_side(MIMIC4, base, ("ours", "scipy SpGEMM + numpy", "duckdb"))
        found += _side_by_side(WIKI10, base, ("ours", "polars twin", "scipy SpGEMM + numpy", "duckdb"))
        return [*found, *_side_by_side(AMAZON, base, ("ours", "polars twin", "scipy SpGEMM + numpy"))]


# --- a corpus by the project's file contracts ----------------------------------------------------------


def draw(scale: Scale, folder: Path, seed: int = 0) -> Path:
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
    shares = 1 / (np.arange(scale.labels) + 10.0)
    n = random.poisson(scale.labels_a_document, scale.documents)
    document = np.repeat(np.arange(scale.documents), n)
    label = np.searchsorted(np.cumsum(shares / shares.sum()), random.random(len(document))).clip(max=scale.labels - 1)
    keys = np.unique(document * scale.labels + label)
    indptr = np.searchsorted(keys // scale.labels, np.arange(scale.documents + 1))
    return indptr, (keys % scale.labels).astype(np.int32)


def _write(
    scale: Scale, folder: Path, offsets: np.ndarray, input_ids: np.ndarray, indptr: np.ndarray, labels: np.ndarray
) -> None:
    from plant.relevance.kernel import distinct

    (folder / "tokens").mkdir(parents=True)
    (folder / "pairs").mkdir()
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
    values, begins, _ = distinct(input_ids, offsets, np.ones(scale.words, bool))
    for name, at, of in (("token", begins, values), ("label", indptr, labels)):
        document = np.repeat(np.arange(scale.documents, dtype=np.uint32), np.diff(at))
        pl.DataFrame({"document": document, name: of.astype(np.uint32)}).write_parquet(
            folder / "pairs" / f"{name}s.parquet"
        )


# --- the ways: each prepares, and returns the work, which writes out.parquet and out.safetensors ---------


def ours(folder: str, k: int) -> Callable[[], None]:
    """The rule `relevance` as it runs."""
    return _rule(Path(folder), k, compiled=True)


def polars_twin(folder: str, k: int) -> Callable[[], None]:
    """The same with polars: gather, sort, run lengths."""
    return _rule(Path(folder), k, compiled=False)


def _rule(folder: Path, k: int, *, compiled: bool) -> Callable[[], None]:
    from plant.relevance.table import write_relevance
    from plant.settings import Relevance

    def work(corpus: Path, tokens_kept: int) -> None:
        files = {"parquet": corpus / "out.parquet", "arrays": corpus / "out.safetensors"}
        write_relevance(corpus, corpus / "tokens", "mig", Relevance(k=tokens_kept), **files, compiled=compiled)

    with tempfile.TemporaryDirectory() as small:  # machine code is loaded, or made, before the clock runs
        work(draw(replace(TINY, documents=50), Path(small) / "c"), 5)
    return lambda: work(folder, k)


def joined(folder: str, k: int, way: str) -> Callable[[], None]:
    """Counts from pairs by another library; measure, choice and writing as the polars twin has them."""
    from plant.relevance.choice import Training
    from plant.relevance.contingency import spans
    from plant.relevance.table import load_training, write_choice
    from plant.settings import Relevance

    base = Path(folder)
    training: Training = load_training(base, base / "tokens", "mig", Relevance(k=k))
    sizes = np.bincount(
        np.repeat(np.arange(len(training.names)), np.diff(training.indptr)),
        weights=np.diff(training.lists.begins)[training.documents], minlength=len(training.names),
    )  # fmt: skip
    blocks = list(spans(sizes.astype(np.int64), TRIPLES, most=len(sizes)))
    count = COUNTING[way]

    def work() -> None:
        pieces = _chosen(training, count(base / "pairs", blocks, len(training.words)), k)
        files = {"parquet": base / "out.parquet", "arrays": base / "out.safetensors"}
        write_choice(training, pieces, **files, metadata={"measure": "mig"})

    return work


Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # label (ascending), token, documents with both


def _chosen(training: Any, blocks: Iterable[Pairs], k: int) -> Iterator[Any]:
    """Measure and top k, label by label."""
    from plant.relevance.choice import _joined
    from plant.relevance.selection import LabelCounts, top_tokens

    n_label = np.diff(training.indptr)
    for label, token, n_joint in blocks:
        labels, begins = np.unique(label, return_index=True)
        ends = [*begins[1:].tolist(), len(label)]
        pieces = [
            top_tokens(counts, training.candidates, measure="mig", k=k)
            for one, a, b in zip(labels, begins, ends, strict=True)
            for counts in (LabelCounts(int(n_label[one]), token[a:b], n_joint[a:b]),)
        ]
        for at in range(0, len(pieces), 250):
            yield _joined(labels[at : at + 250].tolist(), pieces[at : at + 250])


def _by_scipy(pairs: Path, blocks: list[tuple[int, int]], words: int) -> Iterator[Pairs]:
    from scipy import sparse

    tokens, labels = pl.read_parquet(pairs / "tokens.parquet"), pl.read_parquet(pairs / "labels.parquet")
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


def _by_duckdb(pairs: Path, blocks: list[tuple[int, int]], words: int) -> Iterator[Pairs]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name in ("tokens", "labels"):
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{pairs / name}.parquet')")
    for first, last in blocks:
        counted = connection.execute(
            f"SELECT label::UBIGINT * {words} + token AS key, count(*)::INTEGER AS n FROM labels JOIN tokens "
            f"USING (document) WHERE label >= {first} AND label < {last} GROUP BY key"
        ).fetchnumpy()
        yield _by_label(np.asarray(counted["key"]), np.asarray(counted["n"]), words)


def _by_polars_join(pairs: Path, blocks: list[tuple[int, int]], words: int) -> Iterator[Pairs]:
    tokens, labels = pl.read_parquet(pairs / "tokens.parquet"), pl.read_parquet(pairs / "labels.parquet")
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
WAYS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "ours": (ours, {}),
    "polars twin": (polars_twin, {}),
    "scipy SpGEMM + numpy": (joined, {"way": "scipy"}),
    "polars join + group_by": (joined, {"way": "polars join"}),
    "duckdb": (joined, {"way": "duckdb"}),
}
ALL = tuple(WAYS)


def _side_by_side(scale: Scale, base: Path, ways: Iterable[str]) -> Iterator[Row]:
    folder = draw(scale, base / scale.name.split(",")[0])
    digests = {}
    for way in ways:
        if way == "duckdb" and importlib.util.find_spec("duckdb") is None:
            yield row("MIG table", way, scale.name, note="not measured: duckdb is not installed")
            continue
        job, more = WAYS[way]
        repeats = 3 if way == "ours" else 1
        measured = fresh(job, repeats=repeats, folder=str(folder), k=scale.k, **more)
        digests[way] = _digest(folder)
        if digests[way] != digests["ours"]:
            raise AssertionError(f"{scale.name}: {way} gives other rows than ours")
        yield row("MIG table", way, scale.name, measured, ratio_to="" if way == "ours" else "ours")


def _digest(folder: Path) -> str:
    """Of label, token, count, relevance and rank of every row, in order."""
    arrays = load_file(folder / "out.safetensors")
    counts = pl.read_parquet(folder / "out.parquet", columns=["token_id", "n_joint", "relevance"])
    if counts["token_id"].to_numpy().tolist()[:1000] != arrays["token_id"][:1000].tolist():
        raise AssertionError("the two files do not agree")
    parts = [arrays["indptr"], *(counts[name].to_numpy() for name in counts.columns)]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


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


def _dense(scale: Scale, base: Path) -> Iterator[Row]:
    """Products grow with documents x labels x words, cells with labels x words."""
    slices = {"documents": min(scale.documents, 1000), "labels": min(scale.labels, 400)}
    product, cells = (
        fresh(dense_slice, folder=str(base / scale.name), part=part, **slices).cpu_seconds
        for part in ("product", "cells")
    )
    seconds = (product * scale.documents / slices["documents"] + cells) * scale.labels / slices["labels"]
    note = f"from {slices['documents']:,} documents and {slices['labels']} labels"
    yield _extrapolated("dense products (the authors' way)", scale, seconds, note)


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


def _classifier(scale: Scale, base: Path) -> Iterator[Row]:
    words = 40
    measured = fresh(classifier_slice, folder=str(base / scale.name), words=words)
    seconds = measured.cpu_seconds * scale.words / words * scale.labels
    yield _extrapolated("scikit-learn mutual_info_classif", scale, seconds, f"from {words} words of one label")


def _extrapolated(way: str, scale: Scale, seconds: float, note: str) -> Row:
    empty = {"wall_seconds": None, "peak_mb": None}
    more: dict[str, Any] = {"cpu_seconds": seconds, **empty, "extrapolated": True}
    return row("MIG table", way, scale.name, ratio_to="ours", note=note, **more)


# --- growth ---------------------------------------------------------------------------------------------------


def _growth(scale: Scale, base: Path) -> Iterator[Row]:
    for part in (8, 4, 2, 1):
        fewer = replace(scale, name=f"documents {part}", documents=scale.documents // part)
        yield row("MIG table by documents", "ours", fewer.documents, _grown(fewer, base))
    for part in (8, 4, 2, 1):
        carried = scale.labels_a_document / part
        fewer = replace(scale, name=f"labels {part}", labels=scale.labels // part, labels_a_document=carried)
        yield row("MIG table by labels", "ours", fewer.labels, _grown(fewer, base))


def _grown(scale: Scale, base: Path) -> Measured:
    folder = draw(scale, base / scale.name)
    return fresh(ours, repeats=3, folder=str(folder), k=scale.k)
