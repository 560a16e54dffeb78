"""Which jobs a config asks for. Snakemake plans them in a dry run, which needs no data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from plant.baselines.registry import baselines
from plant.ground.errors import InputError
from plant.ground.files import write_json
from plant.ground.settings import Settings

GPU_RULES = ("features", "label_embeddings", "pretrain", "finetune", "predict", "attention")
"""Rules whose jobs use a GPU if there is one."""
NOT_COUNTED = ("fetch", "fetch_archive", "audit", "write_paper_table", "write_paper_figure", "write_cost", "write_plan")
"""Downloads and the paper's own items take seconds."""


@dataclass(frozen=True, order=True)
class Job:
    """One job, named by the wildcards of its rule."""

    rule: str
    dataset: str = ""
    backbone: str = ""
    recipe: str = ""
    """What else names the job: a recipe, system folder, relevance measure, baseline, experiment or study."""
    seed: int | None = None


def find_jobs(settings: Settings, snakefile: Path) -> dict[str, frozenset[Job]]:
    """The jobs of `all` and of every experiment alone, from raw files to the report.

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
        jobs[name] = frozenset(_job(records[number]) for number in needed if _is_counted(records[number]))
    return jobs


def _dry_run(settings: Settings, snakefile: Path, targets: Iterable[str]) -> list[dict[str, Any]]:
    """Rule, wildcards, inputs and outputs of every job that the targets ask for in an empty folder."""
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


def _is_counted(record: Mapping[str, Any]) -> bool:
    """False for a target, which does no work, and for NOT_COUNTED."""
    return record["rule"] not in NOT_COUNTED and bool(record["wildcards"])


def _job(record: Mapping[str, Any]) -> Job:
    rule, names = record["rule"], record["wildcards"]
    baseline = rule in baselines()
    recipe = "+".join(names[key] for key in ("initial", "finetuning", "evidence", "other") if key in names)
    if "size" in names:
        recipe = f"{names['measure']} {names['size']}"
    elif "folds" in names:
        recipe = f"{names['measure']} {names['k']}x{names['folds']}"
    more = (names.get(key) for key in ("pretraining", "system", "measure", "experiment", "study"))
    seed = "0" if baseline else names.get("seed")
    return Job(
        rule, names.get("dataset", ""), "words" if baseline else names.get("backbone", ""),
        rule if baseline else recipe or next(filter(None, more), ""), None if seed is None else int(seed),
    )  # fmt: skip
