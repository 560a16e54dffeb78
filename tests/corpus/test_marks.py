"""Marks: the characters that people marked in the test texts of a corpus, wherever text cleaning moved them."""

import stat
from pathlib import Path

import polars as pl
import pytest

from plant.corpus.build import build_corpus
from plant.corpus.marks import read_marks, require_marks, write_marks
from plant.ground import settings
from plant.ground.errors import InputError

TEXT = "Dolor de 12 días; FIEBRE alta (38 ºC), sin tos."


def spanish(codiesp: Path, lines: list[str], **cleaning) -> settings.CodiEsp:
    """CodiEsp whose first test text is TEXT."""
    test = next(iter(codiesp.rglob("test")))
    (test / "text_files" / "S-test-0.txt").write_text(TEXT, encoding="utf-8")
    (test / "testX.tsv").write_text("\n".join(lines), encoding="utf-8")
    return settings.CodiEsp(source="codiesp", path=str(codiesp), language="es", cleaning=settings.Cleaning(**cleaning))


def words(dataset: settings.Dataset, folder: Path) -> list[tuple[str, str, str]]:
    """Document, label and the marked characters of the corpus."""
    build_corpus(dataset, folder / "corpus")
    write_marks(dataset, folder / "corpus", folder / "marks.parquet")
    texts = dict(pl.read_parquet(folder / "corpus/test.parquet").select("document_id", "text").rows())
    marks = read_marks(folder / "marks.parquet")
    return [(document, label, texts[document][start:end]) for document, label, start, end in marks.rows()]


@pytest.mark.parametrize(
    ("cleaning", "expected"),
    [({}, ["FIEBRE", "alta", "Dolor", "días"]), ({"style": "caml"}, ["fiebre", "alta", "dolor", "días"]),
     ({"style": "edin"}, ["fiebre", "alta", "dolor", "d as"]), ({"max_words": 5}, ["FIEBRE", "Dolor", "días"])],
    ids=["raw", "caml", "edin", "cut"],
)  # fmt: skip
def test_codiesp_marks_follow_the_words_through_cleaning(codiesp, tmp_path, cleaning, expected):
    lines = [
        "S-test-0\tDIAGNOSTICO\tn44.8\tfiebre alta\t18 24;25 29",
        "S-test-0\tDIAGNOSTICO\tr52\tDolor días\t0 5;12 16",
        "S-test-0\tPROCEDIMIENTO\tbw03zzz\ttos\t43 46",  # no diagnosis
        "S-test-0\tDIAGNOSTICO\tz99.9\ttos\t43 46",  # not a label of the document
        "S-test-0\tDIAGNOSTICO\tn44.8\tnada\t7 7",  # empty
    ]
    found = words(spanish(codiesp, lines, **cleaning), tmp_path)
    assert {document for document, _, _ in found} == {"S-test-0"}
    assert {label for _, label, _ in found} == {"N44.8", "R52"}
    assert [text.strip() for _, _, text in found] == expected


def table(folder: Path, **more) -> settings.Table:
    raw = {"id": ["a", "b", "c"], "text": ["one", "two", "Pain, no pain; painful (chest pain)"], "labels": ["x;y"] * 3}
    pl.DataFrame({**raw, "split": ["train", "val", "test"]}).write_csv(folder / "raw.csv")
    rows = [("c", "x", "pain"), ("c", "y", "chest pain"), ("c", "z", "no"), ("a", "x", "one")]
    pl.DataFrame(rows, schema=["document", "label", "mention"], orient="row").write_csv(folder / "marked.csv")
    paths = {"path": str(folder / "raw.csv"), "split_column": "split", "mentions": str(folder / "marked.csv")}
    return settings.Table(source="table", **paths, **more)


def test_a_table_marks_each_place_of_a_test_document_where_the_words_are(tmp_path):
    expected = [("c", "x", "Pain"), ("c", "x", "pain"), ("c", "x", "pain"), ("c", "y", "chest pain")]
    assert words(table(tmp_path), tmp_path) == expected


def test_marks_of_credentialed_texts_are_their_owners_and_hold_no_word(tmp_path):
    dataset = table(tmp_path, credentialed=True)
    build_corpus(dataset, tmp_path / "corpus")
    write_marks(dataset, tmp_path / "corpus", tmp_path / "marks.parquet")
    assert stat.S_IMODE((tmp_path / "marks.parquet").stat().st_mode) == 0o600
    assert read_marks(tmp_path / "marks.parquet").columns == ["document_id", "label", "start", "end"]


@pytest.mark.parametrize("language", ["en", None])
def test_a_dataset_without_marks_is_refused_and_told_what_has_some(codiesp, tmp_path, language):
    dataset = table(tmp_path).model_copy(update={"mentions": None})
    if language:
        dataset = settings.CodiEsp(source="codiesp", path=str(codiesp), language=language)
    with pytest.raises(InputError, match=r"people marked the words of each label .* got source (table|codiesp)"):
        require_marks(dataset)


@pytest.mark.parametrize(
    ("lines", "said"),
    [(["S-test-0\tDIAGNOSTICO\tr52\tSECRETO\tfrom 3"], "positions `start end` in testX.tsv, got other text"),
     (["S-test-0\tDIAGNOSTICO\tr52\tSECRETO"], "document, kind, code, mention, position in every line"),
     (["S-test-0\tDIAGNOSTICO\tz99.9\tSECRETO\t0 5"], "marked words of labels of test documents, got none")],
)  # fmt: skip
def test_what_is_wrong_is_said_without_the_words(codiesp, tmp_path, lines, said):
    dataset = spanish(codiesp, lines)
    build_corpus(dataset, tmp_path / "corpus")
    with pytest.raises(InputError, match=said) as told:
        write_marks(dataset, tmp_path / "corpus", tmp_path / "marks.parquet")
    assert "SECRETO" not in str(told.value)
    assert not (tmp_path / "marks.parquet").exists()
