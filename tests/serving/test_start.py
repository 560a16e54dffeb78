"""`plant init`, `plant train` and `plant doctor`: from a table of one's own to a config that runs."""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import polars as pl
import pytest
import yaml

from plant.commandline import main
from plant.ground.errors import InputError
from plant.ground.settings import load
from plant.serving import doctor
from plant.serving.look import look
from plant.serving.start import config_for

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [f"the patient {number} was seen with pain and a long history of it" for number in range(12)]
CODES = [["A", "B"], ["B"], ["C", "A"], ["C"]] * 3


def write(path: Path, columns: dict) -> Path:
    table = pl.DataFrame(columns)
    {".csv": table.write_csv, ".parquet": table.write_parquet, ".jsonl": table.write_ndjson}[path.suffix](path)
    return path


def joined(separator: str) -> list[str]:
    return [separator.join(codes) for codes in CODES]


SPLITS = ["train"] * 8 + ["dev"] * 2 + ["test"] * 2
TABLES = {
    "as the README names them.csv": (
        {"id": range(12), "text": TEXTS, "labels": joined(";")}, {"id": "id", "text": "text", "labels": "labels"}, ";",
    ),
    "other names.csv": (
        {"Visit": [f"v{n}" for n in range(12)], "Note": TEXTS, "Codes": joined("|"), "patient": [1, 2] * 6},
        {"id": "Visit", "text": "Note", "labels": "Codes", "group": "patient"}, "|",
    ),
    "codes and spaces.csv": (
        {"id": range(12), "text": TEXTS, "labels": [" ".join(f"{code}1.2" for code in some) for some in CODES]},
        {"id": "id", "text": "text", "labels": "labels"}, " ",
    ),
    "labels that are longer than texts.csv": (
        {"sign": [chr(0x1F600 + n) for n in range(12)], "title": TEXTS, "keywords": [f"{s:<99}" for s in joined(";")]},
        {"id": "sign", "text": "title", "labels": "keywords"}, ";",
    ),
    "lists and splits.parquet": (
        {"key": range(12), "body": TEXTS, "tags": CODES, "split": SPLITS},
        {"id": "key", "text": "body", "labels": "tags", "split": "split"}, None,
    ),
    "train and test alone.jsonl": (
        {"id": range(12), "text": TEXTS, "labels": CODES, "fold": ["train"] * 8 + ["test"] * 4},
        {"id": "id", "text": "text", "labels": "labels", "split": "fold"}, None,
    ),
    "no column of ids.csv": (
        {"name": ["x", "y"] * 6, "text": TEXTS, "labels": joined(";")}, {"text": "text", "labels": "labels"}, ";",
    ),
    "a name that comes again.csv": (
        {"name": ["x", "y"] * 6, "key 2": range(12), "text": TEXTS, "labels": joined(";")},
        {"id": "key 2", "text": "text", "labels": "labels"}, ";",
    ),
    "document is a name.csv": (
        {"document": [f"D-{n}" for n in range(12)], "transcript": TEXTS, "topics": joined(";")},
        {"id": "document", "text": "transcript", "labels": "topics"}, ";",
    ),
    "commas.jsonl": (
        {"id": range(12), "text": TEXTS, "labels": joined(", "), "split": ["a"] * 12},
        {"id": "id", "text": "text", "labels": "labels"}, ",",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_look_finds_columns_separator_and_sizes_and_the_config_reads_the_table_so(tmp_path, name):
    columns, roles, separator = TABLES[name]
    seen = look(write(tmp_path / name, columns))
    assert (dict(seen.columns), seen.separator) == (roles, separator)
    assert (seen.documents, seen.labels, seen.labels_of_document) == (12, 3, 1.5)
    assert (seen.language, seen.words) == ("English", 13.0)
    text = config_for(seen)
    dataset = load(yaml.safe_load(text)).datasets["mine"]
    for role in ("id", "text", "labels", "split", "group"):
        assert getattr(dataset, f"{role}_column") == roles.get(role)
    assert separator in (None, dataset.label_separator)
    assert text.count(" # ") > 20  # the comments stay
    assert not set(TEXTS) & set(re.findall("the patient.*", text))


PAIR, FOUR = ["a;b", "b"], ["a;b", "b", "a", "b;a"]
PARTS = ["train"] * 30 + ["val"] * 10
SAID: dict[str, tuple[dict, list[str], str]] = {
    "spaces": (
        {"labels": ["sport", "sport politics", "politics sport", "politics"] * 10},
        ["Labels are cut at spaces; 20 documents have more than one label.",
         'If a label is a phrase of several words, write `label_separator: ";"` in the config.'], "cut at commas",
    ),
    "commas": (
        {"labels": ["New York,travel", "travel"] * 20},
        ["Labels are cut at commas (`label_separator`); 20"], "No document has several labels",
    ),
    "one label each": (
        {"labels": ["New York", "travel"] * 20}, ["No document has several labels. If some have, write"], "are cut at",
    ),
    "no label, and a category": (
        {"category": ["a", "", "b"] * 4},
        ["4 documents have no label and are left out.", "category (labels)"], "differ from another",
    ),
    "a name that comes again is no id": (
        {"name": ["x", "y"] * 10, "labels": PAIR * 10},
        ["Columns: text (text), labels (labels), id (id)."], "Documents are numbered",
    ),
    "columns that may name splits or patients": (
        {"labels": PAIR * 4, "paciente": ["p", "q"] * 4, "t" * 41: ["x"] * 8, **{f"c{n}": ["x"] * 8 for n in range(6)}},
        ["Not read: paciente, c0, c1, c2, c3 and 2 more. If one has the texts, the labels, the splits or"], "ttt",
    ),
    "nothing else": ({"labels": PAIR * 4}, ["Labels are cut at semicolons"], "Not read"),
    "labels that differ in their spelling": (
        {"labels": ["Sport;caf\u00e9", "sport;cafe\u0301", "a  b;c", "a b;SPORT"]},
        ["Warning: 4 labels differ from another one only in capitals, spaces or"], "left out",
    ),
    "ids that come again, of one patient each": (
        {"labels": PAIR * 10, "id": [number // 2 for number in range(20)]},
        ["the column id has 10 different values for 20 documents", "`group_column: id`",
         "Documents are numbered from 1"], "id (id)",
    ),
    "a split that is drawn from train": (
        {"labels": FOUR * 10, "split": PARTS},
        ["The column of splits names no test documents: a part of its 30 train documents", "becomes the test split"],
        "no val documents",
    ),
    "all splits": (
        {"labels": FOUR * 10, "split": ["test"] * 5 + PARTS[5:]}, ["split (split)"], "column of splits",
    ),
    "texts without spaces": (
        {"labels": FOUR * 10, "text": ["今天天气很好，我们去公园散步吧"] * 40},
        ["Warning: 40 of 40 documents are in a script without spaces (Chinese or Japanese)",
         "Put a space between words beforehand", "count no word of one character"], "今天",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
def test_what_was_guessed_is_said_with_what_to_do_if_it_is_wrong(tmp_path, capsys, what):
    columns, said, unsaid = SAID[what]
    rows, out = len(next(iter(columns.values()))), tmp_path / "out.yaml"
    texts = {"id": range(rows), "text": [f"{TEXTS[0]} {row}" for row in range(rows)]}
    main(["init", str(write(tmp_path / "mine.csv", texts | columns)), "--out", str(out)])
    for text in (capsys.readouterr().out, " ".join(out.read_text().replace("#", "").split())):
        assert [part for part in said if part not in text] == []
        assert unsaid not in text
    load(yaml.safe_load(out.read_text()))


def test_a_column_of_splits_is_known_by_its_values_whatever_its_name(tmp_path):
    """Else the documents would be dealt anew, and the table's own test split would be trained on."""
    rows = {"text": TEXTS[:4], "labels": ["a", "b", "a", "b"]}
    own = {"fold": [1, 2, 3, 4], "part": ["Train", "train", "dev", "test"], "site": ["train", "north", "south", "test"]}
    assert look(write(tmp_path / "own.csv", rows | own)).columns["split"] == "part"
    assert look(write(tmp_path / "own.csv", rows | own)).splits == {"train": 2, "val": 1, "test": 1}
    both = own | {"partition": ["train", "test", "test", "train"]}
    assert look(write(tmp_path / "both.csv", rows | both)).columns["split"] == "partition"
    assert "split" not in look(write(tmp_path / "none.csv", rows | {"site": own["site"]})).columns


BAD = {
    "no labels": ({"id": [1, 2], "text": ["a b", "c d"]}, "a column of labels"),
    "a column for each label": (
        {"id": [1, 2], "text": ["a b", "c d"], "x": [0, 1]},
        "It holds all labels of a document.* names of the labels with 1 into one column",
    ),
    "lists as text": ({"id": [1], "text": ["a b"], "labels": ["['x']"]}, "lists printed as text"),
    "tags in brackets": ({"id": [1, 2], "text": ["a b", "c"], "labels": ["<x><y>", "<y>"]}, "lists printed as text"),
    "no label at all": (
        {"id": [1, 2], "text": ["a b", "c"], "labels": ["", ""]},
        "labels in .* got none in any document",
    ),
    "an empty text": ({"id": [1, 2], "text": ["a b", ""], "labels": ["x", "y"]}, "a text for every document"),
    "one column for both": ({"labels": ["a;b", "b"]}, "a column of texts, got 1 columns"),
    "no documents": ({"id": [], "text": [], "labels": []}, "expected documents, got an empty table"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_table_that_cannot_be_understood_is_one_error(tmp_path, what):
    with pytest.raises(InputError, match=BAD[what][1]):
        look(write(tmp_path / "mine.csv", BAD[what][0]))


def test_columns_with_names_of_their_own_can_be_named(tmp_path, capsys):
    columns = {"long": [f"{text} and more words" for text in TEXTS], "short": TEXTS, "what": ["a|b", "b"] * 6}
    table, out = write(tmp_path / "mine.csv", columns), tmp_path / "mine.yaml"
    with pytest.raises(SystemExit, match="--labels-column COLUMN"):
        main(["init", str(table), "--out", str(out)])
    main(["init", str(table), "--out", str(out), "--labels-column", "what", "--text-column", "short"])
    assert "Columns: short (text), what (labels)." in capsys.readouterr().out
    dataset = load(yaml.safe_load(out.read_text())).datasets["mine"]
    assert (dataset.text_column, dataset.labels_column, dataset.label_separator) == ("short", "what", "|")
    with pytest.raises(SystemExit, match="expected a column of texts and another one of labels, got 'what' for both"):
        main(["init", str(table), "--out", str(out), "--force", "--labels-column", "what", "--text-column", "what"])
    with pytest.raises(SystemExit, match=r"expected a column 'whats', got 3 columns, .* Did you mean 'what'"):
        main(["init", str(table), "--out", str(out), "--force", "--labels-column", "whats"])


def test_columns_that_a_data_frame_made_categories_are_texts_and_labels(tmp_path):
    """The ids were taken for the texts, and labels with bars between them for lists."""
    table = {
        "key": [f"d{n}" for n in range(12)], "Note": pl.Series(TEXTS, dtype=pl.Categorical),
        "codes": pl.Series(joined("|"), dtype=pl.Enum(sorted({*joined("|")}))),
    }  # fmt: skip
    seen = look(write(tmp_path / "mine.parquet", table))
    assert (seen.columns["text"], seen.columns["labels"], seen.separator, seen.labels) == ("Note", "codes", "|", 3)


def test_a_header_with_a_line_end_in_a_name_gives_a_config(tmp_path):
    table, out = tmp_path / "mine.csv", tmp_path / "mine.yaml"
    write(table, {"id": range(12), "Discharge\nsummary": TEXTS, "labels": joined(";")})
    main(["init", str(table), "--out", str(out), "--text-column", "Discharge\nsummary"])
    assert load(yaml.safe_load(out.read_text())).datasets["mine"].text_column == "Discharge\nsummary"


def test_a_column_that_is_not_there_is_said_without_the_first_row_of_a_table_that_has_no_header(tmp_path):
    (tmp_path / "mine.csv").write_text("17,a secret illness,I10\n18,another one,S72\n")
    with pytest.raises(InputError, match="expected a column 'text', got 3 columns, none of this name") as caught:
        look(tmp_path / "mine.csv", text_column="text")
    assert "secret" not in str(caught.value)


def test_a_config_that_is_there_is_replaced_only_by_force(tmp_path, capsys):
    table, out = write(tmp_path / "mine.csv", TABLES["as the README names them.csv"][0]), tmp_path / "mine.yaml"
    main(["init", str(table), "--out", str(out)])
    assert f"Next: plant train {out}" in capsys.readouterr().out
    before = out.read_text()
    with pytest.raises(SystemExit, match="expected no file there yet"):
        main(["init", str(table), "--out", str(out)])
    out.write_text("")
    main(["init", str(table), "--out", str(out), "--force"])
    assert out.read_text() == before


@pytest.mark.parametrize(
    ("out", "name"),
    [("b.yaml", "b"), ("my packages (2).yaml", "my_packages_2"), ("é.yaml", "mine"), ("no.yaml", "mine")],
)
def test_results_of_a_second_table_do_not_replace_those_of_the_first(tmp_path, capsys, out, name):
    """Each config names its dataset and its experiment by its own file, and results are in folders of these names."""
    table = write(tmp_path / "mine.csv", TABLES["as the README names them.csv"][0])
    main(["init", str(table), "--out", str(tmp_path / out)])
    assert shlex.split(capsys.readouterr().out.splitlines()[-1]) == ["Next:", "plant", "train", str(tmp_path / out)]
    text = (tmp_path / out).read_text()
    settings = load(yaml.safe_load(text))
    assert (list(settings.datasets), list(settings.experiments)) == ([name], [name])
    assert settings.experiments[name].dataset == name
    assert f"results/paper/{name}/report.html" in text


def test_the_command_that_comes_next_names_the_columns_of_the_table(tmp_path, capsys, monkeypatch):
    table = {"my key": range(12), "summary": TEXTS, "tags": joined(";")}
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0))
    main(["train", str(write(tmp_path / "b.csv", table)), "--out", str(tmp_path / "b.yaml")])
    said = capsys.readouterr().out
    assert said.endswith("plant predict results/serving/b/best FILE --text-column summary --id-column 'my key'\n")


def test_a_config_whose_experiments_are_all_on_request_runs_nothing(tmp_path, monkeypatch):
    config = yaml.safe_load((ROOT / "config/own.yaml").read_text())
    config["experiments"]["mine"]["on_request"] = True
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a run without a target"))
    with pytest.raises(SystemExit, match="expected an experiment that runs by itself, got on_request: true for each"):
        main(["train", str(tmp_path / "mine.yaml")])


@pytest.mark.parametrize(("content", "expected"), [
    (None, "expected a file, got nothing there"),
    ("a: [", "expected a config in YAML, got expected the node content"),
    ("text", "expected a config in YAML, got str"),
    ("datasets: {}", "experiments: missing"),
])  # fmt: skip
def test_a_config_that_cannot_be_used_is_one_line(tmp_path, content, expected):
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit, match=f"(?s)plant: .*{expected}"):
        main(["train", str(path)])


def test_doctor_names_what_is_missing_and_how_to_install_it(capsys, monkeypatch):
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    declared = [f"{line}; extra == '{extra}'" for extra, lines in groups.items() for line in lines]
    monkeypatch.setattr(doctor, "requires", lambda _: ["numpy>=2", *declared])
    monkeypatch.setattr(doctor, "_installed", lambda name: name not in ("scikit-learn", "uvicorn"))
    main(["doctor"])
    said = capsys.readouterr().out
    assert re.search(r"baselines .*missing scikit-learn: pip install '\.\[baselines\]'", said)
    assert re.search(r"paper .*: ready", said)
    assert re.search(r"\d+ processors, \d+\.\d GiB memory, \d+\.\d GiB free", said)
    assert re.search(r"^  full +up to ", said, re.MULTILINE)


def test_a_backbone_fits_if_its_weights_do(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_host_memory", lambda: int(0.11 * 16e9 / doctor.ROOM) + 1)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    main(["doctor"])
    said = capsys.readouterr().out
    assert "full    up to 110M (BERT base)" in said
    assert "nf4" not in said
