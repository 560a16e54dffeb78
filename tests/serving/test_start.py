"""`plant init`, `plant train` and `plant doctor`: from a table of one's own to a config that runs."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from plant.commandline import main
from plant.ground.errors import InputError
from plant.ground.settings import load
from plant.serving import doctor
from plant.serving.start import best_separator, config_for, look

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
    "train and test alone.jsonl": (
        {"id": range(12), "text": TEXTS, "labels": CODES, "fold": ["train"] * 8 + ["test"] * 4},
        {"id": "id", "text": "text", "labels": "labels", "split": "fold"}, None,
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


def drawn(documents: int, names: Sequence[str], labels: int, *, order: Callable = sorted) -> list[list[str]]:
    random = np.random.default_rng(0)
    return [order(random.choice(names, labels, replace=False).tolist()) for _ in range(documents)]


CODES_OF_ALL = [f"{number}.{number % 7}" for number in range(2000)]
LISTS = {
    "more labels than documents": drawn(200, CODES_OF_ALL, 12),
    "fewer lists than labels": drawn(40, CODES_OF_ALL[:80], 3) * 5,
    "labels of all documents first": [["0.0", *names] for names in drawn(200, CODES_OF_ALL[1:80], 3)],
    "not in order": drawn(200, CODES_OF_ALL[:300], 3, order=list),
    "one label for most": [[name] for [name] in drawn(190, CODES_OF_ALL[:30], 1)] + drawn(10, CODES_OF_ALL[:30], 2),
}


@pytest.mark.parametrize("sign", [";", ",", "|", ", ", " "])
@pytest.mark.parametrize("what", LISTS)
def test_the_separator_of_lists_is_the_one_that_joined_them(what, sign):
    assert best_separator(pl.Series([sign.join(names) for names in LISTS[what]])) == (sign.strip() or sign)


def test_commas_and_spaces_in_names_of_labels_cut_nothing():
    titles = [f"disease {n}, {how}" for n, how in zip(range(60), ["mild", "acute"] * 30, strict=True)]
    assert best_separator(pl.Series(titles * 3)) == ";"
    lists = ["; ".join(names) for names in drawn(300, titles, 3)]
    assert best_separator(pl.Series(lists)) == ";"


BAD = {
    "no labels": ({"id": [1, 2], "text": ["a b", "c d"]}, "a column of labels"),
    "no ids": ({"n": [1, 1], "text": ["a b", "c d"], "labels": ["x", "y"]}, "a column of ids"),
    "lists as text": ({"id": [1], "text": ["a b"], "labels": ["['x']"]}, "lists printed as text"),
    "an empty text": ({"id": [1, 2], "text": ["a b", ""], "labels": ["x", "y"]}, "a text for every document"),
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


@pytest.mark.parametrize(
    ("out", "name"),
    [("b.yaml", "b"), ("my packages (2).yaml", "my_packages_2"), ("é.yaml", "mine"), ("no.yaml", "mine")],
)
def test_results_of_a_second_table_do_not_replace_those_of_the_first(tmp_path, out, name):
    """Each config names its dataset and its experiment by its own file, and results are in folders of these names."""
    table = write(tmp_path / "mine.csv", TABLES["as the README names them.csv"][0])
    main(["init", str(table), "--out", str(tmp_path / out)])
    text = (tmp_path / out).read_text()
    settings = load(yaml.safe_load(text))
    assert (list(settings.datasets), list(settings.experiments)) == ([name], [name])
    assert settings.experiments[name].dataset == name
    assert f"results/paper/{name}/report.html" in text


def test_a_dry_run_counts_the_jobs_and_claims_no_results(tmp_path, documents):
    """The whole run is that of `test_serving_rule`; here is what it would do."""
    documents(tmp_path / "mine.csv")
    command = [sys.executable, "-m", "plant.commandline", "train", "mine.csv", "--out", "mine.yaml", "--dry-run"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", run.stdout + run.stderr, re.MULTILINE))
    expected = {
        "pretrain": "3",
        "finetune": "6",
        "evidence": "3",
        "tfidf_linear": "1",
        "save_model": "1",
        "write_report": "1",
    }
    assert jobs.items() >= expected.items()  # three seeds; two networks
    assert run.stdout.endswith("Next: plant train mine.yaml\n")
    assert "results/" not in run.stdout + run.stderr


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
