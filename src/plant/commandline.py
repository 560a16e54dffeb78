"""How a rule's script is run: typed arguments, a readable log, one clear error, a provenance sidecar."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from plant.errors import InputError, Interrupted
from plant.files import read_json
from plant.provenance import write_provenance

OTHERS = 0o077  # what group and others may do
BAD_INPUT = 2  # exit status of an InputError
TRY_AGAIN = 75  # exit status of a run that was interrupted and can go on (EX_TEMPFAIL)


def job(
    main: Callable[[argparse.Namespace], Mapping[str, Any] | None],
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> None:
    """Parse the arguments of a rule's script, run it, and write its provenance.

    Every script takes `--settings` (a JSON file with the sections of the config that it uses), `--provenance` (the
    sidecar's path), `--seed`, and one option for each name below. A name that ends with `?` may be left out; one that
    ends with `*` takes several paths.

    Args:
        main: does the work; what it returns is added to the provenance (`device` names the device; `inputs` names
            more files that were read).
        inputs: names of paths that are read; they are hashed.
        outputs: names of paths that are written.
        texts: names of arguments that are plain text.

    An InputError is printed without a traceback; the exit status is 2. A run that SIGTERM interrupted ends with 75
    and goes on where it stood when it is started again. What is made from files that only their
    owner can read (credentialed data) can only be read by its owner.
    """
    started = time.time()
    args = _parser(inputs, outputs, texts).parse_args()
    read = _paths(args, inputs)
    if any(path.exists() and not path.stat().st_mode & OTHERS for path in read):
        os.umask(OTHERS)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("plant").info("%s started", Path(sys.argv[0]).stem)  # a killed job leaves no empty log
    try:
        extra = dict(main(args) or {})
        if args.provenance is not None:
            write_provenance(
                args.provenance,
                settings=args.settings,
                inputs=[*read, *extra.pop("inputs", ())],
                seed=args.seed,
                started=started,
                device=str(extra.pop("device", "cpu")),
                extra=extra,
            )
    except InputError as error:
        logging.getLogger("plant").error("error: %s", error)
        sys.exit(BAD_INPUT)
    except Interrupted as stopped:
        logging.getLogger("plant").warning("interrupted in %s; the same command continues from there", stopped)
        sys.exit(TRY_AGAIN)


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
