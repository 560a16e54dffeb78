"""Folders whose names mean something to a shell: of the results, of the clone, of the work."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
ODD = "r s;touch X"


def words(command: str) -> list[str]:
    """The words of a command as a shell takes them; an operator is a word of its own."""
    return list(shlex.shlex(command, posix=True, punctuation_chars=True))


def test_no_command_of_any_rule_lets_a_path_end_a_command(tmp_path, snakemake, config):
    """Every job of the pipeline is printed; a shell's own word splitting finds whole paths in it."""
    config["results"] = ODD
    run = snakemake(tmp_path, config, "--dry-run", "--printshellcmds")
    assert run.returncode == 0, run.stdout[-3000:]
    commands = re.findall(r"Shell command: (?!None)(.*)", run.stdout)
    assert len(commands) == 3
    for command in commands:
        found = words(command)
        assert not {";", "touch", "X"} & set(found), command
        assert any(f'"{ODD}/' in word for word in found), command


def test_a_clone_and_results_with_odd_names_run_from_elsewhere(tmp_path, config):
    clone, work = tmp_path / "my clone;touch Y", tmp_path / "my work"
    for part in ("config", "src", "workflow", "envs"):
        shutil.copytree(ROOT / part, clone / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "Snakefile", clone)
    work.mkdir()
    config["results"] = ODD
    (work / "own config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    targets = [
        f"{ODD}/{name}" for name in ("corpus/small/tiny/tokens.safetensors", "relevance/small/words/mig.parquet")
    ]
    command = [sys.executable, "-m", "snakemake", "--snakefile", clone / "Snakefile", "--directory", work,
               "--cores", "2", *targets, "--configfile", work / "own config.yaml"]  # fmt: skip
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    assert all((work / target).is_file() for target in targets)
    assert not [path for path in tmp_path.rglob("*") if path.name in ("X", "Y")]
