"""The profile by itself: what it asks for, without a scheduler."""

import os
import re
import subprocess
import sys

import pytest

CPU = {"max_runtime": "2-00:00:00", "max_gpu": 0}
GPU_RULES = {"pretrain", "finetune", "predict", "attention"}


def resources(clone, *arguments: str) -> dict[str, dict[str, str]]:
    """Rule -> its resources, of a dry run."""
    run = clone.snakemake("all", "--dry-run", *arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.findall(r"^ *rule (\w+):\n(?: +.*\n)*? +resources: (.*)$", run.stdout + run.stderr, re.MULTILINE)
    return {rule: dict(item.split("=", 1) for item in text.split(", ")) for rule, text in found}


def test_no_job_asks_for_more_time_than_the_partitions_of_the_site_give(clone) -> None:
    clone.write_partitions({"long": CPU, "a100": {"max_runtime": "8h", "max_gpu": 2}})
    asked = resources(clone)
    assert asked["finetune"]["runtime"] == asked["pretrain"]["runtime"] == str(8 * 60)
    assert asked["predict"]["runtime"] == str(4 * 60)
    assert asked["tfidf_linear"]["runtime"] == str(12 * 60)
    assert {rule for rule, some in asked.items() if some.get("gpu") == "1"} == GPU_RULES
    assert all(int(some["mem_mb"]) >= 4000 for some in asked.values())


def test_the_account_comes_from_the_environment(clone) -> None:
    assert not any("slurm_account" in some for some in resources(clone).values())
    clone.env["PLANT_SLURM_ACCOUNT"] = "group7"
    assert {some["slurm_account"] for some in resources(clone).values()} == {"group7"}


def test_partitions_without_a_gpu_are_refused_before_anything_is_submitted(clone) -> None:
    clone.write_partitions({"long": CPU})
    run = clone.snakemake("all", "--dry-run")
    assert run.returncode != 0
    assert "slurm/partitions.yaml: no partition with max_gpu above 0" in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("kept", "storage", "command"), [(300, "slurmdbd", "squeue"), (60, "slurmdbd", "sacct"), (60, "none", "squeue")]
)
def test_sacct_is_asked_only_where_squeue_forgets_ended_jobs_too_soon(clone, tmp_path, kept, storage, command) -> None:
    site = f"AccountingStorageType   = accounting_storage/{storage}\nMinJobAge               = {kept} sec\n"
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\ncat <<END\n{site}END\n", encoding="utf-8")
    (tmp_path / "scontrol").chmod(0o755)
    read = "import yte; print(yte.process_yaml(open('slurm/profile.yaml'))['slurm-status-command'])"
    env = {**clone.env, "PATH": os.pathsep.join([str(tmp_path), clone.env["PATH"]])}
    run = subprocess.run([sys.executable, "-c", read], cwd=clone.folder, env=env, capture_output=True, text=True)
    assert run.stdout.strip() == command, run.stderr
