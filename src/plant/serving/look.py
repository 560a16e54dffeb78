"""A look at a user's table: which column is what, how labels are separated, how large it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plant.baselines.words import split_words
from plant.corpus.documents import ID
from plant.corpus.scripts import word_warnings
from plant.corpus.sources.table import MOVED, SEPARATORS, separates
from plant.corpus.sources.table import read as read_table
from plant.corpus.splits import canonical_name
from plant.corpus.tables import alike, is_plain, load_table
from plant.ground.errors import InputError
from plant.ground.settings import OwnTable

NAMES = {
    "text": "text note document body abstract content description readme summary",
    "labels": "labels codes tags categories topics classes subjects concepts keywords "
    "label code tag category topic class",
    "id": "id document_id doc_id name key uid",
    "split": "split partition fold",  # of several columns that name splits, this one is taken
    "group": "group patient patient_id subject_id author",
}
"""What people call the columns; the first name that fits is taken."""
MISSING = {
    "text": "Name the column of texts: --text-column COLUMN.",
    "labels": "Name the column of labels: --labels-column COLUMN. It holds all labels of a document, with ';' between "
    "them. A table with one column (0 or 1) for each label: write the names of the labels with 1 into one column.",
}
"""What to do about a column that is not there."""
FUNCTION_WORDS = {
    "English": "the and of with was for that is", "Spanish": "el los las una con por que del",
    "French": "le les des une dans pour est avec", "German": "der die und das mit ein nicht ist",
    "Italian": "il gli della che con una per sono", "Portuguese": "os uma com para não em dos mais",
    "Dutch": "het een van en met dat niet zijn",
}  # fmt: skip
"""Frequent words of a language: the language of a sample is the one that has the most of them."""
ALONE = 0.2
"""Share of cells whose words are each a whole cell too: from here on, words are labels. Phrases have less than 0.03
(EuroVoc, terms of US bills), and tags more than 0.2 unless each document has many."""
SAMPLE = 500
"""Documents that are looked at for the language."""


@dataclass(frozen=True)
class Look:
    """What a table holds.

    Attributes:
        columns: role (`text`, `labels`, and `id`, `split`, `group` where there is one) -> column.
        separator: between labels; None where the column holds lists.
        words, labels_of_document: means over the documents.
        several, unlabelled: documents with more than one label, and with none.
        splits: split -> documents; empty without a column of splits.
        unread: columns without a role.
        warnings: what is wrong with the texts, in sentences that quote none of them.
    """

    path: Path
    columns: Mapping[str, str]
    separator: str | None
    documents: int
    labels: int
    words: float
    labels_of_document: float
    language: str | None
    several: int
    unlabelled: int
    splits: Mapping[str, int]
    unread: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def look(path: Path, *, text_column: str | None = None, labels_column: str | None = None) -> Look:
    """Look at a table. The columns of texts and labels are looked for if they are not named.

    Raises:
        InputError: it is empty, a column is not there or was not found, or training would refuse the table.
    """
    table = load_table(path).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    if not len(table):
        raise InputError(str(path), expected="documents", got="an empty table", fix="Check the file.")
    for name in (text_column, labels_column):
        if name is not None and name not in table.columns:
            raise InputError(
                str(path), expected=f"a column {name!r}", got=f"{len(table.columns)} columns, none of this name",
                fix=f"{alike(name, table.columns)}Name one that is there.",
            )  # fmt: skip
    if text_column is not None and text_column == labels_column:
        raise InputError(
            str(path), expected="a column of texts and another one of labels", got=f"{text_column!r} for both",
            fix="Name two columns.",
        )  # fmt: skip
    free = [name for name in table.columns if name != text_column]
    lists = [name for name in free if table[name].dtype in (pl.List, pl.Array)]
    labels = labels_column or _named("labels", free) or next(iter(lists), None)
    strings = [name for name in table.columns if table[name].dtype == pl.String and name != labels]
    strings = [name for name in strings if not _are_names(table[name])] or strings  # `document` may hold names
    lengths = {name: float(table[name].str.len_chars().mean() or 0) for name in strings}  # type: ignore[arg-type]
    text = text_column or _named("text", strings) or max(lengths, key=lambda name: lengths[name], default=None)
    others = [name for name in table.columns if name not in (text, labels)]
    unique = [name for name in others if is_plain(table[name].dtype) and table[name].is_unique().all()]
    id_column = _named("id", unique) or next((name for name in unique if _are_ids(table[name])), None)
    columns = {"text": text, "labels": labels}
    for role, column in columns.items():
        if column is None:
            raise InputError(
                str(path), expected=f"a column of {role}{'' if role == 'labels' else 's'}",
                got=f"{len(table.columns)} columns, none of which looks like it", fix=MISSING[role],
            )  # fmt: skip
    more = {"split": _split_column(table, others), "group": _named("group", others)}
    more = {role: name for role, name in more.items() if name != id_column}
    found = {role: str(name) for role, name in (columns | {"id": id_column} | more).items() if name is not None}
    cells = table[found["labels"]]
    separator = best_separator(cells.fill_null("")) if cells.dtype == pl.String else None
    given: dict[str, str | None] = {"id_column": None} | {f"{role}_column": name for role, name in found.items()}
    if separator is not None:
        given["label_separator"] = separator
    frame = read_table(
        OwnTable(source="table", path=str(path), **given), path
    ).frame  # its errors and warnings come now
    label = pl.element().str.strip_chars()
    labels_of = frame["labels"].list.eval(label.filter(label != ""))
    names, texts = labels_of.explode().drop_nulls(), frame["text"]
    if names.is_empty():
        raise InputError(
            str(path), expected=f"labels in the column {found['labels']!r}", got="none in any document",
            fix="Name the column of labels: --labels-column COLUMN.",
        )  # fmt: skip
    return Look(
        path, found, separator, len(table), names.n_unique(),
        float(texts.str.count_matches(r"\w+").mean() or 0), len(names) / len(table), language(texts.head(SAMPLE)),  # type: ignore[arg-type]
        int((labels_of.list.n_unique() > 1).sum()), int((labels_of.list.len() == 0).sum()),
        dict(frame["split"].value_counts().iter_rows()) if "split" in found else {},
        tuple(name for name in table.columns if name not in found.values()),
        (*_shared_names(table, id_column, others, taken=found.values()), *_alike(names), *word_warnings(texts)),
    )  # fmt: skip


def _named(role: str, columns: Sequence[str]) -> str | None:
    by_name = {name.strip().lower(): name for name in reversed(columns)}
    return next((by_name[name] for name in NAMES[role].split() if name in by_name), None)


def _are_ids(values: pl.Series) -> bool:
    """Whether values look like names of documents: a second text would hold white space."""
    return not values.cast(pl.String).str.contains(r"\s").any()


def _shared_names(
    table: pl.DataFrame, id_column: str | None, columns: Sequence[str], *, taken: Iterable[str]
) -> Iterator[str]:
    """A warning if several documents have the same id: they may be of one patient, and must not be in two splits."""
    column = None if id_column else _named("id", [name for name in columns if name not in taken])
    if column is not None:
        yield (
            f"the column {column} has {table[column].n_unique():,} different values for {len(table):,} documents, so "
            f"it is not read as an id. If it names a patient or an author, write `group_column: {column}`: it keeps "
            "their documents in one split."
        )


def _alike(labels: pl.Series) -> Iterator[str]:
    """A warning if labels differ in capitals, spaces or the form of their accents alone."""
    unique = labels.unique()
    same = len(unique) - unique.str.normalize("NFKC").str.to_lowercase().str.replace_all(r"\s+", " ").n_unique()
    if same:
        yield (
            f"{same:,} labels differ from another one only in capitals, spaces or the Unicode form of accents. Here "
            "they are different labels: write them in one way if they mean the same."
        )


def _are_names(values: pl.Series) -> bool:
    """Whether all values look like ids or codes, and none like a text."""
    return bool(values.str.contains(rf"^{ID.pattern}$").all())


def _split_column(table: pl.DataFrame, columns: Sequence[str]) -> str | None:
    """The column that names splits, whatever its name: only its values can tell."""
    plain = [name for name in columns if is_plain(table[name].dtype)]
    first = _named("split", plain)
    return next((name for name in ([first] if first else []) + plain if _is_split(table[name])), None)


def _is_split(values: pl.Series) -> bool:
    try:
        return {"train"} < {canonical_name(str(value), where="") for value in values.unique()}
    except InputError:
        return False


def best_separator(cells: pl.Series) -> str:
    """What stands between labels: of the signs that may, the one that gives labels the most documents; else `;`.

    A space counts between codes alone (each has a digit) and between tags (`are_tags`): names of labels hold spaces.

    >>> best_separator(pl.Series(["a|b", "b", "a|c"])), best_separator(pl.Series(["heart failure", "heart attack"] * 2))
    ('|', ';')
    """
    cells = cells.str.strip_chars()
    cells = cells.filter(cells != "")
    documents = {}
    for sign in (";", *SEPARATORS):
        parts = cells.str.split(sign).explode().str.strip_chars()
        if sign != " " or parts.str.contains(r"\d").all():
            documents[sign] = separates(cells, sign)
    best = max(documents, key=lambda sign: documents[sign])
    return " " if not documents[best] and are_tags(cells) else best


def are_tags(cells: pl.Series) -> bool:
    """Whether cells (stripped, none empty) look like tags with a space between them, and not like phrases.

    No cell may hold another separator, and one of these must be true:

    - Words stand alone: of the cells with several words, at least `ALONE` consist of words that are each the whole
      cell of another document. `New York` is a label, and `New` is none.
    - Words change places: at most half as many different words as different cells, a tenth of the cells or more
      differ, and more than `MOVED` of the words are first in one cell and later in another. Words of phrases seldom
      are so few, and phrases come back as a whole.

    >>> are_tags(pl.Series(["sport", "sport economy", "economy"])), are_tags(pl.Series(["New York", "old York", "old"]))
    (True, False)
    """
    others = [sign for sign in SEPARATORS if sign != " "]
    if cells.str.contains_any(others).any():
        return False
    lists = cells.str.extract_all(r"\S+")
    several = lists.filter(lists.list.len() > 1)
    if not len(several):
        return False
    whole = set(cells)
    if sum(map(whole.issuperset, several)) >= ALONE * len(several):
        return True
    words, first, later = lists.explode(), lists.list.first(), several.list.slice(1).explode()
    few = 2 * words.n_unique() <= cells.n_unique() and 10 * cells.n_unique() >= len(cells)
    return few and float(later.is_in(first.implode()).mean() or 0) > MOVED  # type: ignore[arg-type]


def language(texts: Sequence[str] | pl.Series) -> str | None:
    """The language with the most function words; None where there are none.

    >>> language(["el paciente con fiebre", "las causas del dolor"])
    'Spanish'
    """
    words = [word for text in texts for word in split_words(text)]
    found = {name: sum(map(set(known.split()).__contains__, words)) for name, known in FUNCTION_WORDS.items()}
    best = max(found, key=lambda name: found[name])
    return best if found[best] else None
