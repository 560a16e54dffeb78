"""What people marked as the reason for a label: words of training texts, and places in test texts (CodiEsp, a table).

- mentions.parquet: document_id, label, mention. It has the words of TRAINING documents only, so that no system can see
  what was marked in the documents that it scores.
- marks.parquet: document_id, label, start, end: characters of the texts of the TEST split in the corpus. It holds no
  word. Only measurements read it (`attention_against_people_<experiment>`); no system does.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from plant.corpus import sources
from plant.corpus.cleaning import clean
from plant.corpus.sources import codiesp
from plant.corpus.tables import text_columns
from plant.ground import settings
from plant.ground.errors import InputError
from plant.ground.files import is_private, require_file, write_with
from plant.ground.staging import owner_only

MENTIONS = ("document_id", "label", "mention")
MARKS = {"document_id": pl.String, "label": pl.String, "start": pl.Int64, "end": pl.Int64}


def require_marks(dataset: settings.Dataset, where: str = "attention against people") -> None:
    """Raises InputError if nobody marked words in the texts of a dataset."""
    if not dataset.has_mentions:
        raise InputError(
            where, expected="a dataset in whose texts people marked the words of each label (CodiEsp in Spanish; a "
            "table with `mentions`)", got=f"source {dataset.source} without marks",
            fix="Name an experiment on such a dataset (CodiEsp: `language: es`; the marks are of the Spanish texts).",
        )  # fmt: skip


def files_of_marks(dataset: settings.Dataset) -> list[Path]:
    """The files that hold what people marked: a file of its own beside the documents, or the source itself."""
    own = getattr(dataset, "mentions", None)
    return sources.files_read(dataset) if own is None else [Path(own)]


def write_mentions(dataset: settings.Dataset, corpus: Path, out: Path) -> None:
    """Read the mentions of the source, and write those of training documents and their labels.

    Rows are in the order of training documents, and for each document in the order of the source. A mention is left out
    if the document does not have its label in the corpus, which may keep fewer labels. If only the owner can read the
    corpus, only the owner can read `out` (mentions.parquet).

    Raises:
        InputError: the dataset has no mentions, their file is damaged, or none belongs to a training document.
    """
    require_marks(dataset, "mentions")
    if isinstance(dataset, settings.CodiEsp):
        marked = codiesp.read_mentions(dataset, Path(dataset.path))
    else:
        marked = _table(dataset).filter(pl.col("mention") != "")
    train = require_file(Path(corpus) / "train.parquet")
    kept = _of_labels(pl.read_parquet(train, columns=["document_id", "labels"]), marked)
    _write(kept.select(MENTIONS), train, Path(out))


def write_marks(dataset: settings.Dataset, corpus: Path, out: Path) -> None:
    """Find what people marked in the test texts of a corpus, for the labels that a document has there.

    CodiEsp gives the characters of the published text; text cleaning moves them. A table gives the words only: each
    place of the document where they occur is marked. If only the owner can read the corpus, only the owner can read
    `out` (marks.parquet).

    Raises:
        InputError: the dataset has no marks, their file is damaged, or none belongs to a test document.
    """
    require_marks(dataset)
    test = require_file(Path(corpus) / "test.parquet")
    documents = pl.read_parquet(test, columns=["document_id", "text", "labels"])
    if isinstance(dataset, settings.CodiEsp):
        marks = _moved(codiesp.read_marks(dataset, Path(dataset.path)), dataset)
    else:
        marks = _places(dataset, documents)
    length = documents.select("document_id", pl.col("text").str.len_chars().alias("length"))
    kept = _of_labels(documents, marks).join(length, on="document_id", how="left", maintain_order="left")
    kept = kept.filter(pl.col("start") < pl.min_horizontal("end", "length")).select(list(MARKS))  # a text may be cut
    _write(kept, test, Path(out))


def _write(kept: pl.DataFrame, documents: Path, out: Path) -> None:
    """Write what was marked, as private as the documents are."""
    if not len(kept):
        raise InputError(
            str(documents), expected="marked words of labels of its documents", got="none",
            fix="Write documents and labels as in the corpus.",
        )  # fmt: skip
    with owner_only(is_private(documents)):
        write_with(out, kept.write_parquet)


def read_marks(path: Path) -> pl.DataFrame:
    """Read marks.parquet."""
    return pl.read_parquet(require_file(path), columns=list(MARKS))


def _of_labels(documents: pl.DataFrame, marked: pl.DataFrame) -> pl.DataFrame:
    """What was marked for the labels that a document has, in the order of the documents."""
    pairs = documents.select("document_id", "labels").explode("labels").rename({"labels": "label"})
    return pairs.join(marked, on=["document_id", "label"], how="inner", maintain_order="left_right")


def _table(dataset: settings.Dataset) -> pl.DataFrame:
    """Document, label and marked words, from the table that a dataset names."""
    table = text_columns(Path(dataset.sources["mentions"]), ("document", "label", "mention"))
    return table.rename({"document": "document_id"})


def _moved(marks: pl.DataFrame, dataset: settings.CodiEsp) -> pl.DataFrame:
    """Marks in the cleaned text. A character has as many before it there as the cleaned text before it is long."""
    if dataset.cleaning.style == "raw":
        return marks
    cleaning = dataset.cleaning.model_copy(update={"max_words": None})
    frame = sources.read(dataset).frame.select("document_id", "text")
    both = marks.join(frame, on="document_id", how="left", maintain_order="left")
    moved = {}
    for edge in ("start", "end"):
        before = both.select(pl.col("text").str.slice(0, pl.col(edge)))["text"]
        moved[edge] = clean(before, cleaning).str.len_chars().cast(pl.Int64)
    return marks.with_columns(**moved)


def _places(dataset: settings.Dataset, documents: pl.DataFrame) -> pl.DataFrame:
    """Each place of a document's text where the words of a mention occur, whatever their case."""
    table = _table(dataset)
    table = table.with_columns(clean(table["mention"], dataset.cleaning))
    rows = []
    both = table.join(documents.select("document_id", "text"), on="document_id", how="inner", maintain_order="left")
    for document, label, mention, text in both.filter(pl.col("mention") != "").rows():
        whole = re.compile(rf"(?<!\w){re.escape(mention.strip())}(?!\w)", re.IGNORECASE)
        rows += [(document, label, match.start(), match.end()) for match in whole.finditer(text)]
    return pl.DataFrame(rows, schema=MARKS, orient="row")
