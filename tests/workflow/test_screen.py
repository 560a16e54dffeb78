"""What a run shows: the names of what is done, how far it is, and the error of a job, not the command that failed."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

RAW = "results/corpus/small/raw"


@pytest.fixture
def config(config, on_request) -> dict:
    """A stand-in, so that a target is one short job; and a table that lacks its columns."""
    config["datasets"] = {
        "small": {"source": "mimic3", "credentialed": False, "generate": {"admissions": 20, "codes": 5, "words": 50}},
        "wrong": {"source": "table", "path": "wrong.csv"},
    }
    on_request(config, "wrong")
    return config


def test_a_failed_job_shows_its_error_and_not_its_command(tmp_path, snakemake, config):
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    run = snakemake(tmp_path, config, RAW, "results/corpus/wrong/labels.parquet", "--keep-going")
    assert run.returncode != 0
    assert "FAILED: corpus (wrong)" in run.stdout
    assert re.search(r"error: .*wrong\.csv.* expected ", run.stdout)
    assert re.search(r"^\[1/2\] synthetic \(small\)$", run.stdout, re.MULTILINE)
    assert not re.search("CalledProcessError|set -euo|--settings", run.stdout)
    assert len(run.stdout) < 2500


def test_a_run_that_is_asked_to_be_quiet_about_rules_counts_its_jobs_without_their_names(tmp_path, snakemake, config):
    run = snakemake(tmp_path, config, RAW, "--quiet", "rules")
    assert run.returncode == 0
    assert re.search(r"^\[1/1\]$", run.stdout, re.MULTILINE)
    assert "Logging error" not in run.stdout


def test_a_terminal_gets_a_line_with_the_rule_its_names_what_is_done_and_the_time_left(tmp_path, snakemake, config):
    snakemake(tmp_path, config, "--dry-run")  # writes the config
    command = [sys.executable, "-m", "snakemake", *snakemake(tmp_path, config, "--version").args[3:-1], RAW]
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stderr=slave, env={**os.environ, "TERM": "xterm", "COLUMNS": "150"})
    os.close(slave)
    said = b""
    try:
        while part := os.read(master, 10_000):
            said += part
    except OSError:
        pass  # Linux's end of file
    assert process.wait() == 0
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", said).decode("utf-8")
    assert re.search(r"synthetic \(small\) .* 0/1 \d:\d\d:\d\d left: ", plain)


def test_a_dry_run_works_while_another_run_writes(tmp_path, snakemake, start_snakemake, config):
    config["datasets"]["small"]["generate"]["admissions"] = 1_000_000  # minutes of work
    first = start_snakemake(tmp_path, config, RAW)
    marks = tmp_path / ".snakemake/incomplete"
    try:
        while first.poll() is None and not (marks.exists() and any(marks.iterdir())):
            time.sleep(0.1)
        run = snakemake(tmp_path, config, RAW, "--dry-run")
        assert first.poll() is None
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
    assert run.returncode == 0, run.stdout[-2000:]


def test_a_home_that_cannot_be_written_to_ends_no_run(tmp_path, snakemake, config, monkeypatch):
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    run = snakemake(tmp_path, config, RAW)
    assert run.returncode == 0, run.stdout[-2000:]
