"""Mentions: only those of training documents, of labels that they have in the corpus."""

import stat
from pathlib import Path

import polars as pl
import pytest

from plant.corpus.build import build_corpus
from plant.corpus.mentions import read_mentions, write_mentions
from plant.ground import settings
from plant.ground.errors import InputError

LINES = [
    "{train}\tDIAGNOSTICO\tq00.0\tdolor de\t0 5;9 11",
    "{train}\tPROCEDIMIENTO\t{code}\tplaca\t0 5",
    "{train}\tDIAGNOSTICO\t{code}\t fiebre \t0 5",
    "{train}\tDIAGNOSTICO\tz99.9\tnada\t0 5",
]


def own(folder: Path, rows: list[tuple[str, str, str]], **more) -> settings.Table:
    raw = {"id": ["a", "b", "c"], "text": ["one", "two", "three"], "labels": ["x;y"] * 3}
    pl.DataFrame({**raw, "split": ["train", "val", "test"]}).write_csv(folder / "raw.csv")
    pl.DataFrame(rows, schema=["document", "label", "mention"], orient="row").write_csv(folder / "marked.csv")
    paths = {"path": str(folder / "raw.csv"), "split_column": "split", "mentions": str(folder / "marked.csv")}
    return settings.Table(source="table", **paths, **more)


def test_codiesp_marks_the_spanish_training_texts(codiesp: Path, tmp_path: Path) -> None:
    dataset = settings.CodiEsp(source="codiesp", path=str(codiesp), language="es")
    assert dataset.has_mentions
    assert not settings.CodiEsp(source="codiesp", path=str(codiesp), language="en").has_mentions
    build_corpus(dataset, tmp_path / "corpus")
    first = pl.read_parquet(tmp_path / "corpus/train.parquet").row(0, named=True)
    code = first["labels"][0].lower()
    train = next(iter(codiesp.rglob("train")))
    lines = [line.format(train=first["document_id"], code=code) for line in LINES]
    (train / "trainX.tsv").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "mentions.parquet"
    write_mentions(dataset, tmp_path / "corpus", out)
    assert read_mentions(out).rows() == [(first["document_id"], code.upper(), "fiebre")]
    (train / "trainX.tsv").unlink()
    with pytest.raises(InputError, match=r"train/trainX\.tsv, got an archive without it"):
        write_mentions(dataset, tmp_path / "corpus", tmp_path / "other.parquet")
    assert not (tmp_path / "other.parquet").exists()


def test_a_table_gives_mentions_in_the_order_of_documents(tmp_path):
    dataset = own(tmp_path, [("b", "x", "seen in val"), ("a", "y", "two"), ("a", "x", "one"), ("a", "z", "other")])
    build_corpus(dataset, tmp_path / "corpus")
    write_mentions(dataset, tmp_path / "corpus", tmp_path / "mentions.parquet")
    assert read_mentions(tmp_path / "mentions.parquet").rows() == [("a", "x", "one"), ("a", "y", "two")]


def test_mentions_of_credentialed_texts_are_their_owners(tmp_path):
    dataset = own(tmp_path, [("a", "x", "one")], credentialed=True)
    build_corpus(dataset, tmp_path / "corpus")
    write_mentions(dataset, tmp_path / "corpus", tmp_path / "mentions.parquet")
    assert stat.S_IMODE((tmp_path / "mentions.parquet").stat().st_mode) == 0o600


def test_what_is_wrong_is_said_without_the_words(tmp_path):
    dataset = own(tmp_path, [("b", "x", "xylophonist")])
    build_corpus(dataset, tmp_path / "corpus")
    with pytest.raises(InputError, match="mentions of labels of training documents, got those of 1") as told:
        write_mentions(dataset, tmp_path / "corpus", tmp_path / "mentions.parquet")
    assert "xylophonist" not in str(told.value)
    bare = dataset.model_copy(update={"mentions": None})
    with pytest.raises(InputError, match="a dataset with mentions"):
        write_mentions(bare, tmp_path / "corpus", tmp_path / "mentions.parquet")
    (tmp_path / "marked.csv").write_text("document,label\na,x\n")
    with pytest.raises(InputError, match="the columns document, label, mention, got 2 columns, no mention"):
        write_mentions(dataset, tmp_path / "corpus", tmp_path / "mentions.parquet")
    assert not (tmp_path / "mentions.parquet").exists()
