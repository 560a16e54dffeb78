"""What people marked: words of training documents, and characters of test texts wherever cleaning moved them."""

import stat
from pathlib import Path

import polars as pl
import pytest

from plant.corpus.build import build_corpus
from plant.corpus.marks import read_marks, require_marks, write_marks, write_mentions
from plant.ground import settings
from plant.ground.errors import InputError

TEXT = "Dolor de 12 días; FIEBRE alta (38 ºC), sin tos."
ROWS = [("c", "x", "pain"), ("c", "y", "chest pain"), ("c", "z", "no"), ("b", "x", "seen in val")]
ROWS += [("a", "y", "two"), ("a", "x", "one"), ("a", "z", "other")]


def spanish(codiesp: Path, lines: list[str], split: str = "test", **cleaning) -> settings.CodiEsp:
    """CodiEsp in which these lines are marked in one split, and whose first test text is TEXT."""
    folder = next(iter(codiesp.rglob(split)))
    (folder / f"{split}X.tsv").write_text("\n".join(lines), encoding="utf-8")
    (folder.parent / "test/text_files/S-test-0.txt").write_text(TEXT, encoding="utf-8")
    return settings.CodiEsp(source="codiesp", path=str(codiesp), language="es", cleaning=settings.Cleaning(**cleaning))


def table(folder: Path, rows: list[tuple[str, str, str]] = ROWS, **more) -> settings.OwnTable:
    raw = {"id": ["a", "b", "c"], "text": ["one", "two", "Pain, no pain; painful (chest pain)"], "labels": ["x;y"] * 3}
    pl.DataFrame({**raw, "split": ["train", "val", "test"]}).write_csv(folder / "raw.csv")
    pl.DataFrame(rows, schema=["document", "label", "mention"], orient="row").write_csv(folder / "marked.csv")
    paths = {"path": str(folder / "raw.csv"), "split_column": "split", "mentions": str(folder / "marked.csv")}
    return settings.OwnTable(source="table", **paths, **more)


def mentions(dataset: settings.Dataset, folder: Path) -> list[tuple[str, str, str]]:
    build_corpus(dataset, folder / "corpus")
    write_mentions(dataset, folder / "corpus", folder / "mentions.parquet")
    return pl.read_parquet(folder / "mentions.parquet").rows()


def words(dataset: settings.Dataset, folder: Path) -> list[tuple[str, str, str]]:
    """Document, label and the marked characters of the corpus."""
    build_corpus(dataset, folder / "corpus")
    write_marks(dataset, folder / "corpus", folder / "marks.parquet")
    texts = dict(pl.read_parquet(folder / "corpus/test.parquet").select("document_id", "text").rows())
    marks = read_marks(folder / "marks.parquet")
    return [(document, label, texts[document][start:end]) for document, label, start, end in marks.rows()]


def test_codiesp_gives_the_mentions_of_training_texts(codiesp, tmp_path):
    lines = [
        "S-train-0\tDIAGNOSTICO\tq00.0\tdolor de\t0 5;9 11",  # not a label of the document
        "S-train-0\tPROCEDIMIENTO\tr52\tplaca\t0 5",  # no diagnosis
        "S-train-0\tDIAGNOSTICO\tr52\t fiebre \t0 5",
    ]
    dataset = spanish(codiesp, lines, "train")
    assert mentions(dataset, tmp_path) == [("S-train-0", "R52", "fiebre")]
    next(iter(codiesp.rglob("trainX.tsv"))).unlink()
    with pytest.raises(InputError, match=r"train/trainX\.tsv, got an archive without it"):
        write_mentions(dataset, tmp_path / "corpus", tmp_path / "other.parquet")
    assert not (tmp_path / "other.parquet").exists()


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


def test_a_table_gives_mentions_in_the_order_of_documents_and_marks_each_place_of_a_test_document(tmp_path):
    dataset = table(tmp_path)
    assert mentions(dataset, tmp_path) == [("a", "x", "one"), ("a", "y", "two")]
    expected = [("c", "x", "Pain"), ("c", "x", "pain"), ("c", "x", "pain"), ("c", "y", "chest pain")]
    assert words(dataset, tmp_path) == expected


def test_what_was_marked_in_credentialed_texts_is_their_owners_and_marks_hold_no_word(tmp_path):
    dataset = table(tmp_path, credentialed=True)
    mentions(dataset, tmp_path)
    words(dataset, tmp_path)
    modes = {stat.S_IMODE((tmp_path / f"{name}.parquet").stat().st_mode) for name in ("mentions", "marks")}
    assert modes == {0o600}
    assert read_marks(tmp_path / "marks.parquet").columns == ["document_id", "label", "start", "end"]


@pytest.mark.parametrize("language", ["en", None])
def test_a_dataset_without_marks_is_refused_and_told_what_has_some(codiesp, tmp_path, language):
    dataset = table(tmp_path).model_copy(update={"mentions": None})
    if language:
        dataset = settings.CodiEsp(source="codiesp", path=str(codiesp), language=language)
    for refused in (require_marks, lambda one: write_mentions(one, tmp_path, tmp_path / "mentions.parquet")):
        with pytest.raises(InputError, match=r"people marked the words of each label .* got source (table|codiesp)"):
            refused(dataset)


@pytest.mark.parametrize(
    ("lines", "said"),
    [(["S-test-0\tDIAGNOSTICO\tr52\tSECRETO\tfrom 3"], "positions `start end` in testX.tsv, got other text"),
     (["S-test-0\tDIAGNOSTICO\tr52\tSECRETO"], "document, kind, code, mention, position in every line"),
     (["S-test-0\tDIAGNOSTICO\tz99.9\tSECRETO\t0 5"], "marked words of labels of its documents, got none")],
)  # fmt: skip
def test_what_is_wrong_with_marks_is_said_without_the_words(codiesp, tmp_path, lines, said):
    with pytest.raises(InputError, match=said) as told:
        words(spanish(codiesp, lines), tmp_path)
    assert "SECRETO" not in str(told.value)
    assert not (tmp_path / "marks.parquet").exists()


@pytest.mark.parametrize(
    ("marked", "said"),
    [(None, "marked words of labels of its documents, got none"),
     ("document,label\na,x\n", "the columns document, label, mention, got 2 columns, no mention")],
)  # fmt: skip
def test_what_is_wrong_with_mentions_is_said_without_the_words(tmp_path, marked, said):
    dataset = table(tmp_path, [("b", "x", "xylophonist")])
    if marked:
        (tmp_path / "marked.csv").write_text(marked)
    with pytest.raises(InputError, match=said) as told:
        mentions(dataset, tmp_path)
    assert "xylophonist" not in str(told.value)
    assert not (tmp_path / "mentions.parquet").exists()
