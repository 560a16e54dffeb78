"""A table of one's own: what README.md and config/own.yaml print works as printed, and what looks wrong is said."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "config" / "own.yaml"


def printed_commands() -> list[str]:
    """The Snakemake commands at the head of the config."""
    return re.findall(r"^#     (snakemake .*?)  ", SHIPPED.read_text("utf-8"), re.MULTILINE)


def test_the_commands_of_the_readme_lead_from_a_table_to_a_model(tmp_path):
    """`plant init` runs as printed. The jobs of the training are counted, and the folder printed next is its target."""
    section = (ROOT / "README.md").read_text("utf-8").split("## Your own labels")[1].split("\n## ")[0]
    init, train, predict = re.findall(r"^ {7}\.venv/bin/plant (.*?)(?:  .*)?$", section, re.MULTILINE)
    write_table(tmp_path)
    plant = [sys.executable, "-m", "plant.commandline"]
    subprocess.run([*plant, *shlex.split(init)], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    run = subprocess.run(
        [*plant, *shlex.split(train), "--dry-run"],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert {"model_mine", "experiment_mine"} <= set(re.findall(r"^(\w+) +1$", run.stdout, re.MULTILINE))
    assert predict.split()[:2] == ["predict", "results/serving/mine/best"]


def follow(command: str, folder: Path, *more: str) -> str:
    """Run a printed command, from the root of the repository, with its files in `folder`; what it says."""
    _, *arguments = shlex.split(command)
    places = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)]
    run = subprocess.run(
        [sys.executable, "-m", "snakemake", *places, *more, *arguments], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]
    return run.stdout


def write_table(folder: Path, **columns: list[str]) -> None:
    """160 documents with one to three of twelve labels, each announced by a word."""
    random = np.random.default_rng(0)
    own = [random.choice(12, random.integers(1, 4), replace=False) for _ in range(160)]
    texts = [" ".join([*(f"sign{label}" for label in labels), *(f"word{i}" for i in random.integers(0, 200, 25))])
             for labels in own]  # fmt: skip
    table = pl.DataFrame({"id": [f"d{i}" for i in range(160)], "text": texts, **columns})
    labels = pl.Series("labels", [";".join(f"L{label}" for label in labels) for labels in own])
    (folder / "data").mkdir()
    table.with_columns(labels).write_csv(folder / "data" / "mine.csv")


def test_the_config_plans_jobs_on_the_own_table_and_on_nothing_else(tmp_path):
    write_table(tmp_path)
    plan, everything = printed_commands()
    for shown in (follow(plan, tmp_path), follow(plan, tmp_path)):  # again too: what has run since may give sizes
        assert "The target `all` has 49 jobs" in shown and "results/paper/plan.md" in shown
    assert "| mine |" in (tmp_path / "results/paper/plan.md").read_text("utf-8")
    said = follow(everything, tmp_path, "--dry-run")
    assert set(re.findall(r"results/corpus/(\w+)", said)) == {"mine"}
    assert "synthetic" not in said


@pytest.mark.slow
def test_the_config_ends_with_a_report_of_the_own_table(tmp_path):
    write_table(tmp_path)
    follow(printed_commands()[1], tmp_path)
    table = pl.read_csv(tmp_path / "results/paper/mine/tables/ablation.csv")
    assert len(table) >= 5
    assert (tmp_path / "results/paper/mine/report.html").is_file()


def test_the_jobs_of_a_corpus_say_their_warnings_on_the_screen(tmp_path):
    """A column of splits that is not read, and texts that are cut."""
    write_table(tmp_path, split=["train"] * 100 + ["val"] * 20 + ["test"] * 40)
    config = SHIPPED.read_text("utf-8").replace("words: {kind: words}", "words: {kind: words, max_tokens: 20}")
    (tmp_path / "own.yaml").write_text(config, encoding="utf-8")
    target = "results/corpus/mine/words/statistics.json"
    said = follow(f"snakemake --cores 1 {target} --configfile {tmp_path / 'own.yaml'}", tmp_path)
    assert re.search(r"^\S+ warning: data/mine\.csv: the column split is not read", said, re.MULTILINE)
    assert re.search(r"^\S+ warning: 160 of 160 documents are longer than `max_tokens` \(20\)", said, re.MULTILINE)


def test_a_table_that_has_changed_since_it_was_read_is_told_with_the_command_that_reads_it(tmp_path):
    write_table(tmp_path)
    table, target = tmp_path / "data" / "mine.csv", "results/corpus/mine/train.parquet"
    command = f"snakemake --cores 1 {target} --configfile {SHIPPED}"
    follow(command, tmp_path)
    table.touch()
    assert "has changed" not in follow(command, tmp_path)
    table.write_text(table.read_text("utf-8").replace("L1", "L2"), encoding="utf-8")
    said = follow(command, tmp_path)
    assert f"warning: data/mine.csv has changed since {target} was made from it" in said
    again = follow(f"{command} -R {target}", tmp_path)
    assert again.count("has changed") == 1
    assert "L1" not in pl.read_parquet(tmp_path / target)["labels"].explode().to_list()
    assert "has changed" not in follow(command, tmp_path)
