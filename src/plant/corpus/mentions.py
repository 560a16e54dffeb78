"""Mentions: words that people marked in training texts as the reason for a label (CodiEsp-X, or a table).

mentions.parquet has the columns document_id, label and mention. It has training documents only, so that no system can
see what was marked in the documents that it scores.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plant.corpus.documents import some
from plant.corpus.sources import codiesp, files_read
from plant.corpus.tables import text_columns
from plant.ground import settings
from plant.ground.errors import InputError
from plant.ground.files import is_private, require_file, write_with
from plant.ground.staging import owner_only

COLUMNS = ("document_id", "label", "mention")


def write_mentions(dataset: settings.Dataset, corpus: Path, out: Path) -> None:
    """Read the mentions of the source, and write those of training documents and their labels.

    Rows are in the order of training documents, and for each document in the order of the source. A mention is left out
    if the document does not have its label in the corpus, which may keep fewer labels.

    Args:
        dataset: an entry of the config's `datasets`.
        corpus: folder of its corpus.
        out: mentions.parquet. Only the owner can read it, if only the owner can read the corpus.

    Raises:
        InputError: the dataset has no mentions, their file is damaged, or none belongs to a training document.
    """
    match dataset:
        case settings.CodiEsp() if dataset.has_mentions:
            where, marked = dataset.path, codiesp.read_mentions(dataset, Path(dataset.path))
        case settings.Table(mentions=str(path)):
            table = text_columns(Path(path), ("document", "label", "mention"))
            where, marked = path, table.rename({"document": "document_id"}).filter(pl.col("mention") != "")
        case _:
            raise InputError(
                "mentions", expected="a dataset with mentions (CodiEsp in Spanish; a table with `mentions`)",
                got=f"source {dataset.source}", fix="Leave the baseline and channel `mentions` out.",
            )  # fmt: skip
    train = require_file(Path(corpus) / "train.parquet")
    pairs = pl.read_parquet(train, columns=["document_id", "labels"]).explode("labels").rename({"labels": "label"})
    kept = pairs.join(marked, on=["document_id", "label"], how="inner", maintain_order="left_right")
    if not len(kept):
        ids = marked["document_id"].unique(maintain_order=True).to_list()
        raise InputError(
            where, expected="mentions of labels of training documents", got=f"those of {some(ids) if ids else 'none'}",
            fix="Write documents and labels as in the corpus.",
        )  # fmt: skip
    with owner_only(is_private(train)):
        write_with(Path(out), kept.select(COLUMNS).write_parquet)


def files_of_marks(dataset: settings.Dataset) -> list[Path]:
    """The files that hold what people marked: a file of its own beside the documents, or the source itself."""
    own = getattr(dataset, "mentions", None)
    return files_read(dataset) if own is None else [Path(own)]


def read_mentions(path: Path) -> pl.DataFrame:
    """Read mentions.parquet."""
    return pl.read_parquet(require_file(path), columns=list(COLUMNS))
