"""docs/how-to/predict.md: every `plant` command and every code block on it, as printed.

Its Snakemake commands are planned by tests/workflow/test_commands.py, its requests are sent by `test_server`.
"""

import io
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from plant.commandline import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "predict.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^ {4}(.*\bplant .*)$", PAGE, re.MULTILINE)


@pytest.fixture
def place(saved, documents, tmp_path, monkeypatch) -> Path:
    """A working directory with what the page names."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved("evidence"), tmp_path / "results/serving/demo/best")
    (tmp_path / "data").mkdir()
    documents(tmp_path / "data/mine.csv")
    shutil.copy(tmp_path / "data/mine.csv", tmp_path / "texts.csv")
    (tmp_path / "notes.jsonl").write_text('{"visit": "v1", "note": "Sign1 word2"}\n', encoding="utf-8")
    (tmp_path / "letter.txt").write_text("Sign1 word2", encoding="utf-8")
    return tmp_path


def test_the_page_prints_every_command():
    names = {shlex.split(command.rpartition("| ")[2])[1] for command in COMMANDS}
    assert names == {"doctor", "init", "train", "predict", "serve", "export"}


@pytest.mark.parametrize("command", [one for one in COMMANDS if " predict " in one])
def test_the_printed_predictions_run(place, capsys, monkeypatch, command):
    given, _, rest = command.rpartition(" | ")
    words, _, target = rest.partition(" > ")
    if given:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(shlex.split(given)[1]).read_bytes())))
    main(shlex.split(words)[1:])
    said = capsys.readouterr().out
    assert said.startswith("<!doctype html>") == bool(target)
    assert "L1" in said


def test_the_printed_start_runs(place, capfd):
    """The whole training is that of `test_serving_rule`; here its jobs are counted, and no results are claimed."""
    first, second, third = (shlex.split(one)[1:] for one in COMMANDS[:3])
    main(first)
    main(second)
    assert (place / "config/mine.yaml").is_file()
    capfd.readouterr()
    main([*third, "--dry-run"])
    out, errors = capfd.readouterr()
    jobs = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", out + errors, re.MULTILINE)}
    expected = {"pretrain": 3, "finetune": 9, "evidence": 3, "tfidf_linear": 1, "save_model": 1, "write_report": 1}
    assert jobs.items() >= expected.items()  # three seeds; three networks
    assert out.endswith("Next: plant train config/mine.yaml\n")
    assert "results/" not in out + errors


def test_the_printed_export_writes_the_network(place, saved, monkeypatch):
    shutil.copytree(saved("network"), place / "results/serving/demo/plant")
    monkeypatch.setattr("plant.commandline.find_spec", lambda _: True)
    asked = []
    monkeypatch.setattr("plant.serving.onnx.export_onnx", lambda *given: asked.append(given) or "written")  # test_onnx
    (command,) = (one for one in COMMANDS if one.startswith("plant export"))
    main(shlex.split(command)[1:])
    ((model, out),) = asked
    assert (model.system["name"], out) == ("network", Path("plant.onnx"))


def test_the_printed_server_starts_with_its_options(place, monkeypatch, capsys):
    asked = {}

    def answer(model, **options):
        asked.update(options)
        yield f"http://{options['host']}:{options['port']}"

    monkeypatch.setattr("plant.serving.server.serve", answer)
    (command,) = (one for one in COMMANDS if one.startswith("plant serve"))
    main(shlex.split(command)[1:])
    assert capsys.readouterr().out.strip() == "http://127.0.0.1:8000"
    for option in re.findall(r"`--(\w+)`", PAGE.split("## Serve")[1].split("## ")[0]):
        assert option == "host" or hasattr(asked["limits"], option)


def test_the_printed_code_gives_a_score_for_each_label(place):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    space: dict = {}
    exec(compile(block, "predict.md", "exec"), space)
    assert space["scores"].dense.shape == (2, len(space["names"])) == (2, 9)
