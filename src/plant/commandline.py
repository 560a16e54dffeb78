"""The command `plant`: what it can do fits on one screen (`plant --help`). Each command loads what it needs."""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plant.ground.errors import InputError, nearest, printable

if TYPE_CHECKING:
    from plant.serving.inputs import Document, Source
    from plant.serving.system import SavedSystem

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Train, use and trace models that label documents (PLANT, arXiv 2410.23066).",
)  # fmt: skip
RESULTS = Path("results")
TextColumn = Annotated[str | None, typer.Option(help="Column with the text. If not named, it is looked for.")]
LabelsColumn = Annotated[str | None, typer.Option(help="Column with the labels. If not named, it is looked for.")]
Model = Annotated[str, typer.Argument(help="Folder of a saved model, such as results/serving/demo/best.")]


def _show_version(asked: bool) -> None:
    if asked:
        _print([f"plant {version('plant-xmtc')}"])
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """What every command takes."""


@app.command()
def init(
    table: Annotated[Path, typer.Argument(help="CSV, TSV, JSON lines or parquet with texts and labels.")],
    out: Annotated[Path, typer.Option(help="Config to write; results have its name.")] = Path("config/mine.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a config that is there.")] = False,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
) -> None:
    """Write a commented config from a look at a table."""
    from plant.serving.start import write_config

    _print(write_config(table, out, overwrite=force, text_column=text_column, labels_column=labels_column))


@app.command()
def doctor() -> None:
    """Say what this machine can run, and what is missing."""
    from plant.serving.doctor import examine

    _print(examine())


@app.command()
def train(
    source: Annotated[Path, typer.Argument(help="A table, as for init, or a config (.yaml).")],
    out: Annotated[Path, typer.Option(help="Config to write for a table.")] = Path("config/mine.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a config that is there.")] = False,
    cores: Annotated[int, typer.Option(min=1, help="Processors to use.")] = 2,
    report: Annotated[bool, typer.Option(help="Make tables, figures and the report too.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the jobs.")] = False,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
) -> None:
    """Train on a table or a config, and save the best system as a model folder."""
    from plant.serving.start import train as run
    from plant.serving.start import write_config

    is_config = source.suffix in (".yaml", ".yml")
    if not is_config:
        _print(write_config(source, out, overwrite=force, text_column=text_column, labels_column=labels_column))
    _print(run(source if is_config else out, cores=cores, report=report, dry_run=dry_run))


@app.command()
def predict(
    model: Model,
    file: Annotated[str, typer.Argument(help="Text, CSV, JSON lines or parquet; - is standard input.")],
    top: Annotated[int | None, typer.Option(min=1, help="This number of labels, above the threshold or not.")] = None,
    output: Annotated[str, typer.Option("--format", help="table, jsonl or html.")] = "table",
    reasons: Annotated[int, typer.Option(min=0, help="Words that explain a label.")] = 5,
    label: Annotated[list[str] | None, typer.Option(help="These labels alone, whatever their scores.")] = None,
    rule: Annotated[str, typer.Option(help="Threshold rule: tuned, micro, sloped or natural.")] = "tuned",
    text_column: Annotated[str, typer.Option(help="Column with the text.")] = "text",
    id_column: Annotated[str, typer.Option(help="Column with the name of the document.")] = "id",
    kind: Annotated[str | None, typer.Option("--input", help="text, csv, tsv, jsonl or parquet.")] = None,
) -> None:
    """Label new texts: labels, scores, thresholds and reasons."""
    from plant.serving.inputs import open_documents
    from plant.serving.predict import predictions
    from plant.serving.show import FORMATS

    if output not in FORMATS:
        raise InputError("--format", expected=", ".join(FORMATS), got=repr(output), fix=nearest(output, FORMATS))
    source = open_documents(file, kind=kind, text_column=text_column, id_column=id_column)
    loaded, documents = _load(model), _with_progress(source)
    found = predictions(loaded, documents, top=top, reasons=reasons, labels=label or [], rule=rule)
    if output != "table" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # as the page says of itself
    for piece in FORMATS[output](found):
        sys.stdout.write(piece)


def _load(folder: str) -> SavedSystem:
    """The model of a folder, on the GPU if there is one."""
    from plant.serving.system import load_system

    model = load_system(folder)
    if model.classifier is not None:
        import torch

        torch.set_flush_denormal(True)  # as in training: a sharp attention is slow without it
        model.classifier.to("cuda" if torch.cuda.is_available() else "cpu")
    return model


def _with_progress(source: Source) -> Iterator[Document]:
    """The documents; on a terminal, standard error tells how much is done and how long the rest takes."""
    from tqdm import tqdm

    with tqdm(total=source.total, desc="documents read", unit="B", unit_scale=True, disable=None, leave=False) as bar:
        for document in source.documents:
            bar.update(source.done() - bar.n)
            yield document


@app.command()
def serve(
    model: Model,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is every network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    documents: Annotated[int, typer.Option(min=1, help="Documents of a request, at most.")] = 64,
    megabytes: Annotated[float, typer.Option(min=0.01, help="Size of a request, at most.")] = 8.0,
    waiting: Annotated[int, typer.Option(min=1, help="Requests at once; more get the status 503.")] = 100,
) -> None:
    """Answer with JSON over HTTP, and show a page to paste a text into."""
    _require("serve", "serve", "starlette", "uvicorn")
    from plant.serving.server import Limits
    from plant.serving.server import serve as answer

    limits = Limits(documents, megabytes, waiting)
    for line in answer(_load(model), host=host, port=port, limits=limits):
        _print([line])


@app.command()
def export(
    model: Model, onnx: Annotated[Path, typer.Option(help="ONNX file to write: the network alone, not its words.")]
) -> None:
    """Write the network of a model for other programs."""
    _require("export", "onnx", "onnxscript")
    from plant.serving.onnx import export_onnx
    from plant.serving.system import load_system

    _print([export_onnx(load_system(model), onnx)])


@app.command()
def trace(
    file: Annotated[Path, typer.Argument(help="A file below results/.")],
    words: Annotated[list[str] | None, typer.Argument(help="Names of a cell of a table in CSV: plant p@5.")] = None,
    system: Annotated[str | None, typer.Option(help="Follow this system only where several are compared.")] = None,
    root: Annotated[Path, typer.Option(help="Folder of all results.")] = RESULTS,
) -> None:
    """Say where a result comes from, back to the raw files."""
    from plant.ground.trace import trace as follow

    _print(follow(file, words or [], system=system, root=root))


@app.command()
def verify(folder: Annotated[Path, typer.Argument(help="Folder of all results.")] = RESULTS) -> None:
    """Check that results are what their jobs wrote."""
    from plant.ground.trace import verify as compare

    found, summary = compare(folder)
    _print([*found, summary])
    if found:
        raise typer.Exit(1)


@app.command()
def tensorboard(
    results: Annotated[Path, typer.Argument(help="Folder of all results.")] = RESULTS,
    out: Annotated[Path, typer.Option(help="Folder to write; then: tensorboard --logdir FOLDER.")] = Path(
        "tensorboard"
    ),
) -> None:
    """Write the training curves for TensorBoard: numbers only."""
    _require("tensorboard", "tensorboard", "tensorboard")
    from plant.ground.tracking import write_events

    _print(write_events(results, out))


def _require(command: str, extra: str, *packages: str) -> None:
    """Refuse a command whose extra is not installed."""
    if not all(map(find_spec, packages)):
        raise InputError(
            f"plant {command}", expected=" and ".join(packages), got="none",
            fix=f"In the checkout: pip install '.[{extra}]'",
        )  # fmt: skip


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(printable(line) + "\n")
    sys.stdout.flush()  # before a process of its own writes


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An InputError is one line; the process then ends with 1, and with 2 for a wrong option.

    So is a file that cannot be opened or written. A letter that the terminal cannot show is written as its number.
    """
    gc.set_threshold(100_000)  # three thousand modules are loaded: a sixth of the time would go into garbage collection
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(arguments, prog_name="plant")
    except InputError as error:
        sys.exit(f"plant: {error}")
    except OSError as error:
        if error.filename is None:
            raise
        where = str(error.filename2 or error.filename)
        said = InputError(where, expected="a path that can be used", got=str(error.strerror), fix="Name another.")
        sys.exit(f"plant: {said}")
    except SystemExit as ended:
        if ended.code:
            raise


if __name__ == "__main__":
    main()
