"""The rules of this room: who makes which corpus, what is fetched for whom, and what a change reruns."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest


def config(home: Path) -> dict[str, Any]:
    """A whole with subsets, own data, and two downloads from a folder."""
    generate = {"admissions": 120, "codes": 40, "words": 300, "words_per_note": 20}
    lists = {split: f"data/lists/ids/{split}.txt" for split in ("train", "val", "test")}
    own = {split: f"data/own/{split}.csv" for split in ("train", "val", "test")}
    found: dict[str, Any] = {
        "downloads": {
            "lists": {"url": (home / "lists.zip").as_uri(), "path": "data/lists", "unpack": True},
            "keep": {"url": (home / "keep.txt").as_uri(), "path": "data/keep.txt", "sha256": "0" * 64},
            "own": {"url": (home / "train.csv").as_uri(), "path": "data/own/train.csv"},
            "unread": {"url": (home / "never").as_uri(), "path": "data/never"},
        },
        "datasets": {
            "whole": {"source": "mimic3", "generate": generate, "credentialed": False},
            "part": {"source": "subset", "of": "whole", "labels": {"train_at_most": 9, "train_at_least": 1}},
            "n20": {"source": "subset", "of": "whole", "train_size": 20, "expected": {"tokens": 9}},
            "listed": {"source": "subset", "of": "whole", "split": {"ids": lists}},
            "kept": {"source": "subset", "of": "whole", "labels": {"keep": "data/keep.txt"}},
            "own": {"source": "table", "files": own},
            "folder": {"source": "eurlex57k", "path": "data/own"},
        },
        "backbones": {"words": {"kind": "words"}},
        "finetunings": {},
        "variants": {},
        "experiments": {},
    }
    system = {"backbone": "words", "variants": [], "baselines": ["tfidf_linear"], "reference": "tfidf_linear"}
    found["experiments"] = {name: {"dataset": name, **system} for name in found["datasets"]}
    return found


def targets(*datasets: str) -> list[str]:
    return [f"results/corpus/{dataset}/statistics.json" for dataset in datasets]


def jobs(run: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    """First output -> (rule, inputs) of the jobs of a dry run."""
    assert run.returncode == 0, run.stdout
    found = re.findall(
        r"^(?:local)?rule (\w+):\n(?:    input: (.*)\n)?    output: ([^ ,\n]+)", run.stdout, re.MULTILINE
    )
    return {output: (rule, inputs) for rule, inputs, output in found}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory, snakemake) -> dict[str, tuple[str, str]]:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "data/own").mkdir(parents=True)
    for split in ("val", "test"):  # what the config names and no download brings must be there
        (folder / f"data/own/{split}.csv").touch()
    names = ("whole", "part", "n20", "listed", "kept", "own", "folder")
    return jobs(snakemake(folder, config(folder), "--dry-run", *targets(*names)))


def test_a_subset_is_made_from_the_corpus_of_its_whole_and_the_others_from_raw_files(planned):
    rules = {output.split("/")[2]: rule for output, (rule, _) in planned.items() if output.endswith("train.parquet")}
    subsets = dict.fromkeys(("part", "n20", "listed", "kept"), "subset")
    assert rules == subsets | dict.fromkeys(("whole", "own", "folder"), "corpus")
    for name in subsets:
        inputs = planned[f"results/corpus/{name}/train.parquet"][1]
        assert inputs.startswith("results/corpus/whole/train.parquet, results/corpus/whole/val.parquet")
        assert "results/corpus/whole/statistics.json" in inputs
    assert planned["results/corpus/whole/raw"][0] == "synthetic"


def test_a_dataset_waits_for_the_downloads_at_above_or_below_what_it_names_and_for_no_other(planned):
    waits = {
        "listed": "data/lists",
        "kept": "data/keep.txt",
        "own": "data/own/train.csv",
        "folder": "data/own/train.csv",
    }
    for name in ("whole", "part", "n20", "listed", "kept", "own", "folder"):
        inputs = planned[f"results/corpus/{name}/train.parquet"][1].split(", ")
        assert [path for path in inputs if path.startswith("data/")] == ([waits[name]] if name in waits else [])
    assert {output: rule for output, (rule, _) in planned.items() if output.startswith("data/")} == {
        "data/lists": "fetch_archive",
        "data/keep.txt": "fetch",
        "data/own/train.csv": "fetch",
    }


@pytest.mark.slow
def test_lists_are_fetched_once_checked_and_used(tmp_path, snakemake):
    settings = config(tmp_path)
    first = snakemake(tmp_path, settings, *targets("part", "n20"))
    assert first.returncode == 0, first.stdout
    import polars as pl

    with zipfile.ZipFile(tmp_path / "lists.zip", "w") as archive:
        for split in ("train", "val", "test"):
            groups = pl.read_parquet(tmp_path / f"results/corpus/whole/{split}.parquet")
            archive.writestr(f"ids/{split}.txt", "\n".join(groups["document_id"]))
    labels = pl.read_parquet(tmp_path / "results/corpus/whole/labels.parquet")["label"]
    content = "\n".join(labels[:20]).encode()
    (tmp_path / "keep.txt").write_bytes(content)
    refused = snakemake(tmp_path, settings, *targets("kept"), "--show-failed-logs")
    assert refused.returncode != 0
    assert "expected a file with the SHA-256 0000" in refused.stdout
    assert not list((tmp_path / "data").glob("*keep*"))

    settings["downloads"]["keep"]["sha256"] = hashlib.sha256(content).hexdigest()
    second = snakemake(tmp_path, settings, *targets("part", "n20", "listed", "kept"))
    assert second.returncode == 0, second.stdout
    note = json.loads((tmp_path / "data/keep.txt.source.json").read_text())
    assert (note["sha256"], note["checked"]) == (hashlib.sha256(content).hexdigest(), True)
    made = {name: json.loads((tmp_path / path).read_text()) for name, path in zip(
        ("kept", "listed"), targets("kept", "listed"), strict=True)}  # fmt: skip
    assert made["kept"]["labels"] <= 20
    assert made["listed"]["splits"]["train"]["documents"] > 50

    (tmp_path / "lists.zip").unlink()
    done = ["--dry-run", *targets("part", "n20", "listed", "kept")]
    assert jobs(snakemake(tmp_path, settings, *done)) == {}
    changed = copy.deepcopy(settings)
    changed["datasets"]["part"]["labels"]["train_at_most"] = 8
    changed["datasets"]["n20"]["expected"]["tokens"] = 10  # only the plan of the grid reads it
    rerun = jobs(snakemake(tmp_path, changed, *done))
    assert list(rerun) == ["results/corpus/part/train.parquet"]
