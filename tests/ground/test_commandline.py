"""How scripts run: arguments, provenance, one clear error, and privacy that is inherited."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plant.ground.job import job

SCRIPT = """
import os
import signal
from plant.ground.job import job
from plant.ground.errors import InputError, Interrupted

def main(args):
    if args.settings.get("stop") and not args.out.exists():
        args.out.mkdir()
        raise Interrupted("the middle")
    if args.settings.get("ctrl_c"):
        os.kill(os.getpid(), signal.SIGINT)
    if args.settings.get("raise"):
        raise RuntimeError("words of a note")
    if args.settings.get("fail"):
        raise InputError("the place", expected="this", got="that", fix="Do something.")
    args.out.mkdir(exist_ok=True)
    (args.out / "file").write_text(" ".join(map(str, args.many)))
    return {"device": "cpu", "labels": 3}

job(main, inputs=("source", "left?", "many*"), outputs=("out",))
"""


def run(folder: Path, settings: dict, *arguments: object, **environment: str) -> subprocess.CompletedProcess:
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "source").touch()
    command = [sys.executable, "-c", SCRIPT, "--settings", folder / "settings.json", "--source", folder / "source",
               "--out", folder / "out", "--provenance", folder / "provenance.json", *arguments]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_a_job_writes_its_output_and_its_provenance(tmp_path):
    (tmp_path / "a").touch()
    assert run(tmp_path, {"x": 1}, "--seed", "4", "--many", tmp_path / "a").returncode == 0
    sidecar = json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8"))
    assert (sidecar["seed"], sidecar["settings"], sidecar["labels"]) == (4, {"x": 1}, 3)
    assert len(sidecar["inputs"]) == 2


def test_an_input_error_is_one_line_without_a_traceback_and_exit_status_2(tmp_path):
    ended = run(tmp_path, {"fail": True})
    assert ended.returncode == 2
    assert "error: the place: expected this, got that. Do something." in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "provenance.json").exists()


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


def test_a_private_section_hides_unexpected_messages_and_closes_the_log(tmp_path):
    for private in (True, False):
        settings, log = {"raise": True, "private": private}, tmp_path / f"{private}.log"
        (tmp_path / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        (tmp_path / "source").touch()
        command = [sys.executable, "-c", SCRIPT, "--settings", tmp_path / "settings.json",
                   "--source", tmp_path / "source", "--out", tmp_path / "out"]  # fmt: skip
        with log.open("w") as stream:
            assert subprocess.run(command, stdout=stream, stderr=stream).returncode == 1
        assert ("words of a note" in log.read_text(encoding="utf-8")) != private
        assert (log.stat().st_mode & 0o077 == 0) == private


def test_an_input_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch, caplog):
    """Root may read everything, so the answer of the system is put in its place."""
    (tmp_path / "settings.json").write_text("{}", encoding="utf-8")
    (tmp_path / "notes").touch()
    monkeypatch.setattr(sys, "argv", ["job", "--settings", str(tmp_path / "settings.json"),
                                      "--notes", str(tmp_path / "notes")])  # fmt: skip
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SystemExit) as ended:
        job(lambda args: None, inputs=("notes",))
    assert ended.value.code == 2
    assert f"{tmp_path / 'notes'}: expected to read it, got 'Permission denied'" in caplog.text
