"""The relevance table: counts -> measure -> top k a label -> parquet and arrays, some labels at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plant.corpus.reader import Labels, Tokens, load_labels, load_tokens
from plant.ground.errors import InputError
from plant.ground.files import atomic_path, is_private
from plant.ground.seeds import generator
from plant.ground.settings import Backbone, Relevance
from plant.ground.staging import owner_only
from plant.relevance.choice import Chosen, Training, chosen
from plant.relevance.contingency import label_documents
from plant.relevance.described import described_tokens
from plant.relevance.measures import MEASURES
from plant.relevance.pieces import growing_arrays

_REPEATING = ["label", "token", "n_label", "n_documents"]  # of other columns a dictionary costs time and space

_STRINGS = pa.dictionary(pa.int32(), pa.large_string())
_SCHEMA = pa.schema(
    [
        ("label", _STRINGS), ("token_id", pa.uint32()), ("token", _STRINGS),
        ("n_label", pa.uint32()), ("n_token", pa.uint32()), ("n_joint", pa.uint32()),
        ("n_documents", pa.uint32()), ("relevance", pa.float32()), ("rank", pa.uint32()),
    ]
)  # fmt: skip
"""In memory. The file has plain strings: `store_schema=False` keeps the dictionaries to ourselves, and parquet's writer
takes them as they are, which halves its time."""


def write_relevance(
    corpus: Path, tokens: Path, measure: str, settings: Relevance, *, parquet: Path, arrays: Path,
    compiled: bool | None = None, backbone: Backbone | None = None, tokenizer: Path | None = None,
) -> None:  # fmt: skip
    """Write the k most relevant tokens of every label, from the training documents only (appendix B.1).

    Each label's relevances are divided by its largest one, so they lie in [0, 1]; ranks go by relevance
    descending, then token id. A label without information (on every training document) gets zeros; a label
    without training documents gets no rows. Special tokens never count.

    Args:
        corpus, tokens: their folders.
        measure: one of `measures.MEASURES`. `shuffled` is MIG after the label rows are permuted over the
            training documents; its n_joint are counts under that permutation. `description` keeps the tokens of the
            label's description, by inverse document frequency (choice C28); a label without one gets no rows.
        settings: k, sign, min_documents and the seed of `random` and `shuffled`. sign has no part in `random`,
            `constant` and `description`, which no count of the labels enters.
        parquet: file to write: label, token_id, token, n_label, n_token, n_joint, n_documents, relevance,
            rank; sorted by (label, rank), with row groups that end where a label ends.
        arrays: file to write: indptr i64[L + 1], token_id i32 and relevance f32 in rank order.
        compiled: see `choice.chosen`. No row depends on it.
        backbone, tokenizer: of the tokens, for `description`; see `described.described_tokens`.

    Raises:
        InputError: no training documents; corpus and tokens do not belong together; no token may be
            selected; no label has a description.
    """
    training = load_training(corpus, tokens, measure, settings)
    if MEASURES[measure].described:
        if backbone is None:
            raise InputError(f"measure: {measure}", expected="a backbone", got="none", fix="Name its settings.")
        said = described_tokens(load_labels(corpus), training.words, backbone, tokenizer)
        training = replace(training, described=said)
    lengths = np.zeros(len(training.names), np.int64)
    names, words = (pa.array(strings, pa.large_string()) for strings in (training.names, training.words))
    dtypes = {"indptr": np.int64, "token_id": np.int32, "relevance": np.float32}
    with (
        owner_only(is_private(Path(corpus) / "train.parquet")),
        growing_arrays(arrays, dtypes, {"measure": measure}) as append,
        atomic_path(parquet) as partial,
        pq.ParquetWriter(
            partial, _SCHEMA, compression="zstd", use_dictionary=_REPEATING, write_statistics=["label"],
            store_schema=False,
        ) as writer,
    ):  # fmt: skip
        for piece in chosen(training, measure, settings, compiled=compiled):
            if len(piece.token):  # a piece is a row group
                writer.write_table(_row_group(piece, training, names, words), row_group_size=len(piece.token))
            lengths[piece.labels] = piece.lengths
            append("token_id", piece.token)
            append("relevance", piece.relevance)
        append("indptr", np.concatenate(([0], np.cumsum(lengths))))


def load_training(corpus: Path, folder: Path, measure: str, settings: Relevance) -> Training:
    """The training split, and the tokens that may be chosen. Args and Raises as of `write_relevance`."""
    labels, tokens = load_labels(corpus), load_tokens(folder)
    _check_match(labels, tokens)
    offsets, input_ids = tokens.part(labels.rows("train"))
    indptr, documents = label_documents(*labels.part("train"), labels.n_labels)
    if MEASURES[measure].shuffled:  # the label rows change places
        documents = generator(settings.seed, "relevance", "shuffled").permutation(len(offsets) - 1)[documents]
    training = Training(
        labels.names, tokens.vocabulary, input_ids, offsets, ~tokens.special, indptr, documents, settings.min_documents
    )
    if not len(training.order):
        raise InputError(
            str(folder), expected=f"tokens that occur in {settings.min_documents} or more training documents",
            got="none", fix="Check the texts, or lower relevance.min_documents.",
        )  # fmt: skip
    return training


def _check_match(labels: Labels, tokens: Tokens) -> None:
    if not labels.split_sizes[0]:
        raise InputError(
            str(labels.folder), expected="training documents", got="none", fix="Check the split of the dataset."
        )
    least, largest = int(tokens.input_ids.min(initial=0)), int(tokens.input_ids.max(initial=-1))
    if tokens.n_documents != labels.n_documents or least < 0 or largest >= tokens.vocabulary_size:
        raise InputError(
            str(tokens.folder), expected=f"tokens of the {labels.n_documents} documents of {labels.folder}",
            got=f"{tokens.n_documents} documents with ids {least} to {largest}, in a vocabulary of "
            f"{tokens.vocabulary_size}",
            fix="Delete the tokens' folder and run again.",
        )  # fmt: skip


def _row_group(piece: Chosen, training: Training, names: pa.Array, words: pa.Array) -> pa.Table:
    """The rows of a piece, with all that is known of its labels and tokens."""
    label = np.repeat(piece.labels, piece.lengths)
    first = np.repeat(np.cumsum(piece.lengths) - piece.lengths, piece.lengths)
    columns = [
        _coded(label, names), piece.token, _coded(piece.token, words),
        np.diff(training.indptr)[label], training.n_token[piece.token], piece.n_joint,
        np.full(len(label), training.n_documents), piece.relevance, np.arange(1, len(label) + 1) - first,
    ]  # fmt: skip
    typed = [
        column if field.type == _STRINGS else pa.array(column.astype(field.type.to_pandas_dtype(), copy=False))
        for column, field in zip(columns, _SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(typed, schema=_SCHEMA)


def _coded(ids: np.ndarray, strings: pa.Array) -> pa.DictionaryArray:
    """The strings of some ids, each that occurs stored once."""
    place = np.zeros(len(strings), np.int32)
    place[ids] = 1
    used = np.flatnonzero(place)
    place[used] = np.arange(len(used))
    return pa.DictionaryArray.from_arrays(pa.array(place[ids]), strings.take(pa.array(used)))
