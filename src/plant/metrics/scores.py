"""Score files: what a system says of a split. Metrics, statistics and tables are computed from them without a model.

- `{split}.scores.parquet`: the top K labels and every true label of each document, with their scores.
- `{split}.scores.safetensors`: all scores as fp16, if there are at most `dense_limit` labels. The table then holds the
  same rounded scores, so that no result depends on which of the two files was read.

The score -inf means that the system has no score for this label: it is never predicted and ranked last.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import scipy  # loads its parts when they are used: the names of metrics need none

from plant.ground import files, settings
from plant.ground.errors import InputError
from plant.ground.identity import digest
from plant.metrics.arrays import Array, Sparse
from plant.metrics.top import pair_ids, scores_at, sorted_csr, stored_at, top_entries

LARGEST_FP16 = 65504.0
METADATA = "plant"
PART = 512  # documents whose scores are dense at the same time, ...
SCORES = 2**25  # ... or fewer where the label set is large: about 0.5 GB with their order


@dataclass(frozen=True)
class Scores:
    """The scores of N documents, in the order of their split, for L labels, in the order of labels.parquet."""

    document_ids: tuple[str, ...]
    label_names: tuple[str, ...]
    truth: Sparse
    """(N, L), boolean."""
    kept: Sparse
    """(N, L), float32: the scores of the top K labels and of all true labels (-inf for a true label without a
    score)."""
    dense: Array | None
    """(N, L), float32: all scores. None: only the kept scores are known."""
    top: int
    """K."""
    natural_threshold: float | None
    """The system predicts the labels with scores above it: 0 for logits (probability .5). None: it has no threshold."""
    names: tuple[str | None, str | None] = (None, None)
    """Names of the published split and label space, if the corpus has any (`plant.ground.identity.read_names`)."""

    @cached_property
    def retrieved(self) -> Sparse:
        """(N, L), float32: the top K scores alone.

        Predictions and rankings may only use these. The other kept scores belong to true labels: they were kept because
        they are true, so reading them would be reading the answers.
        """
        rows, columns, values = top_entries(self.kept, self.top)
        return sorted_csr(scipy.sparse.coo_array((values, (rows, columns)), shape=self.kept.shape))

    @property
    def known(self) -> Array | Sparse:
        """(N, L): all scores, or the top K scores if only these were kept."""
        return self.retrieved if self.dense is None else self.dense

    @cached_property
    def bound(self) -> Array:
        """(N,): upper bound of the scores that were not kept, the K-th score; -inf if all scores were kept."""
        bound = np.full(self.kept.shape[0], -np.inf, dtype=np.float32)
        full = np.diff(self.retrieved.indptr) == self.top
        if self.top < self.kept.shape[1]:
            starts = self.retrieved.indptr[:-1][full]
            bound[full] = self.retrieved.data[starts[:, None] + np.arange(self.top)].min(axis=1)
        return bound


def write_scores(
    folder: Path,
    split: str,
    *,
    document_ids: Sequence[str],
    label_names: Sequence[str],
    truth: Sparse,
    scores: Array | Sparse,
    natural_threshold: float | None,
    settings: settings.Evaluation,
    names: tuple[str | None, str | None] = (None, None),
) -> None:
    """Write the scores of one split into the system's evaluation folder; the other arguments as in `Scores`.

    Args:
        split: `val` or `test`; the start of the file names.
        document_ids: N distinct ids, in the order of the split's table.
        truth: (N, L), nonzero if a label is true.
        scores: (N, L), higher is better, -inf for "no score". Or a sparse array: stored zeros are scores, and entries
            that it does not store count as -inf.
        settings: `top`, `dense_limit` and `memory_gb` are read.

    Raises:
        InputError: a score is NaN or +inf, shapes do not match, ids repeat, a document has neither a score nor a label,
            or dense scores need more memory than `memory_gb`.
    """
    where = f"scores of {Path(folder).name} on {split}"
    shape = (len(document_ids), len(label_names))
    truth = scipy.sparse.csr_array(truth, dtype=bool, copy=True)
    truth.eliminate_zeros()  # in place
    _check(where, document_ids, label_names, truth, scores)
    dense = None
    if isinstance(scores, np.ndarray):
        require_memory(shape, settings=settings, where=where)
        if shape[1] <= settings.dense_limit:
            scores = dense = to_fp16(scores)
    kept = kept_scores(scores, truth, settings.top)
    if (np.diff(kept.indptr) == 0).any():
        empty = int(np.argmax(np.diff(kept.indptr) == 0))
        raise InputError(
            where, expected="a score or a label for each document",
            got=f"neither for document {empty + 1} of {shape[0]}",
            fix="Score the document or drop it from the split.",
        )  # fmt: skip
    metadata = {"natural_threshold": "none" if natural_threshold is None else f"{natural_threshold:.9g}"}
    target = Path(folder) / f"{split}.scores.safetensors"
    if dense is not None:
        files.write_arrays(target, {"scores": dense}, metadata)
    else:
        target.unlink(missing_ok=True)
    details = {
        "split": split, "documents": shape[0], "top": settings.top, "dense": dense is not None,
        "split_name": names[0], "label_space_name": names[1], "labels": list(label_names),
    }  # fmt: skip
    table = _table(kept, truth, document_ids, label_names)
    table = table.replace_schema_metadata({**metadata, METADATA: json.dumps(details)})
    files.write_with(Path(folder) / f"{split}.scores.parquet", partial(pq.write_table, table))


def read_scores(folder: Path, split: str) -> Scores:
    """Read what `write_scores` wrote.

    Raises:
        InputError: a file is missing, damaged, or was not written by `write_scores`.
    """
    path = files.require_file(Path(folder) / f"{split}.scores.parquet")
    try:
        table = pq.read_table(path)
        metadata = table.schema.metadata
        details, natural = json.loads(metadata[METADATA.encode()]), metadata[b"natural_threshold"]
        threshold = None if natural == b"none" else float(natural)
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise InputError(
            str(path), expected="a scores table of this pipeline", got=f"another file ({type(error).__name__})",
            fix="Delete it and run again: the rule that makes it will write it anew.",
        ) from error  # fmt: skip
    labels = tuple(details["labels"])
    shape = (details["documents"], len(labels))
    ids = pc.unique(table["document_id"])  # in the order of the table
    rows = pc.index_in(table["document_id"], ids).to_numpy().astype(np.int64)
    columns = pc.index_in(table["label"], pa.array(labels, pa.string())).to_numpy().astype(np.int64)
    truth = table["truth"].to_numpy()
    kept = scipy.sparse.coo_array((table["score"].to_numpy(), (rows, columns)), shape=shape)
    true = scipy.sparse.coo_array((np.ones(int(truth.sum()), dtype=bool), (rows[truth], columns[truth])), shape=shape)
    dense = None
    if details["dense"]:
        dense = files.read_arrays(path.with_suffix(".safetensors"))["scores"].astype(np.float32)
        if dense.shape != shape:
            raise InputError(
                str(path.with_suffix(".safetensors")), expected=f"scores of {shape[0]} documents x {shape[1]} labels",
                got=f"{dense.shape[0]} x {dense.shape[1]}", fix="Delete both score files and run again.",
            )  # fmt: skip
    names = details.get("split_name"), details.get("label_space_name")
    document_ids = tuple(ids.to_pylist())
    return Scores(document_ids, labels, sorted_csr(true), sorted_csr(kept), dense, details["top"], threshold, names)


def to_fp16(scores: Array) -> Array:
    """Scores as fp16: those beyond its range become its largest value, -inf stays."""
    finite = scores > -np.inf
    return np.where(finite, np.clip(scores, -LARGEST_FP16, LARGEST_FP16), -np.inf).astype(np.float16)


def kept_scores(scores: Array | Sparse, truth: Sparse, top: int) -> Sparse:
    """The top scores of each document and the scores of its true labels. Equal scores are ranked by label id."""
    rows, columns, values = top_entries(scores, top)
    true = truth.tocoo()
    keys = np.concatenate([rows * truth.shape[1] + columns, pair_ids(truth)])
    values = np.concatenate([values, scores_at(scores, *true.coords)])
    keys, first = np.unique(keys, return_index=True)
    coordinates = np.divmod(keys, truth.shape[1])
    return sorted_csr(scipy.sparse.coo_array((values[first].astype(np.float32), coordinates), shape=truth.shape))


def require_memory(shape: tuple[int, int], *, settings: settings.Evaluation, where: str) -> None:
    """InputError if a dense float32 array of (documents, labels) needs more than `settings.memory_gb`."""
    needed = shape[0] * shape[1] * 4 / 1e9
    if needed > settings.memory_gb:
        raise InputError(
            where, expected=f"dense scores of at most evaluation.memory_gb = {settings.memory_gb:g} GB",
            got=f"{needed:.3g} GB for {shape[0]} documents x {shape[1]} labels",
            fix="Raise evaluation.memory_gb, keep fewer labels, or pass only a shortlist as a sparse array.",
        )  # fmt: skip


def require_comparable(first: Scores, second: Scores, where: str) -> None:
    """InputError if two scores are of two splits, of two label spaces, or with other true labels.

    Splits and label spaces are the same if they hold the same documents and labels in the same order, and if their
    names do not differ.
    """
    fix = "Compare systems of one dataset. If both come from it, delete the older evaluation folder and run again."
    members = (first.document_ids, second.document_ids), (first.label_names, second.label_names)
    for place, what in enumerate(("the same documents (one split)", "one label space")):
        names, (one, other) = (first.names[place], second.names[place]), members[place]
        if one != other or (None not in names and names[0] != names[1]):
            got = f"two: {_described(names[0], one)} and {_described(names[1], other)}"
            raise InputError(where, expected=f"scores on {what}", got=got, fix=fix)
    if (first.truth != second.truth).nnz:
        raise InputError(
            where, expected="the same documents with the same true labels", got="other true labels", fix=fix
        )


def _described(name: str | None, members: tuple[str, ...]) -> str:
    return f"{name or 'one without a name'} ({len(members)}, {digest(members)[:8]})"


def _check(
    where: str, document_ids: Sequence[str], label_names: Sequence[str], truth: Sparse, scores: Array | Sparse
) -> None:
    shape, repeated = (len(document_ids), len(label_names)), len(document_ids) - len(set(document_ids))
    for name, array in (("truth", truth), ("scores", scores)):
        if array.shape != shape:
            raise InputError(
                where, expected=f"{name} of {shape[0]} documents x {shape[1]} labels",
                got=f"{array.shape[0]} x {array.shape[1]}", fix="Score every document for every label, in order.",
            )  # fmt: skip
    if repeated:
        raise InputError(
            where, expected="distinct document ids", got=f"{repeated} repeated", fix="Give each document its own id."
        )
    values = scores if isinstance(scores, np.ndarray) else scores.data
    if values.size and not float(values.max()) < np.inf:  # also catches NaN: the maximum is then NaN
        raise InputError(
            where, expected="scores that are finite or -inf",
            got=f"{int(np.isnan(values).sum())} NaN and {int(np.isposinf(values).sum())} +inf",
            fix="The training diverged: lower its learning rate, or use fp32.",
        )  # fmt: skip


def _table(kept: Sparse, truth: Sparse, document_ids: Sequence[str], label_names: Sequence[str]) -> pa.Table:
    """One row for each kept score: by document, then from the best."""
    entries = kept.tocoo()
    rows, columns = entries.coords
    order = np.lexsort((columns, -entries.data, rows))
    rows, columns = rows[order], columns[order]
    return pa.table({
        "document_id": pa.array(document_ids, pa.string()).take(pa.array(rows)),
        "label": pa.array(label_names, pa.string()).take(pa.array(columns)),
        "score": pa.array(entries.data[order], pa.float32()),
        "truth": pa.array(stored_at(truth, rows, columns)),
    })  # fmt: skip
