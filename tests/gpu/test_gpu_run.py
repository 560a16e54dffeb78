"""The machinery of `make gpu`, and each of its steps on a CPU with small sizes: no step may die of a typo."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from samples import Place

HERE = Path(__file__).parent
SCRIPT = HERE / "run.py"
spec = importlib.util.spec_from_file_location("gpu_run", SCRIPT)  # tests/benchmarks has a `run` too
gpu_run = importlib.util.module_from_spec(spec)
sys.modules["gpu_run"] = gpu_run
spec.loader.exec_module(gpu_run)

BLOCKED = ("polars", "pyarrow", "numba", "scipy", "sklearn", "pandas", "snakemake", "matplotlib", "gensim", "typer",
           "jinja2", "joblib", "pytest")  # fmt: skip
BARE = f"""
import sys
sys.modules.update(dict.fromkeys({BLOCKED}))  # an import of these now says that there is no such module
sys.path.insert(0, {str(HERE)!r})
import run, checks, speed
from pathlib import Path
from samples import Place, torch
for step in (checks.resume, speed.label_attention):
    folder = Path(sys.argv[1]) / step.__name__
    folder.mkdir()
    assert list(step(Place(torch.device("cpu"), True, folder)))
"""


pytestmark = pytest.mark.usefixtures("torch_as_it_was")


def start(*arguments, script=SCRIPT, **environment):
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def on_cpu(folder, *names):
    return start(*names, "--device", "cpu", "--tiny", "--out", folder)


def record_of(folder):
    return json.loads((folder / "cpu_tiny" / "steps.json").read_text(encoding="utf-8"))["steps"]


@pytest.mark.parametrize("name", [step.name for step in gpu_run.STEPS if not step.paths])
def test_every_step_runs_on_a_cpu_with_small_sizes(name, tmp_path):
    step = next(step for step in gpu_run.STEPS if step.name == name)
    module, function = step.call.split(".")
    place = Place(torch.device("cpu"), True, tmp_path)
    rows = list(getattr(importlib.import_module(module), function)(place, *step.arguments))
    assert rows and all(row["what"] for row in rows)
    assert json.loads(json.dumps(rows)) == rows


def test_the_epoch_on_a_corpus_runs_with_weights_and_data_by_paths(tmp_path, sign_documents, table_corpus):
    import speed

    from plant.corpus.tokens import tokenize_corpus, train_tokenizer
    from plant.ground.settings import Pretrained, Random
    from plant.model.transformer.backbone import make_random_backbone

    rows = sign_documents({"train": 40, "val": 10, "test": 5}, (0.5,) * 5, 1.0)
    corpus = table_corpus(rows, tmp_path / "corpus")
    weights, tokenizer = tmp_path / "weights", tmp_path / "tokenizer"
    train_tokenizer(corpus / "train.parquet", vocabulary=300, out=tokenizer)
    make_random_backbone(Random(kind="random", architecture="bert"), tokenizer, weights)
    settings = Pretrained(kind="pretrained", path=str(weights))
    tokenize_corpus(corpus, settings, tokenizer=tokenizer, out=corpus / "tokens")
    paths = {"weights": weights, "corpus": corpus, "tokens": corpus / "tokens"}
    found = list(speed.minilm(Place(torch.device("cpu"), True, tmp_path, paths)))
    assert found[0]["value"] > 0 and 0 <= found[1]["value"] <= 1


def test_all_steps_together_end_within_the_limit():
    assert sum(step.minutes for step in gpu_run.STEPS) < gpu_run.LIMIT
    assert len({step.name for step in gpu_run.STEPS}) == len(gpu_run.STEPS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_ends_at_once_with_one_sentence(tmp_path):
    done = start("--out", tmp_path / "out")
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    assert done.stderr.startswith("make gpu: expected a GPU") and done.stderr.count("\n") == 1


def test_it_needs_no_package_beside_those_of_training(tmp_path):
    script = tmp_path / "bare.py"
    script.write_text(BARE, encoding="utf-8")
    done = start(tmp_path, script=script, PYTHONPATH=str(gpu_run.ROOT / "src"))
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_step_that_is_recorded_is_skipped_and_a_failed_one_runs_again(tmp_path):
    first = on_cpu(tmp_path, "resume", "minilm")
    assert first.returncode == 0, first.stdout
    record = record_of(tmp_path)
    assert (record["resume"]["state"], record["minilm"]["state"]) == ("done", "left out")
    assert record["minilm"]["why"] == "not given: --weights, --corpus, --tokens"
    table = (tmp_path / "cpu_tiny" / "table.md").read_text(encoding="utf-8")
    assert "| resume | stopped and resumed beside whole | same bits |" in table
    assert "- minilm: left out: not given" in table and "- 7b_nf4: not run yet" in table
    record["resume"]["rows"][0]["value"] = "from before"
    record["loss_oracle"] = {"state": "failed", "why": "", "rows": []}
    file = tmp_path / "cpu_tiny" / "steps.json"
    file.write_text(json.dumps({"device": "CPU", "steps": record}), encoding="utf-8")
    again = on_cpu(tmp_path, "resume", "loss_oracle")
    assert again.returncode == 0 and "resume: done before" in again.stdout
    record = record_of(tmp_path)
    assert record["resume"]["rows"][0]["value"] == "from before"
    assert record["loss_oracle"]["state"] == "done" and len(record["loss_oracle"]["rows"]) > 3


def test_the_folder_may_be_named_from_where_one_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert on_cpu("here", "deterministic").returncode == 0
    assert record_of(tmp_path / "here")["deterministic"]["rows"][0]["value"] == "same bits"


def test_another_version_than_the_pinned_one_is_named(monkeypatch):
    assert not gpu_run.other_versions()
    monkeypatch.setattr(gpu_run, "version", lambda name: "5.17.0" if name == "transformers" else "2.13.0")
    assert "expected transformers<6,>=5.23, got 5.17.0" in gpu_run.other_versions()


FAULTY = """
from time import sleep
def rows(place, kind):
    yield {"what": "before", "value": 1.0}
    if kind == "sleep":
        sleep(60)
    raise ValueError("this and that")
"""


@pytest.mark.parametrize(
    ("kind", "state", "why"), [("raise", "failed", "ValueError: this and that"), ("sleep", "out of time", "stopped")]
)
def test_a_step_that_fails_or_takes_too_long_keeps_its_rows(tmp_path, kind, state, why):
    """A copy of the folder whose only step is a faulty one."""
    copy = tmp_path / "tests" / "gpu"
    copy.mkdir(parents=True)
    shutil.copy(gpu_run.ROOT / "pyproject.toml", tmp_path)
    for name in ("samples.py", "run.py"):
        text = (HERE / name).read_text(encoding="utf-8")
        steps = f'STEPS = (Step("faulty", "faulty.rows", 0.25, ("{kind}",)),)\n\n\ndef left_out('
        (copy / name).write_text(text.replace("def left_out(", steps), encoding="utf-8")
    (copy / "faulty.py").write_text(FAULTY, encoding="utf-8")
    done = start("--device", "cpu", "--tiny", "--out", tmp_path, script=copy / "run.py",
                 PYTHONPATH=str(gpu_run.ROOT / "src"))  # fmt: skip
    entry = record_of(tmp_path)["faulty"]
    assert done.returncode == 1
    assert (entry["state"], entry["rows"]) == (state, [{"what": "before", "value": 1.0}])
    assert entry["why"].startswith(why)
