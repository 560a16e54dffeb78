"""Which jobs a config asks for. Snakemake plans them in a dry run, which needs no data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from plant.ground.errors import InputError
from plant.ground.files import write_json
from plant.ground.settings import Settings


class Job(NamedTuple):
    """One job that Snakemake times."""

    rule: str
    dataset: str
    backbone: str
    recipe: str
    """Of Stage 1, or `<start>+<recipe>` of Stage 2; empty for another job."""
    benchmark: str
    """File with the time of the job, once it has run. Each job has its own."""


def find_jobs(settings: Settings, snakefile: Path) -> dict[str, frozenset[Job]]:
    """The jobs of `all` and of every experiment alone, from raw files to the report. Downloads are no part of them.

    Returns:
        "all" and the name of each experiment -> its jobs. A job that two experiments share is a job of both.
    """
    targets = {"all": "all"} | {name: f"experiment_{name}" for name in settings.experiments}
    records = _dry_run(settings, snakefile, targets.values())
    maker = {file: number for number, record in enumerate(records) for file in record["output"]}
    by_rule = {record["rule"]: number for number, record in enumerate(records)}
    jobs = {}
    for name, target in targets.items():
        needed, waiting = set(), [by_rule[target]]
        while waiting:
            number = waiting.pop()
            needed.add(number)
            waiting += {maker[file] for file in records[number]["input"] if file in maker} - needed
        jobs[name] = frozenset(_job(records[number]) for number in needed if records[number]["benchmark"])
    return jobs


def _dry_run(settings: Settings, snakefile: Path, targets: Iterable[str]) -> list[dict[str, Any]]:
    """Rule, wildcards, files and benchmark of every job that the targets ask for in an empty folder."""
    with TemporaryDirectory() as folder:
        write_json(Path(folder) / "config.json", settings.model_dump(mode="json"))
        command = [
            sys.executable, "-m", "snakemake", *targets, "--snakefile", str(snakefile.resolve()), "--directory", folder,
            "--configfile", f"{folder}/config.json", "--cores", "1", "--dry-run", "--workflow-profile", "none",
            "--logger", "plant", "--logger-plant-jobs", f"{folder}/jobs.jsonl",
        ]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PLANT_PLAN": "1"})
        if run.returncode != 0:
            raise InputError(
                str(snakefile), expected="rules that Snakemake can plan", got=run.stderr[-1000:], fix="See above."
            )
        return [json.loads(line) for line in (Path(folder) / "jobs.jsonl").read_text("utf-8").splitlines()]


def _job(record: Mapping[str, Any]) -> Job:
    names = record["wildcards"]
    stages = "+".join(names[key] for key in ("pretraining", "initial", "finetuning") if key in names)
    return Job(record["rule"], names.get("dataset", ""), names.get("backbone", ""), stages, record["benchmark"])
