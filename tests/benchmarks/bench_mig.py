"""The MIG table, from files to files, beside the ways that one would take otherwise; all must give the same rows.

The ways are in `mig_ways.py`, the corpora (fixed seeds, sizes of the paper's data) in `mig_corpus.py`. A way that takes
minutes runs for every 4th and every 16th label; the line through both gives the time of all labels, and the row says
`extrapolated`. Its rows are compared for every 4th label.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common import Measured, Row, fresh, row
from mig_corpus import Scale, draw
from mig_ways import TINY, classifier_slice, dense_slice, digest, joined, ours, polars_twin

MIMIC3 = Scale("MIMIC-III", 47_700, 50_000, 1500, 599, 8_929, 14.7)
MIMIC4 = Scale("MIMIC-IV", 122_000, 50_000, 1500, 599, 7_942, 15.65)
WIKI10 = Scale("WIKI10-31K", 14_146, 101_938, 2000, 673, 30_938, 18.64)
AMAZON = Scale("AmazonTitles-1.3M, 20,000 labels", 2_248_619, 128_000, 9, 8, 20_000, 0.34)
WHOLE_AMAZON = replace(AMAZON, name="AmazonTitles-1.3M, k = 10", labels=1_305_265, labels_a_document=22.2, k=10)

NAME = "MIG table"
OURS, TWIN, SCIPY = "ours", "polars twin", "scipy SpGEMM + numpy"
JOIN, DUCKDB = "polars join + group_by", "duckdb"
DENSE, CLASSIFIER = "dense products (the authors' way)", "scikit-learn mutual_info_classif"
JOBS: dict[str, Any] = {
    OURS: ours, TWIN: polars_twin, SCIPY: partial(joined, way="scipy"), JOIN: partial(joined, way="polars join"),
    DUCKDB: partial(joined, way="duckdb"),
}  # fmt: skip
FEW, FEWER = 4, 16  # of so many labels one is counted by a way that takes minutes
WHOLE, SLICE = "whole", "slice"
SIDE_BY_SIDE: list[tuple[Scale, dict[str, str]]] = [
    (MIMIC3, {TWIN: WHOLE, SCIPY: WHOLE, JOIN: SLICE, DUCKDB: WHOLE, DENSE: SLICE, CLASSIFIER: SLICE}),
    (MIMIC4, {SCIPY: WHOLE, DUCKDB: SLICE}),
    (WIKI10, {SCIPY: WHOLE, DUCKDB: SLICE}),
    (AMAZON, {SCIPY: WHOLE, DUCKDB: WHOLE}),
]


def rows(quick: bool) -> Iterator[Row]:
    """Ours beside the others at four scales, how ours and SpGEMM grow, and memory at 1.3 million labels."""
    if quick:
        everything = {TWIN: WHOLE, SCIPY: WHOLE, JOIN: WHOLE, DUCKDB: WHOLE, DENSE: SLICE, CLASSIFIER: SLICE}
        sliced = {SCIPY: SLICE, JOIN: SLICE, DUCKDB: SLICE}
        yield from side_by_side(TINY, everything)
        yield from side_by_side(replace(TINY, name="slices"), sliced)
        yield from _growth(TINY)
        yield from _many_labels(replace(TINY, k=10))
        return
    for scale, ways in SIDE_BY_SIDE:
        for line in side_by_side(scale, ways):
            yield line
            if scale is MIMIC3 and line["way"] in (OURS, SCIPY):  # the ends of growths
                yield _as(line, f"{NAME} by documents", MIMIC3.documents)
            if scale is MIMIC3 and line["way"] == OURS:
                yield _as(line, f"{NAME} by labels", MIMIC3.labels)
    yield from _growth(MIMIC3)
    yield from _many_labels(WHOLE_AMAZON)


def _as(line: Row, kernel: str, size: float) -> Row:
    """A row once more, as the end of a growth."""
    again = line.copy()
    again["kernel"], again["size"] = kernel, size
    return again


def side_by_side(scale: Scale, ways: dict[str, str]) -> Iterator[Row]:
    """Ours, then the others, whose rows must be ours."""
    with tempfile.TemporaryDirectory() as base:
        folder = draw(scale, Path(base) / "corpus")
        taken = _measure(OURS, folder, scale, repeats=2)
        note = f"{scale.triples / 1e6:,.3g} million triples, {taken.cpu_seconds / scale.triples * 1e9:.2g} ns each"
        yield row(NAME, OURS, scale.name, taken, note=note)
        expected = {every: digest(folder, every) for every in (1, FEW)}
        for way, how in ways.items():
            if way == DENSE:
                yield _dense(scale, folder)
            elif way == CLASSIFIER:
                yield _classifier(scale, folder)
            elif way == DUCKDB and importlib.util.find_spec("duckdb") is None:
                yield row(NAME, way, scale.name, note="not measured: duckdb is not installed (envs/bench.txt)")
            else:
                yield _other(way, scale, folder, how, expected)


def _measure(way: str, folder: Path, scale: Scale, *, repeats: int = 1, **more: int) -> Measured:
    job = JOBS[way]
    if isinstance(job, partial):
        job, more = job.func, {**job.keywords, **more}
    return fresh(job, repeats=repeats, folder=str(folder), k=scale.k, **more)


def _other(way: str, scale: Scale, folder: Path, how: str, expected: dict[int, str]) -> Row:
    if how == WHOLE:
        measured = _measure(way, folder, scale)
        _check(way, scale, digest(folder), expected[1])
        return row(NAME, way, scale.name, measured, ratio_to=OURS)
    fewer, few = (_measure(way, folder, scale, every=every) for every in (FEWER, FEW))
    _check(way, scale, digest(folder, FEW), expected[FEW])
    seconds = fewer.cpu_seconds + (few.cpu_seconds - fewer.cpu_seconds) * (1 - 1 / FEWER) / (1 / FEW - 1 / FEWER)
    note = f"from one label in {FEW} and one in {FEWER}"
    return _extrapolated(way, scale, seconds, note, peak_mb=few.peak_mb)


def _check(way: str, scale: Scale, found: str, expected: str) -> None:
    if found != expected:
        raise AssertionError(f"{scale.name}: {way} gives other rows than ours")


def _dense(scale: Scale, folder: Path) -> Row:
    """Products grow with documents x labels x words, cells with labels x words."""
    slices = {"documents": min(scale.documents, 1000), "labels": min(scale.labels, 400)}
    product, cells = (
        fresh(dense_slice, folder=str(folder), part=part, **slices).cpu_seconds for part in ("product", "cells")
    )
    seconds = (product * scale.documents / slices["documents"] + cells) * scale.labels / slices["labels"]
    note = f"from {slices['documents']:,} documents and {slices['labels']} labels; memory of the matrices, computed"
    matrices = (scale.documents + 3 * scale.labels) * scale.words + scale.documents * scale.labels
    return _extrapolated(DENSE, scale, seconds, note, peak_mb=4 * matrices / 1e6)


def _classifier(scale: Scale, folder: Path) -> Row:
    words = 40
    measured = fresh(classifier_slice, folder=str(folder), words=words)
    seconds = measured.cpu_seconds * scale.words / words * scale.labels
    return _extrapolated(CLASSIFIER, scale, seconds, f"from {words} words of one label", peak_mb=None)


def _extrapolated(way: str, scale: Scale, seconds: float, note: str, *, peak_mb: float | None) -> Row:
    taken: dict[str, Any] = {"cpu_seconds": seconds, "peak_mb": peak_mb, "extrapolated": True}
    return row(NAME, way, scale.name, ratio_to=OURS, note=note, **taken)


def _growth(scale: Scale) -> Iterator[Row]:
    """By documents, SpGEMM beside it; by labels, each on as many documents as before."""
    for part in (8, 4, 2):
        fewer = replace(scale, documents=scale.documents // part)
        yield from _grown(f"{NAME} by documents", fewer, fewer.documents, (OURS, SCIPY))
    for part in (8, 4, 2):
        fewer = replace(scale, labels=scale.labels // part, labels_a_document=scale.labels_a_document / part)
        yield from _grown(f"{NAME} by labels", fewer, fewer.labels, (OURS,))


def _many_labels(scale: Scale) -> Iterator[Row]:
    """Memory is the corpus, the documents of each label, and a fixed number of rows: not the table."""
    for part in (16, 4, 1):
        fewer = replace(scale, labels=scale.labels // part, labels_a_document=scale.labels_a_document / part)
        yield from _grown(f"{NAME}, short titles, by labels", fewer, fewer.labels, (OURS,), note=f"k = {scale.k}")


def _grown(kernel: str, scale: Scale, size: int, ways: tuple[str, ...], note: str = "") -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as base:
        folder = draw(scale, Path(base) / "corpus", pairs=len(ways) > 1)
        for way in ways:
            measured = _measure(way, folder, scale)
            table = sum((folder / f"out.{suffix}").stat().st_size for suffix in ("parquet", "safetensors")) / 1e6
            yield row(kernel, way, size, measured, ratio_to="" if way == OURS else OURS,
                      note=f"{note}{', ' * bool(note)}table of {table:,.0f} MB")  # fmt: skip
