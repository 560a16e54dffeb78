"""The relevance table: counts -> measure -> top k a label -> parquet and arrays, block by block of labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from plant.corpus.reader import Labels, Tokens, load_labels, load_tokens
from plant.corpus.staging import is_private, owner_only
from plant.errors import InputError, nearest
from plant.files import atomic_path, write_arrays
from plant.relevance.contingency import (
    BLOCK,
    TokenLists,
    document_frequency,
    joint_counts,
    label_documents,
    label_spans,
    token_lists,
)
from plant.relevance.selection import Candidates, LabelCounts, Selected, candidates, random_tokens, top_tokens
from plant.seeds import generator
from plant.settings import MEASURES, Relevance

ROW_GROUP = 250_000
"""Rows after which a row group is closed, at the end of a label."""

_SCHEMA = pa.schema(
    [
        ("label", pa.large_string()), ("token_id", pa.uint32()), ("token", pa.large_string()),
        ("n_label", pa.uint32()), ("n_token", pa.uint32()), ("n_joint", pa.uint32()),
        ("n_documents", pa.uint32()), ("relevance", pa.float32()), ("rank", pa.uint32()),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class _Training:
    """What a table is made from: the training split only."""

    names: pl.Series
    words: pl.Series
    lists: TokenLists
    occurrences: TokenLists | None
    candidates: Candidates
    indptr: np.ndarray
    documents: np.ndarray


@dataclass
class _Rows:
    """Rows of the labels since the last row group, and the arrays of all labels."""

    labels: list[int] = field(default_factory=list)
    chosen: list[Selected] = field(default_factory=list)
    n_rows: int = 0
    token_id: list[np.ndarray] = field(default_factory=list)
    relevance: list[np.ndarray] = field(default_factory=list)

    def add(self, label: int, selected: Selected) -> None:
        self.labels.append(label)
        self.chosen.append(selected)
        self.n_rows += len(selected.token)
        self.token_id.append(selected.token.astype(np.int32))
        self.relevance.append(selected.relevance)

    def close_group(self) -> None:
        self.labels, self.chosen, self.n_rows = [], [], 0


def write_relevance(
    corpus: Path, tokens: Path, measure: str, settings: Relevance, *, parquet: Path, arrays: Path, block: int = BLOCK
) -> None:
    """Write the k most relevant tokens of every label, from the training documents only (appendix B.1).

    Each label's relevances are divided by its largest one, so they lie in [0, 1]; ranks go by relevance
    descending, then token id. A label without information (on every training document) gets zeros; a label
    without training documents gets no rows. Special tokens never count.

    Args:
        corpus: folder with labels.safetensors and labels.parquet.
        tokens: folder with tokens.safetensors and vocabulary.parquet.
        measure: one of `settings.MEASURES`. `shuffled` is MIG after the label rows are permuted over the
            training documents; its n_joint are counts under that permutation.
        settings: k, sign, min_documents and the seed of `random` and `shuffled`. sign has no part in
            `random`, which carries no information on the labels.
        parquet: file to write: label, token_id, token, n_label, n_token, n_joint, n_documents, relevance,
            rank; sorted by (label, rank), with row groups that end where a label ends.
        arrays: file to write: indptr i64[L + 1], token_id i32 and relevance f32 in rank order.
        block: (label, document, token) triples that are in memory at once.

    Raises:
        InputError: unknown measure; no training documents; corpus and tokens do not belong together; k is
            more than the number of tokens that may be selected.
    """
    if measure not in MEASURES:
        raise InputError("measure", expected="a relevance measure", got=repr(measure), fix=nearest(measure, MEASURES))
    training = _load(corpus, tokens, measure, settings, block)
    rows, lengths = _Rows(), np.zeros(len(training.names), np.int64)
    with owner_only(is_private(Path(corpus) / "train.parquet")), atomic_path(Path(parquet)) as partial:
        with pq.ParquetWriter(partial, _SCHEMA, compression="zstd") as writer:
            for label, selected in _selections(training, measure, settings, block):
                rows.add(label, selected)
                lengths[label] = len(selected.token)
                if rows.n_rows >= ROW_GROUP:
                    _write_group(writer, rows, training)
            _write_group(writer, rows, training)
        write_arrays(
            Path(arrays),
            {
                "indptr": np.concatenate(([0], np.cumsum(lengths))),
                "token_id": np.concatenate([np.zeros(0, np.int32), *rows.token_id]),
                "relevance": np.concatenate([np.zeros(0, np.float32), *rows.relevance]),
            },
            {"measure": measure},
        )


def _load(corpus: Path, folder: Path, measure: str, settings: Relevance, block: int) -> _Training:
    labels, tokens = load_labels(corpus), load_tokens(folder)
    _check_match(labels, tokens)
    offsets, input_ids = tokens.part(labels.rows("train"))
    counted = ~tokens.special
    lists = token_lists(input_ids, offsets, counted=counted, distinct=True, block=block)
    occurrences = (
        token_lists(input_ids, offsets, counted=counted, distinct=False) if measure == "term_frequency" else None
    )
    indptr, documents = _label_documents(labels, measure, settings.seed)
    chosen = candidates(document_frequency(lists), lists.n_documents, min_documents=settings.min_documents)
    if settings.k > len(chosen.order):
        raise InputError(
            "relevance.k", expected=f"at most {len(chosen.order)}, the number of tokens in {folder} that occur in "
            f"{settings.min_documents} or more training documents",
            got=str(settings.k), fix="Lower relevance.k (and every pretraining's k), or use a larger vocabulary.",
        )  # fmt: skip
    return _Training(
        pl.Series(labels.names), pl.Series(tokens.vocabulary), lists, occurrences, chosen, indptr, documents
    )


def _check_match(labels: Labels, tokens: Tokens) -> None:
    if not labels.split_sizes[0]:
        raise InputError(
            str(labels.folder), expected="training documents", got="none", fix="Check the split of the dataset."
        )
    largest = int(tokens.input_ids.max(initial=-1))
    if tokens.n_documents != labels.n_documents or largest >= tokens.vocabulary_size:
        raise InputError(
            str(tokens.folder), expected=f"tokens of the {labels.n_documents} documents of {labels.folder}",
            got=f"{tokens.n_documents} documents, with ids up to {largest} in a vocabulary of {tokens.vocabulary_size}",
            fix="Delete the tokens' folder and run again.",
        )  # fmt: skip


def _label_documents(labels: Labels, measure: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The training documents of each label; for `shuffled`, after the label rows changed places."""
    indptr, indices = labels.part("train")
    begins, documents = label_documents(indptr, indices, labels.n_labels)
    if measure == "shuffled":
        documents = generator(seed, "relevance", "shuffled").permutation(len(indptr) - 1)[documents]
    return begins, documents


def _selections(training: _Training, measure: str, settings: Relevance, block: int) -> Iterator[tuple[int, Selected]]:
    """The chosen tokens of every label that has training documents, in the order of the labels."""
    for label, counts in _label_counts(training, block):
        if measure == "random":
            draw = generator(settings.seed, "relevance", "random", training.names[label])
            yield label, random_tokens(counts, training.candidates, k=settings.k, generator=draw)
        else:
            yield label, top_tokens(counts, training.candidates, measure=measure, k=settings.k, sign=settings.sign)


def _label_counts(training: _Training, block: int) -> Iterator[tuple[int, LabelCounts]]:
    selectable = np.zeros(training.lists.n_tokens, bool)
    selectable[training.candidates.order] = True
    indptr, documents = training.indptr, training.documents
    for first, last in label_spans(training.lists, indptr, documents, block):
        joint = joint_counts(training.lists, indptr, documents, first=first, last=last, block=block)
        repeats = None
        if training.occurrences is not None:
            repeats = joint_counts(training.occurrences, indptr, documents, first=first, last=last, block=block)
        for label in range(first, last):
            n_label = int(indptr[label + 1] - indptr[label])
            if not n_label:
                continue
            token, n_joint = joint.row(label)
            keep = selectable[token]
            occurrences = None if repeats is None else repeats.row(label)[1]
            yield label, LabelCounts(
                n_label, token[keep], n_joint[keep],
                None if occurrences is None else occurrences[keep],
                None if occurrences is None else int(occurrences.sum()),
            )  # fmt: skip


def _write_group(writer: pq.ParquetWriter, rows: _Rows, training: _Training) -> None:
    if rows.n_rows:
        lengths = [len(selected.token) for selected in rows.chosen]
        label = np.repeat(rows.labels, lengths)
        token = np.concatenate([selected.token for selected in rows.chosen])
        frame = pl.DataFrame(
            {
                "label": training.names.gather(label),
                "token_id": token,
                "token": training.words.gather(token),
                "n_label": np.diff(training.indptr)[label],
                "n_token": training.candidates.n_token[token],
                "n_joint": np.concatenate([selected.n_joint for selected in rows.chosen]),
                "n_documents": np.full(len(token), training.candidates.n_documents),
                "relevance": np.concatenate([selected.relevance for selected in rows.chosen]),
                "rank": np.concatenate([np.arange(1, length + 1) for length in lengths]),
            }
        )
        group = frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(_SCHEMA)
        writer.write_table(group, row_group_size=len(token))
    rows.close_group()
