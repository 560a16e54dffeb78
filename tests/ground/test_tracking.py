"""Training curves in TensorBoard's files: every number of the histories, read back by TensorBoard itself."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plant.commandline import main
from plant.ground.errors import InputError
from plant.ground.tracking import write_events


def test_tensorboard_reads_the_numbers_of_every_history_and_a_second_call_replaces_them(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rows = [{"epoch": 1, "loss": 2.5, "f1": None, "note": "a text"}, {"epoch": 2, "loss": 1.25, "f1": 0.5, "note": "b"}]
    runs = {"pretraining/mine/tiny/plant/seed0": rows, "finetuning/mine/tiny/plant+focal/seed1": rows[:1]}
    for run, history in runs.items():
        (tmp_path / "results" / run).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(history), tmp_path / "results" / run / "history.parquet")
    for _ in range(2):
        said = list(write_events(tmp_path / "results", tmp_path / "events"))
    assert said == [f"{run}: {len(history)} epochs" for run, history in runs.items()]
    for run, history in runs.items():
        found = EventAccumulator(str(tmp_path / "events" / run)).Reload()
        curves = {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
        assert curves["loss"] == [(row["epoch"], row["loss"]) for row in history]
        assert curves.get("f1", []) == [(2, 0.5)][: len(history) - 1]
        assert "note" not in curves


def test_results_without_a_training_are_one_clear_error(tmp_path):
    with pytest.raises(InputError, match=r"history\.parquet under pretraining or finetuning, got none"):
        list(write_events(tmp_path, tmp_path / "events"))


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setattr("plant.commandline.find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=r"pip install '\.\[tensorboard\]'"):
        main(["tensorboard"])


def test_the_command_shows_the_version_of_the_package(capsys):
    from importlib.metadata import version

    main(["--version"])
    assert capsys.readouterr().out == f"plant {version('plant-xmtc')}\n"
