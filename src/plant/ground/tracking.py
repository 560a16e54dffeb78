"""Training curves for TensorBoard: the numbers of every history.parquet, and nothing else.

They are made from finished runs, so that training knows nothing of it and a run has the same bits with and without.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plant.ground.errors import InputError

HISTORY = "history.parquet"
STAGES = ("pretraining", "finetuning")


def write_events(results: Path, out: Path) -> Iterator[str]:
    """Write one run of TensorBoard for each trained network: a curve a column of its history, a step an epoch.

    Args:
        results: folder of all results.
        out: folder of the event files; those of an earlier call are replaced.

    Yields:
        One line a run.

    Raises:
        InputError: nothing has been trained.
    """
    import pyarrow.parquet as pq

    histories = [file for stage in STAGES for file in sorted((results / stage).rglob(HISTORY))]
    if not histories:
        raise InputError(
            str(results), expected=f"a {HISTORY} under {' or '.join(STAGES)}", got="none",
            fix="Train first, or name the folder of the results.",
        )  # fmt: skip
    for file in histories:
        rows, run = pq.read_table(file).to_pylist(), file.parent.relative_to(results)
        _write(out / run, rows, file.stat().st_mtime)
        yield f"{run}: {len(rows)} epochs"


def _write(folder: Path, rows: list[dict[str, object]], written: float) -> None:
    """The event file of one run. Texts and missing values have no curve."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    writer = EventFileWriter(str(folder))
    for row in rows:
        numbers = {name: value for name, value in row.items()
                   if name != "epoch" and isinstance(value, int | float) and not isinstance(value, bool)}  # fmt: skip
        values = [Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        writer.add_event(Event(wall_time=written, step=row["epoch"], summary=Summary(value=values)))
    writer.close()
