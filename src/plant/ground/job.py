"""Runs the script of a rule: with a log, one clear error, privacy, and a provenance sidecar."""

import errno
import gc
import hashlib
import json
import logging
import math
import os
import stat
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from plant.ground.errors import InputError, Interrupted, printable
from plant.ground.files import explain, is_private, read_json, unreadable, write_json, written
from plant.ground.provenance import SIDECAR, check_unchanged, write_provenance
from plant.ground.resources import Meter, add_attempt

log = logging.getLogger("plant")

OTHERS = 0o077  # permissions of group and others
UNEXPECTED = 1  # exit status of an unexpected error
BAD_INPUT = 2  # exit status of an InputError
TRY_AGAIN = 75  # exit status of an interrupted run that can continue (EX_TEMPFAIL)
INTERRUPTED = 130  # exit status after Ctrl-C, as in shells
SHOW_ERRORS = "PLANT_SHOW_ERRORS"  # environment variable: show the message of an unexpected error on private data
TRACEBACK = ".traceback"  # ending of the file beside the log with the traceback of an unexpected error
GARBAGE = 10_000  # new objects between two searches for cycles; Python's 700 make imports a tenth slower


class Arguments(Namespace):
    """What the function of a script gets.

    The named inputs and outputs of the rule as paths (a list if there are several, None if there is none), the
    wildcards and params of the job, the name of the `rule`, `settings` (sections of the config), `seed` (or None),
    `threads`, and `out`, the folder of the sidecar. The sidecar is the output whose name ends with `provenance.json`.
    The param `screen` says which lines of the log are shown at the end: "warnings" or "everything". Without it, none.
    """


def describe(
    inputs: Any, outputs: Any, *, rule: str, wildcards: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None, log: str | None = None, threads: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """A job as plain data.

    Inputs and outputs are name -> path or paths, or the files of Snakemake, of which some have names. The param
    `settings` has the sections of the config that the job uses. Without a `log`, the shell redirects the output.
    """
    named = {name: _plain(value) for part in (inputs, outputs) for name, value in part.items()}
    return {
        "rule": rule, "log": log, "threads": threads, "wildcards": dict(wildcards or {}), "params": dict(params or {}),
        "named": named, "inputs": _listed(inputs), "outputs": _listed(outputs),
    }  # fmt: skip


def job(
    main: Callable[[Arguments], Mapping[str, Any] | None] | None = None,
    *,
    reads: Callable[[Arguments], Sequence[Path]] | None = None,
) -> Any:
    """Run the function below, the last one of a rule's script: `@job`, or `@job(reads=...)`.

    Args:
        main: does the work. What it returns is added to the sidecar (`device` names the device).
        reads: arguments -> further files that are read, such as raw files that the settings name.

    Small inputs are compared with the sidecar of the job that made them before any work, and all of them after an
    unexpected error: a damaged one is an InputError. An InputError is one line, and the exit status is 2. An unexpected
    error is one line that names the file with the traceback, beside the log; the exit status is 1. A training run that
    SIGTERM or Ctrl-C interrupted ends with 75. It continues when it is started again.

    If a dataset is credentialed, or only the owner can read an input, then only the owner can read the outputs, their
    folders and the log. The message of an unexpected error is not shown then, because it may quote the data.

    Under `accelerate launch`, several processes run the script. The first one writes the sidecar. The others log only
    warnings and errors. The launcher ends with 1 if one of them ended with anything but 0.
    """
    if main is None:
        return partial(job, reads=reads)
    gc.set_threshold(GARBAGE)
    meter = Meter()
    first = int(os.environ.get("RANK", "0")) == 0
    handed = _handed()
    args = _arguments(handed)
    terminal = _start_log(handed, first)
    with _exit_status(args, meter, first):
        read = list(dict.fromkeys([*args.inputs, *(reads(args) if reads else ())]))
        args.private = _is_private(args, read)
        if args.private:
            os.umask(OTHERS)
            _close_log()
        for path in read:
            if path.exists() and not os.access(path, os.R_OK):  # a reader would call it damaged
                raise unreadable(path)
        check_unchanged(args.inputs)
        extra = dict(main(args) or {})
        device = str(extra.pop("device", "cpu"))
        used = meter.read(device)  # of all processes
        if first and args.private:
            _close_folders()
        if first and args.provenance is not None:
            made = [path for path in written() if not path.name.startswith(".")]
            write_provenance(
                args.provenance, settings=args.settings, inputs=read, seed=args.seed, started=meter.started,
                resources=_with_earlier(args, used), outputs=made, device=device, extra=extra,
            )  # fmt: skip
            _attempts(args).unlink(missing_ok=True)
        _leave_group()
    if terminal is not None and "screen" in args:
        _show(args.log, terminal, args.screen)
    gc.freeze()  # else Python searches all modules for cycles at its end: a second if transformers is loaded
    return main


def _handed() -> dict[str, Any]:
    """The job as plain data, from the object that Snakemake gives to a script, or from the command line as JSON."""
    rule = getattr(sys.modules["__main__"], "snakemake", None)
    if rule is None:
        return dict(json.loads(sys.argv[1]))
    return describe(
        rule.input, rule.output, rule=rule.rule, wildcards=dict(rule.wildcards.items()),
        params=dict(rule.params.items()), log=rule.log[0], threads=rule.threads,
    )  # fmt: skip


def _plain(value: Any) -> str | list[str]:
    """A path as text, or several. The classes of Snakemake do not leave this module."""
    return str(value) if isinstance(value, str | Path) else [str(path) for path in value]


def _listed(files: Any) -> list[str]:
    """All inputs or all outputs, with and without names."""
    values = files.values() if isinstance(files, Mapping) else files
    return [path for value in map(_plain, values) for path in ([value] if isinstance(value, str) else value)]


def _arguments(handed: Mapping[str, Any]) -> Arguments:
    params, wildcards = handed["params"], handed["wildcards"]
    named = {name: Path(value) if isinstance(value, str) else [Path(path) for path in value] or None
             for name, value in handed["named"].items()}  # fmt: skip
    outputs = list(dict.fromkeys(map(Path, handed["outputs"])))
    sidecars = [Path(params["provenance"])] if "provenance" in params else outputs
    provenance = next((path for path in sidecars if path.name.endswith(SIDECAR)), None)
    seed = wildcards.get("seed", params.get("seed"))
    values = {**wildcards, "out": provenance and provenance.parent, **named, **params}
    return Arguments(**{
        **values, "settings": params.get("settings") or {}, "provenance": provenance, "rule": handed["rule"],
        "inputs": [path for path in map(Path, handed["inputs"]) if not path.name.endswith(SIDECAR)],
        "outputs": [path for path in outputs if path != provenance], "threads": handed["threads"],
        "seed": None if seed is None else int(seed), "log": handed["log"] and Path(handed["log"]),
        "private": True,  # until it is known
    })  # fmt: skip


def _start_log(handed: Mapping[str, Any], first: bool) -> int | None:
    """Send all output to the log. Returns the terminal, unless the shell redirects the output."""
    terminal = None
    if handed["log"] is not None:
        Path(handed["log"]).with_suffix(TRACEBACK).unlink(missing_ok=True)  # of an earlier run
        terminal = os.dup(sys.stderr.fileno())
        file = os.open(handed["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file, stream.fileno())
        os.close(file)
    level = logging.INFO if first else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it logs every glyph
    log.info("%s started", handed["rule"])  # so that the log of a killed job is not empty
    return terminal


def _show(file: Path, terminal: int, screen: str) -> None:
    """Show the log ("everything") or its "warnings" on the terminal."""
    sys.stdout.flush()
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    shown = [line for line in lines if screen == "everything" or line.split()[1:2] == ["warning:"]]
    os.write(terminal, "".join(shown).encode())


@contextmanager
def _exit_status(args: Arguments, meter: Meter, first: bool) -> Iterator[None]:
    """End the process with a line that says what happened, and with its exit status."""
    try:
        yield
    except InputError as error:
        log.error("error: %s", error)
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
    except Exception as error:  # noqa: BLE001 - told in one line, and the job ends
        cause = error if isinstance(error, OSError) else _full_disk(error)
        clear = explain(cause, _targets(args)) if cause is not None else _damage(args)
        if clear is not None:
            log.error("error: %s", clear)
            sys.exit(BAD_INPUT)
        _tell_unexpected(error, args)
        sys.exit(UNEXPECTED)


def _full_disk(error: BaseException | None) -> OSError | None:
    """The full disk behind an error: matplotlib's PDF fails once more when it closes a file that it could not write."""
    while error is not None and not (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
        error = error.__context__
    return error


def _damage(args: Arguments) -> InputError | None:
    """The error for a damaged input, however large. None: all are as their jobs wrote them."""
    try:
        check_unchanged(args.inputs, largest=math.inf)
    except InputError as damaged:
        return damaged
    return None


def _tell_unexpected(error: Exception, args: Arguments) -> None:
    """Log one line, and write the traceback to a file beside the log. Without a log, print the traceback."""
    kind, said = type(error).__name__, str(error)
    trace = "".join(traceback.format_exception(error))
    if args.private and not os.environ.get(SHOW_ERRORS):
        said = f"its message may quote the data, which is private; set {SHOW_ERRORS}=1 to see it"
        where = "".join(traceback.format_tb(error.__traceback__))
        trace = f"Traceback (most recent call last):\n{where}{kind}: ({said})\n"
    if args.log is None:
        sys.stderr.write(trace)
        return
    file = args.log.with_suffix(TRACEBACK)
    file.write_text(trace, encoding="utf-8")
    if args.private:
        file.chmod(0o600)
    log.error("error: unexpected %s (%s); the traceback is in %s", kind, printable(said.partition("\n")[0]), file)


def _targets(args: Arguments) -> list[Path]:
    """For an error: the only output of a job, or the folders of several."""
    if len(args.outputs) == 1:
        return list(args.outputs)
    return sorted({path.parent for path in args.outputs}) or [Path(args.out or ".")]


def _is_private(args: Arguments, read: Sequence[Path]) -> bool:
    """Whether only the owner may see the data: the config says so, or the mode of an input."""
    dataset = args.settings.get("dataset") or {}
    named = args.settings.get("private") or dataset.get("credentialed")
    return bool(named) or any(path.exists() and is_private(path) for path in read)


def _close_log() -> None:
    """Let only the owner read the log. It was created before the job knew that it is private."""
    status = os.fstat(sys.stderr.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
        os.fchmod(sys.stderr.fileno(), 0o600)


def _close_folders() -> None:
    """Let only the owner read the folders of the outputs. Snakemake created them before the job."""
    for folder in {path.parent for path in written()}:
        status = folder.stat()
        if status.st_mode & OTHERS and status.st_uid == os.getuid():
            folder.chmod(status.st_mode & 0o700)


def _attempts(args: Arguments) -> Path:
    """File with the resources of an interrupted run, for the sidecar of the run that continues it."""
    target: Path = args.provenance
    return target.with_name(f".{target.name}.attempts")


def _run(args: Arguments) -> str:
    """Digest of settings and seed, so that the resources of another run are not counted."""
    return hashlib.sha256(json.dumps([args.settings, args.seed], sort_keys=True).encode()).hexdigest()


def _with_earlier(args: Arguments, used: Mapping[str, Any]) -> dict[str, Any]:
    """Resources of this attempt and of the interrupted ones before it, with the number of `attempts`."""
    file = _attempts(args)
    kept = read_json(file) if file.is_file() else {}
    if kept.get("run") != _run(args):
        return {**used, "attempts": 1}
    return {**add_attempt(kept["resources"], used), "attempts": kept["resources"]["attempts"] + 1}


def _leave_group() -> None:
    """Leave the process group of torch, if there is one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
