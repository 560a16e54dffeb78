"""Stand-ins for the raw files: one simulation, one writer a raw form, so that no run needs a download.

What is written has the layout of the published files (names, headers, packing, separators), so that the readers of
`plant.corpus.sources` read it as they read the real ones. Words and codes are invented; a number on a stand-in says
nothing about the corpus that it is named for.
"""

from __future__ import annotations

from pathlib import Path

from plant.corpus.synthetic import codiesp, eurlex57k, mimic3, mimic4, xmc
from plant.ground import settings
from plant.ground.errors import InputError

Raw = settings.Mimic3 | settings.Mimic4 | settings.CodiEsp | settings.Eurlex57k | settings.Xmc
"""The sources that have a stand-in."""


def write_raw(dataset: settings.Dataset, out: Path) -> None:
    """Write the stand-in of a dataset with `generate` into the folder `out`. The same settings give the same bytes.

    Raises:
        InputError: the dataset has no `generate`.
    """
    generate = dataset.generate if isinstance(dataset, Raw) else None
    if generate is None:
        raise InputError(
            "synthetic",
            expected="a dataset with `generate`",
            got=f"source {dataset.source} without",
            fix="Add it to the config.",
        )
    match dataset:
        case settings.Mimic3():
            mimic3.write(generate, Path(out))
        case settings.Mimic4():
            mimic4.write(generate, Path(out), icd_version=dataset.icd_version)
        case settings.CodiEsp():
            codiesp.write(generate, Path(out))
        case settings.Eurlex57k():
            eurlex57k.write(generate, Path(out))
        case settings.Xmc():
            xmc.write(generate, Path(out), form=dataset.format)


def raw_path(dataset: Raw, raw: Path) -> Path:
    """What the dataset's `path` would be if `raw`, the folder of `write_raw`, held its published files."""
    return raw / codiesp.ARCHIVE if isinstance(dataset, settings.CodiEsp) else raw
