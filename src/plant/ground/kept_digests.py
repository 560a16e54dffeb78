"""Digests of code that are kept in a file between two starts of Snakemake."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

from plant.ground import provenance
from plant.ground.errors import InputError
from plant.ground.files import read_json, write_json

SETTLED = 2.0
"""Seconds. A file that changed less than this ago may change once more without a change of its times."""


class KeptDigests:
    """`digest` of the scripts of a folder. To parse all sources takes most of a second at each start of Snakemake.

    Kept digests are used only while every source of the package and every script has the size and the times that it had
    when they were computed, and Python is the same. One of the times is that of the last change of the file, which no
    program can set back. Else all digests are computed again. A file that is missing or damaged holds no digests.

    Args:
        file: where digests are kept, by `keep`.
        scripts: folder of the scripts.
    """

    def __init__(self, file: Path, scripts: Path) -> None:
        self.file, self.scripts, now = file.absolute(), scripts, time.time()
        sources = [path for path in provenance.PACKAGE.rglob("*") if path.suffix in (".py", *provenance.DATA)] + list(
            scripts.glob("*.py")
        )
        states = {str(path): path.stat() for path in sorted(sources)}
        self.state = {path: [each.st_size, each.st_mtime_ns, each.st_ctime_ns] for path, each in states.items()}
        self.settled = now - max(each.st_ctime for each in states.values()) > SETTLED
        try:
            kept = read_json(file)
        except InputError:
            kept = None
        same = isinstance(kept, dict) and (kept.get("python"), kept.get("state")) == (sys.version, self.state)
        self.digests: dict[str, str] = kept.get("digests", {}) if same else {}
        self.before = len(self.digests)

    def __call__(self, name: str, *modules: str) -> str:
        """The digest of the script `<name>.py` and of `modules` (see `digest`)."""
        key = " ".join([name, *modules])
        if key not in self.digests:
            self.digests[key] = provenance.digest(self.scripts / f"{name}.py", *modules)
        return self.digests[key]

    def keep(self) -> None:
        """Write the digests, if there are new ones, and no source changed just before."""
        if self.settled and len(self.digests) > self.before:
            with suppress(OSError):  # such as a folder that cannot be written: the next start computes them again
                write_json(self.file, {"python": sys.version, "state": self.state, "digests": self.digests})
