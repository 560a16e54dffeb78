"""How scripts run: what a rule hands over, provenance, one clear error, and privacy that is inherited."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plant.ground.job import describe, job
from plant.ground.provenance import CHEAP, write_provenance

SCRIPT = """
import os
import signal
from plant.ground.job import job
from plant.ground.errors import InputError, Interrupted

@job
def main(args):
    if args.settings.get("stop") and not args.out.exists():
        args.out.mkdir()
        raise Interrupted("the middle")
    if args.settings.get("ctrl_c"):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start tests with it ignored
        os.kill(os.getpid(), signal.SIGINT)
    if args.settings.get("full"):
        try:
            raise OSError(args.settings["full"], "words of a note")
        finally:
            None.tell()  # as matplotlib does with a file that it could not write
    if args.settings.get("raise"):
        raise RuntimeError("words of a note")
    if args.settings.get("fail"):
        raise InputError("the place", expected="this", got="that", fix="Do something.")
    args.out.mkdir(exist_ok=True)
    (args.out / "file").write_text(" ".join(map(str, args.many or [])))
    assert args.left is None
    return {"device": "cpu", "labels": 3}
"""


def run(folder: Path, settings: dict, *, many: tuple[Path, ...] = (), log: Path | None = None, **more: object):
    """The script on a job as data, as Snakemake and a command line hand it over."""
    (folder / "source").touch()
    seed = {"seed": str(more.pop("seed"))} if "seed" in more else {}
    handed = describe(
        {"source": str(folder / "source"), "many": many, "left": ()},
        {"out": str(folder / "out"), "sidecar": str(folder / "provenance.json")},
        rule="job", wildcards=seed, params={"settings": settings, **more.pop("params", {})}, log=log and str(log),
    )  # fmt: skip
    command = [sys.executable, "-c", SCRIPT, json.dumps(handed)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more})


def test_a_job_writes_its_output_and_its_provenance(tmp_path):
    (tmp_path / "a").touch()
    assert run(tmp_path, {"x": 1}, seed=4, many=(tmp_path / "a",)).returncode == 0
    sidecar = json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8"))
    assert (sidecar["seed"], sidecar["settings"], sidecar["labels"]) == (4, {"x": 1}, 3)
    assert len(sidecar["inputs"]) == 2


def test_an_input_error_is_one_line_without_a_traceback_and_exit_status_2(tmp_path):
    ended = run(tmp_path, {"fail": True})
    assert ended.returncode == 2
    assert "error: the place: expected this, got that. Do something." in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "provenance.json").exists()


def test_a_full_disk_is_told_where_closing_the_file_fails_once_more_and_no_other_error_is_taken_for_it(tmp_path):
    full, missing = (run(tmp_path, {"full": number}) for number in (errno.ENOSPC, errno.ENOENT))
    assert (full.returncode, missing.returncode) == (2, 1)
    assert "space" in full.stderr
    assert "words of a note" not in full.stderr


PRIVACY = [(0o600, {}, True), (0o644, {}, False), (0o644, {"private": True}, True)]


@pytest.mark.parametrize(("mode", "settings", "private"), PRIVACY)
def test_what_is_made_from_private_files_or_under_a_private_section_is_private(tmp_path, mode, settings, private):
    (tmp_path / "source").touch()
    (tmp_path / "source").chmod(mode)
    assert run(tmp_path, settings).returncode == 0
    for made in (tmp_path / "out", tmp_path / "out/file", tmp_path / "provenance.json"):
        assert (made.stat().st_mode & 0o077 == 0) == private, made


def test_an_interrupted_job_ends_with_75_and_the_next_one_counts_what_it_used(tmp_path):
    assert run(tmp_path, {"stop": True}).returncode == 75
    assert not (tmp_path / "provenance.json").exists()
    assert run(tmp_path, {"stop": True}).returncode == 0
    used = json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8"))["resources"]
    assert used["attempts"] == 2
    assert not list(tmp_path.glob(".*"))


def test_what_another_configuration_used_is_not_counted(tmp_path):
    assert run(tmp_path, {"stop": True}).returncode == 75
    assert run(tmp_path, {"stop": False}).returncode == 0
    assert json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8"))["resources"]["attempts"] == 1


def test_of_several_processes_the_first_writes_the_sidecar_and_the_log(tmp_path):
    assert "started" in run(tmp_path, {}, RANK="0").stderr
    assert (tmp_path / "provenance.json").exists()
    (tmp_path / "provenance.json").unlink()
    ended = run(tmp_path, {}, RANK="1")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not (tmp_path / "provenance.json").exists()


def test_ctrl_c_ends_a_job_in_one_line_without_a_traceback(tmp_path):
    ended = run(tmp_path, {"ctrl_c": True})
    assert ended.returncode == 130
    assert "interrupted; the same command" in ended.stderr
    assert "Traceback" not in ended.stderr


SHOWN = [(True, {}, False), (True, {"PLANT_SHOW_ERRORS": "1"}, True), (False, {}, True)]


@pytest.mark.parametrize(("private", "environment", "shown"), SHOWN)
def test_an_unexpected_error_is_one_line_that_names_its_traceback_and_private_data_is_not_quoted(
    tmp_path, private, environment, shown
):
    log, trace = tmp_path / "a.log", tmp_path / "a.traceback"
    ended = run(tmp_path, {"raise": True, "private": private}, log=log, **environment)
    assert (ended.returncode, ended.stderr) == (1, "")
    *_, line = log.read_text(encoding="utf-8").splitlines()
    assert "error: unexpected RuntimeError (" in line and line.endswith(f"the traceback is in {trace}")
    assert "Traceback" not in log.read_text(encoding="utf-8")
    without_log = run(tmp_path, {"raise": True, "private": private}, **environment).stderr
    for told in (trace.read_text(encoding="utf-8"), without_log):
        assert "in main" in told and "RuntimeError: " in told
        assert ("words of a note" in told) == shown
    for file in (log, trace):
        assert ("words of a note" in file.read_text(encoding="utf-8")) == shown
        assert (file.stat().st_mode & 0o077 == 0) == private
    assert run(tmp_path, {}, log=log).returncode == 0
    assert not trace.exists()


@pytest.mark.parametrize(("screen", "shown"), [({}, 0), ({"screen": "everything"}, 1)])
def test_the_user_sees_of_a_log_what_the_rule_says(tmp_path, screen, shown):
    ended = run(tmp_path, {}, log=tmp_path / "log", params=screen)
    assert (ended.stderr.count("job started"), (tmp_path / "log").read_text().count("job started")) == (shown, 1)


def test_an_input_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch, caplog):
    """Root may read everything, so the answer of the system is put in its place."""
    (tmp_path / "notes").touch()
    handed = describe({"notes": str(tmp_path / "notes")}, {}, rule="job")
    monkeypatch.setattr(sys, "argv", ["job", json.dumps(handed)])
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SystemExit) as ended:
        job(lambda args: None)
    assert ended.value.code == 2
    assert f"{tmp_path / 'notes'}: expected to read it, got 'Permission denied'" in caplog.text


@pytest.mark.parametrize("size", [10, CHEAP + 1])
def test_a_damaged_input_is_named_before_any_work_and_a_large_one_when_the_job_has_failed_on_it(
    tmp_path, monkeypatch, size
):
    monkeypatch.chdir(tmp_path)
    weights = Path("weights")
    weights.write_bytes(b"whole")
    facts = {"inputs": [], "settings": {}, "seed": None, "started": 0.0, "resources": {}}
    write_provenance(tmp_path / "weights.provenance.json", outputs=[weights], **facts)
    with weights.open("r+b") as file:
        file.truncate(size)  # zeros that take no room
    ended = run(tmp_path, {"raise": size > CHEAP}, many=(weights,))
    assert "error: weights: expected the bytes that its job wrote, got others" in ended.stderr
    assert (ended.returncode, "Traceback" in ended.stderr, (tmp_path / "out").exists()) == (2, False, False)
