"""How scripts run: arguments, provenance, one clear error, and privacy that is inherited."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from plant.commandline import job
from plant.errors import InputError

def main(args):
    if args.settings.get("fail"):
        raise InputError("the place", expected="this", got="that", fix="Do something.")
    args.out.mkdir()
    (args.out / "file").write_text(" ".join(map(str, args.many)))
    return {"device": "cpu", "labels": 3}

job(main, inputs=("source", "left?", "many*"), outputs=("out",))
"""


def run(folder: Path, settings: dict, *arguments: object) -> subprocess.CompletedProcess:
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "source").touch()
    command = [sys.executable, "-c", SCRIPT, "--settings", folder / "settings.json", "--source", folder / "source",
               "--out", folder / "out", "--provenance", folder / "provenance.json", *arguments]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True)


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


@pytest.mark.parametrize(("mode", "private"), [(0o600, True), (0o644, False)])
def test_what_is_made_from_private_files_is_private(tmp_path, mode, private):
    (tmp_path / "source").touch()
    (tmp_path / "source").chmod(mode)
    assert run(tmp_path, {}).returncode == 0
    for made in (tmp_path / "out", tmp_path / "out/file", tmp_path / "provenance.json"):
        assert (made.stat().st_mode & 0o077 == 0) == private, made
