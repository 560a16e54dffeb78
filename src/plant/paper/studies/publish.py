"""Copy pages of studies from the results to docs/studies/, where they are committed (`publish` in the Makefile).

Run as `python -m plant.paper.studies.publish <study> ...` in the root of the repository.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from plant.ground.files import read_json, require_file, write_text, write_with
from plant.ground.provenance import SIDECAR

FILES = ("page.md", "figures/effects.png", "tables/effects.csv", "tables/factors.csv")


def publish(study: Path, target: Path) -> None:
    """Copy the files of a study that are read in docs/, and a short form of its sidecar.

    Raises:
        InputError: a file of the study is missing.
    """
    for name in FILES:
        write_with(target / name, partial(shutil.copyfile, require_file(study / name)))
    write_text(target / SIDECAR, short(read_json(study / SIDECAR)))


def short(facts: Mapping[str, Any]) -> str:
    """A sidecar without `settings`: its commit has the config files. One line a fact, and one a file."""
    lines = []
    for name, value in sorted(facts.items()):
        if name in ("inputs", "outputs"):
            files = ",\n".join(f"    {json.dumps(path)}: {json.dumps(digest)}" for path, digest in value.items())
            lines.append(f"  {json.dumps(name)}: {{\n{files}\n  }}")
        elif name != "settings":
            lines.append(f"  {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    for study in sys.argv[1:]:
        publish(Path("results/paper/studies", study), Path("docs/studies", study))
