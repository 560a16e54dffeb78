"""`plant init`, `plant train` and `plant doctor`: from a table of one's own to a config that runs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest
import yaml

from plant.commandline import main
from plant.ground.errors import InputError
from plant.ground.settings import load
from plant.serving import doctor
from plant.serving.start import config_for, look

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
    "lists and splits.parquet": (
        {"key": range(12), "body": TEXTS, "tags": CODES, "split": SPLITS},
        {"id": "key", "text": "body", "labels": "tags", "split": "split"}, None,
    ),
    "commas.jsonl": (
        {"id": range(12), "text": TEXTS, "labels": joined(", "), "split": ["a"] * 12},
        {"id": "id", "text": "text", "labels": "labels"}, ",",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_look_finds_columns_separator_and_sizes(tmp_path, name):
    columns, roles, separator = TABLES[name]
    seen = look(write(tmp_path / name, columns))
    assert (dict(seen.columns), seen.separator) == (roles, separator)
    assert (seen.documents, seen.labels, seen.labels_of_document) == (12, 3, 1.5)
    assert (seen.language, seen.words) == ("English", 13.0)


@pytest.mark.parametrize("name", TABLES)
def test_the_config_reads_the_table_as_it_was_seen(tmp_path, name):
    columns, roles, separator = TABLES[name]
    text = config_for(look(write(tmp_path / name, columns)))
    dataset = load(yaml.safe_load(text)).datasets["mine"]
    assert (dataset.id_column, dataset.text_column, dataset.labels_column) == tuple(
        roles[role] for role in ("id", "text", "labels")
    )
    assert (dataset.split_column, dataset.group_column) == (roles.get("split"), roles.get("group"))
    assert separator in (None, dataset.label_separator)
    assert text.count(" # ") > 20  # the comments stay
    assert not set(TEXTS) & set(re.findall("the patient.*", text))


BAD = {
    "no labels": ({"id": [1, 2], "text": ["a b", "c d"]}, "a column of labels"),
    "no ids": ({"n": [1, 1], "text": ["a b", "c d"], "labels": ["x", "y"]}, "a column of ids"),
    "no documents": ({"id": [], "text": [], "labels": []}, "expected documents, got an empty table"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_table_that_cannot_be_understood_is_one_error(tmp_path, what):
    with pytest.raises(InputError, match=BAD[what][1]):
        look(write(tmp_path / "mine.csv", BAD[what][0]))


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


def test_train_plans_the_models_and_reports_of_a_table(tmp_path, documents):
    """The whole run is that of `test_serving_rule`; here is what it would do."""
    documents(tmp_path / "mine.csv")
    command = [sys.executable, "-m", "plant.commandline", "train", "mine.csv", "--out", "mine.yaml", "--dry-run"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    rules = set(re.findall(r"rule (\w+):", run.stdout + run.stderr))
    assert {"pretrain", "finetune", "evidence", "tfidf_linear", "save_model", "write_report"} <= rules
    assert "Model:   results/serving/mine/best" in run.stdout
    assert "Report:  results/paper/mine/report.html" in run.stdout


@pytest.mark.parametrize(("content", "expected"), [
    (None, "expected a table or a config, got nothing there"),
    ("a: [", "expected YAML"),
    ("text", "expected a config, got str"),
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
    assert re.search(r"baselines .*missing scikit-learn: pip install 'plant-xmtc\[baselines\]'", said)
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
