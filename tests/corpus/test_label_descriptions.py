"""Descriptions from a file of their own."""

from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError

from plant.corpus.build import build_corpus
from plant.corpus.descriptions import read_descriptions
from plant.ground.errors import InputError
from plant.ground.settings import OwnTable, Subset

LIST = """<?xml version="1.0"?>
<ICD10CM.tabular><chapter><desc>no code</desc><section><diag><name>M80</name><desc>Osteoporosis</desc>
<inclusionTerm><note>brittle bones</note></inclusionTerm>
<excludes1><note>another thing</note></excludes1>
<diag><name>M80.08</name><desc>Fracture</desc></diag></diag></section></chapter></ICD10CM.tabular>
"""


def labelled(folder: Path, labels: str) -> dict[str, str]:
    rows = {"id": ["a", "b", "c"], "text": ["one", "two", "three"], "labels": [labels] * 3}
    pl.DataFrame({**rows, "split": ["train", "val", "test"]}).write_csv(folder / "raw.csv")
    return {"path": str(folder / "raw.csv"), "split_column": "split"}


def described(folder: Path, labels: str, path: Path) -> list[str | None]:
    out = folder / "corpus"
    build_corpus(OwnTable(source="table", **labelled(folder, labels), descriptions=str(path)), out)
    return pl.read_parquet(out / "labels.parquet")["description"].to_list()


def test_a_table_may_have_several_rows_a_label(tmp_path):
    path = tmp_path / "titles.tsv"
    path.write_text("label\tdescription\tother\nR52\tPain\tx\nR05\tCough\ty\nR52\tache\tz\nR52\tPain\tz\nR99\t\tx\n")
    assert read_descriptions(path) == {"R52": "Pain; ache", "R05": "Cough"}
    assert described(tmp_path, "R05;R52;R5", path) == ["Cough", None, "Pain; ache"]


def test_a_space_behind_the_sign_between_labels_costs_no_description(tmp_path):
    """The corpus removes it; the descriptions were kept under the names with it, and lost."""
    path = tmp_path / "titles.csv"
    path.write_text("label,description\nR05,Cough\nR52,Pain\n")
    assert described(tmp_path, "R05; R52", path) == ["Cough", "Pain"]


def test_the_tabular_list_gives_titles_and_inclusion_terms(tmp_path):
    path = tmp_path / "list.xml"
    path.write_text(LIST)
    assert read_descriptions(path) == {"M80": "Osteoporosis; brittle bones", "M80.08": "Fracture"}
    found = described(tmp_path, "M80.08XA;M80.08X;M80.0;M8;M80.0855555", path)
    assert found == [None, "Osteoporosis; brittle bones", None, "Fracture", "Fracture"]  # in the order of labels


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("titles.csv", "label,text\na,b\n", "the columns label, description, got 2 columns, no description"),
        ("titles.csv", "label,description\na,\n", "labels and descriptions, got none"),
        (
            "titles.csv",
            "label,description\nother,thing\n",
            "descriptions of the dataset's labels, got 1 of other labels",
        ),
        ("list.xml", "<a><b></a>", "the tabular list of ICD-10-CM as XML, got no XML"),
        ("list.xml", "<a></a>", "labels and descriptions, got none"),
        (None, "", "titles.csv"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(tmp_path, name, content, message):
    path = tmp_path / (name or "titles.csv")
    if name:
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        described(tmp_path, "a", path)
    assert not (tmp_path / "corpus/labels.parquet").exists()


@pytest.mark.parametrize("own", [{"descriptions": "titles.csv"}, {"cleaning": {"style": "edin"}}])
def test_a_part_takes_descriptions_and_cleaning_of_the_whole(own):
    with pytest.raises(ValidationError, match="that of the dataset that it is a part of is used; set it there"):
        Subset(source="subset", of="whole", **own)
