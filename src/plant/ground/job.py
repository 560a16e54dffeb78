"""How a rule's script is run: typed arguments, a readable log, one clear error, a provenance sidecar."""

import argparse
import hashlib
import json
import logging
import os
import stat
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from plant.ground.errors import InputError, Interrupted
from plant.ground.files import explain, is_private, read_json, unreadable, write_json, written
from plant.ground.provenance import write_provenance
from plant.ground.resources import Meter, add_attempt

log = logging.getLogger("plant")

OTHERS = 0o077  # what group and others may do
BAD_INPUT = 2  # exit status of an InputError
INTERRUPTED = 130  # exit status after Ctrl-C, as shells have it
SHOW_ERRORS = "PLANT_SHOW_ERRORS"  # an environment variable: show what an unexpected error says of private data
TRY_AGAIN = 75  # exit status of a run that was interrupted and can go on (EX_TEMPFAIL)


def job(
    main: Callable[[argparse.Namespace], Mapping[str, Any] | None],
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    texts: Sequence[str] = (),
    reads: Callable[[argparse.Namespace], Sequence[Path]] | None = None,
) -> None:
    """Parse the arguments of a rule's script, run it, and write its provenance.

    Every script takes `--settings` (a JSON file with the sections of the config that it uses), `--provenance` (the
    sidecar's path), `--seed`, and one option for each name below. A name that ends with `?` may be left out; one that
    ends with `*` takes several paths.

    Args:
        main: does the work; what it returns is added to the provenance (`device` names the device).
        inputs: names of paths that are read; they are hashed.
        outputs: names of paths that are written.
        texts: names of arguments that are plain text.
        reads: arguments -> further files that are read, such as those that the settings name; they are hashed too.

    An InputError is printed without a traceback; the exit status is 2. A training run that SIGTERM or Ctrl-C
    interrupted ends with 75 and goes on where it stood when it is started again.

    What is made of a credentialed dataset, or from files that only their owner can read, can only be read by its
    owner: files, the folders that hold them, and the log. An unexpected error of such a job is printed without its
    message, which may quote the data.

    Under `accelerate launch` the same script runs in several processes: the first writes the sidecar, and the others
    log warnings and errors only. Their launcher ends with 1 wherever one of them ended with anything but 0.
    """
    meter = Meter()
    first = int(os.environ.get("RANK", "0")) == 0
    args = _parser(inputs, outputs, texts).parse_args()
    _start_log(first)
    with _exit_status(args, outputs, meter, first):
        read = [*_paths(args, inputs), *(reads(args) if reads else ())]
        private = _is_private(args, read)
        if private:
            os.umask(OTHERS)
            _close_log()
            sys.excepthook = _without_message
        _check_readable(read)
        extra = dict(main(args) or {})
        device = str(extra.pop("device", "cpu"))
        used = meter.read(device)  # of all processes
        if first and private:
            _close_folders()
        if first and args.provenance is not None:
            write_provenance(
                args.provenance,
                settings=args.settings,
                inputs=read,
                seed=args.seed,
                started=meter.started,
                resources=_with_earlier(args, used),
                outputs=[path for path in written() if not path.name.startswith(".")],
                device=device,
                extra=extra,
            )
            _attempts(args).unlink(missing_ok=True)
        _leave_group()


def _start_log(first: bool) -> None:
    level = logging.INFO if first else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every glyph
    log.info("%s started", Path(sys.argv[0]).stem)  # a killed job leaves no empty log


@contextmanager
def _exit_status(args: argparse.Namespace, outputs: Sequence[str], meter: Meter, first: bool) -> Iterator[None]:
    """End the process with a status that says what happened, and one line; unexpected errors pass through."""
    try:
        yield
    except InputError as error:
        log.error("error: %s", error)
        sys.exit(BAD_INPUT)
    except OSError as error:
        clear = explain(error, _paths(args, outputs))
        if clear is None:
            raise
        log.error("error: %s", clear)
        sys.exit(BAD_INPUT)
    except Interrupted as stopped:
        used = meter.read("cuda")
        if first and args.provenance is not None:
            write_json(_attempts(args), {"run": _run(args), "resources": _with_earlier(args, used)})
        _leave_group()
        log.warning("interrupted in %s; the same command continues from there", stopped)
        sys.exit(TRY_AGAIN)
    except KeyboardInterrupt:
        log.warning("interrupted; the same command begins it anew, or continues from what it has saved")
        sys.exit(INTERRUPTED)


def _is_private(args: argparse.Namespace, read: Sequence[Path]) -> bool:
    """Whether a job works on data that only its owner may see: the config says so, or the mode of a file it reads."""
    dataset = args.settings.get("dataset") or {}
    named = args.settings.get("private") or dataset.get("credentialed")
    return bool(named) or any(path.exists() and is_private(path) for path in read)


def _check_readable(read: Sequence[Path]) -> None:
    """Say what may not be read before a reader takes it for damaged."""
    for path in read:
        if path.exists() and not os.access(path, os.R_OK):
            raise unreadable(path)


def _close_log() -> None:
    """The shell makes the file that errors go to before the job starts: it becomes its owner's alone here."""
    status = os.fstat(sys.stderr.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
        os.fchmod(sys.stderr.fileno(), 0o600)


def _close_folders() -> None:
    """Snakemake makes the folders of outputs before the job starts: they become their owner's alone here."""
    for folder in {path.parent for path in written()}:
        status = folder.stat()
        if status.st_mode & OTHERS and status.st_uid == os.getuid():
            folder.chmod(status.st_mode & 0o700)


def _without_message(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print where an error happened and of what kind it is, not what it says: libraries quote the data."""
    if os.environ.get(SHOW_ERRORS):
        sys.__excepthook__(kind, error, trace)
        return
    where = "".join(traceback.format_tb(trace))
    print(  # noqa: T201 - in place of Python's own
        f"Traceback (most recent call last):\n{where}{kind.__name__}: (its message may quote the data, which is "
        f"private; set {SHOW_ERRORS}=1 to see it)", file=sys.stderr,
    )  # fmt: skip


def _attempts(args: argparse.Namespace) -> Path:
    """Where an interrupted run leaves what it has used, for the sidecar of the run that ends."""
    target: Path = args.provenance
    return target.with_name(f".{target.name}.attempts")


def _run(args: argparse.Namespace) -> str:
    """A digest of settings and seed: what another run has used is not counted."""
    return hashlib.sha256(json.dumps([args.settings, args.seed], sort_keys=True).encode()).hexdigest()


def _with_earlier(args: argparse.Namespace, used: Mapping[str, Any]) -> dict[str, Any]:
    """Resources of this attempt and of the interrupted ones before it, with the number of `attempts`."""
    file = _attempts(args)
    kept = read_json(file) if file.is_file() else {}
    if kept.get("run") != _run(args):
        return {**used, "attempts": 1}
    return {**add_attempt(kept["resources"], used), "attempts": kept["resources"]["attempts"] + 1}


def _leave_group() -> None:
    """Take leave of the other processes of this job, if there are any."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _paths(args: argparse.Namespace, names: Sequence[str]) -> list[Path]:
    """The paths behind some arguments; one that was left out has none."""
    paths: list[Path] = []
    for name in names:
        value = getattr(args, name.rstrip("?*"))
        paths += value if isinstance(value, list) else [value] if value else []
    return paths


def _parser(inputs: Sequence[str], outputs: Sequence[str], texts: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", type=lambda path: read_json(Path(path)), required=True)
    parser.add_argument("--provenance", type=Path)
    parser.add_argument("--seed", type=int)
    for name in texts:
        parser.add_argument(f"--{name.replace('_', '-')}", required=True)
    for name in (*inputs, *outputs):
        option = f"--{name.rstrip('?*').replace('_', '-')}"
        if name.endswith("*"):
            parser.add_argument(option, type=Path, nargs="*", default=[])
        else:
            parser.add_argument(option, type=Path, required=not name.endswith("?"))
    return parser
