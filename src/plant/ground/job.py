"""How a rule's script is run: typed arguments, a readable log, one clear error, a provenance sidecar."""

import gc
import hashlib
import json
import logging
import os
import stat
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from plant.ground.errors import InputError, Interrupted
from plant.ground.files import explain, is_private, read_json, unreadable, write_json, written
from plant.ground.provenance import SIDECAR, write_provenance
from plant.ground.resources import Meter, add_attempt

log = logging.getLogger("plant")

OTHERS = 0o077  # what group and others may do
BAD_INPUT = 2  # exit status of an InputError
INTERRUPTED = 130  # exit status after Ctrl-C, as shells have it
SHOW_ERRORS = "PLANT_SHOW_ERRORS"  # an environment variable: show what an unexpected error says of private data
TRY_AGAIN = 75  # exit status of a run that was interrupted and can go on (EX_TEMPFAIL)
GARBAGE = 10_000  # new objects between two searches for cycles; Python's 700 make imports a tenth slower


def describe(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any], *, rule: str, wildcards: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None, more: Sequence[str] = (), log: str | None = None, threads: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """A job as plain data: what its rule hands to its script.

    Args:
        inputs: name -> path or paths.
        outputs: name -> path or paths; unnamed outputs stand under any name.
        rule: its name.
        wildcards: of the job.
        params: of the rule; `settings` holds the sections of the config that the job uses.
        more: inputs without a name.
        log: file for all that the job says; None where the shell writes it.
        threads: that the job may use.
    """
    return {
        "rule": rule, "log": log, "threads": threads, "wildcards": dict(wildcards or {}), "params": dict(params or {}),
        "input": {name: _plain(value) for name, value in inputs.items()}, "more": [str(path) for path in more],
        "output": {name: _plain(value) for name, value in outputs.items()},
    }  # fmt: skip


def job(
    main: Callable[[Namespace], Mapping[str, Any] | None],
    *,
    optional: Sequence[str] = (),
    reads: Callable[[Namespace], Sequence[Path]] | None = None,
) -> None:
    """Run the script of a rule: with a log, one clear error, privacy, and a provenance sidecar.

    `main` gets one namespace. It holds the rule's named inputs and outputs as paths (a list where the rule has
    several), its wildcards and params, the name of the `rule`, `settings` (sections of the config), `seed` (or None),
    `threads`, and `out`, the folder of the sidecar. The sidecar is the output that ends with `provenance.json`. The
    param `screen` says what of the log the user sees at the end: "warnings" or "everything"; without it, nothing.

    Args:
        main: does the work; what it returns is added to the provenance (`device` names the device).
        optional: inputs that a rule may leave out; they are None then.
        reads: arguments -> further files that are read, such as raw files that the settings name.

    All inputs are hashed. An InputError is printed without a traceback; the exit status is 2. A training run that
    SIGTERM or Ctrl-C interrupted ends with 75 and goes on where it stood when it is started again.

    What is made of a credentialed dataset, or from files that only their owner can read, can only be read by its
    owner: files, the folders that hold them, and the log. An unexpected error of such a job is printed without its
    message, which may quote the data.

    Under `accelerate launch` the same script runs in several processes: the first writes the sidecar, and the others
    log warnings and errors only. Their launcher ends with 1 wherever one of them ended with anything but 0.
    """
    gc.set_threshold(GARBAGE)
    meter = Meter()
    first = int(os.environ.get("RANK", "0")) == 0
    handed = _handed()
    args = _arguments(handed, optional)
    terminal = _start_log(handed, first)
    with _exit_status(args, meter, first):
        read = list(dict.fromkeys([*args.inputs, *(reads(args) if reads else ())]))
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
    if terminal is not None and "screen" in args:
        _show(Path(handed["log"]), terminal, args.screen)
    gc.freeze()  # else Python searches all modules for cycles at the end: a second where transformers is loaded


def _handed() -> dict[str, Any]:
    """The job as plain data: from the object that Snakemake puts into a script, or from the command line as JSON."""
    rule = getattr(sys.modules["__main__"], "snakemake", None)
    if rule is None:
        return dict(json.loads(sys.argv[1]))
    named = [path for _, value in rule.input.items() for path in _listed(value)]
    made = {str(i): path for i, path in enumerate(rule.output)} | dict(rule.output.items())
    return describe(
        dict(rule.input.items()), made, rule=rule.rule,
        wildcards=dict(rule.wildcards.items()), params=dict(rule.params.items()),
        more=[path for path in rule.input if path not in named], log=rule.log[0], threads=rule.threads,
    )  # fmt: skip


def _arguments(handed: Mapping[str, Any], optional: Sequence[str]) -> Namespace:
    """Everything that the rule hands over, under one roof."""
    params, wildcards = handed["params"], handed["wildcards"]
    read = {name: _path(value) for name, value in handed["input"].items()}
    made = {str(name): _path(value) for name, value in handed["output"].items()}
    inputs = [Path(path) for value in [*handed["input"].values(), handed["more"]] for path in _listed(value)]
    inputs = [path for path in inputs if not path.name.endswith(SIDECAR)]  # they say when and how, not what
    outputs = list(dict.fromkeys(Path(path) for value in handed["output"].values() for path in _listed(value)))
    sidecars = [Path(params["provenance"])] if "provenance" in params else outputs
    provenance = next((path for path in sidecars if path.name.endswith(SIDECAR)), None)
    seed = wildcards.get("seed", params.get("seed"))
    values = dict.fromkeys(optional) | wildcards | {"out": provenance and provenance.parent} | read | made | params
    return Namespace(**{
        **values, "settings": params.get("settings") or {}, "provenance": provenance, "inputs": inputs,
        "outputs": [path for path in outputs if path != provenance], "threads": handed["threads"],
        "rule": handed["rule"],
        "seed": None if seed is None else int(seed),
    })  # fmt: skip


def _plain(value: Any) -> str | list[str]:
    """A path as text, or several; Snakemake's own classes do not leave this module."""
    return str(value) if isinstance(value, str | Path) else [str(path) for path in value]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _path(value: str | list[str]) -> Path | list[Path] | None:
    """The path or the paths of a name; None where the rule has none for it."""
    return Path(value) if isinstance(value, str) else [Path(path) for path in value] or None


def _start_log(handed: Mapping[str, Any], first: bool) -> int | None:
    """Send all that the job says to its log; the terminal, if the shell has not sent it there already."""
    terminal = None
    if handed["log"] is not None:
        terminal = os.dup(sys.stderr.fileno())
        file = os.open(handed["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file, stream.fileno())
        os.close(file)
    level = logging.INFO if first else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every glyph
    log.info("%s started", handed["rule"])  # a killed job leaves no empty log
    return terminal


def _show(file: Path, terminal: int, screen: str) -> None:
    """Repeat the log ("everything"), or its "warnings", where the user sees it."""
    sys.stdout.flush()
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    shown = [line for line in lines if screen == "everything" or line.split()[1:2] == ["warning:"]]
    os.write(terminal, "".join(shown).encode())


@contextmanager
def _exit_status(args: Namespace, meter: Meter, first: bool) -> Iterator[None]:
    """End the process with a status that says what happened, and one line; unexpected errors pass through."""
    try:
        yield
    except InputError as error:
        log.error("error: %s", error)
        sys.exit(BAD_INPUT)
    except OSError as error:
        clear = explain(error, _targets(args))
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


def _targets(args: Namespace) -> list[Path]:
    """Where a job writes: its one output, or the folders of several."""
    if len(args.outputs) == 1:
        return list(args.outputs)
    return sorted({path.parent for path in args.outputs}) or [Path(args.out or ".")]


def _is_private(args: Namespace, read: Sequence[Path]) -> bool:
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


def _attempts(args: Namespace) -> Path:
    """Where an interrupted run leaves what it has used, for the sidecar of the run that ends."""
    target: Path = args.provenance
    return target.with_name(f".{target.name}.attempts")


def _run(args: Namespace) -> str:
    """A digest of settings and seed: what another run has used is not counted."""
    return hashlib.sha256(json.dumps([args.settings, args.seed], sort_keys=True).encode()).hexdigest()


def _with_earlier(args: Namespace, used: Mapping[str, Any]) -> dict[str, Any]:
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
