"""The files that a dataset is made from, for its provenance: what the config names, and of raw folders what is read."""

from __future__ import annotations

from pathlib import Path

from plant.corpus.sources import mimic3, mimic4, raw_csv
from plant.ground import settings


def files_read(dataset: settings.Dataset) -> list[Path]:
    """Raw files, published lists and label lists that a dataset's section names, those that are there.

    A MIMIC folder holds much more than is read, and gigabytes of it: its tables are listed one by one. Of other
    sources the folder as a whole counts. Generated raw files are an input of their own.
    """
    named: list[Path | None] = [Path(path) for path in dataset.lists]
    match dataset:
        case settings.Table():
            named += map(Path, [dataset.path] if dataset.path is not None else (dataset.files or {}).values())
        case settings.Mimic3(path=str(path)):
            named += [raw_csv.find(Path(path), places) for places in mimic3.PLACES]
        case settings.Mimic4(path=str(path)):
            named += [raw_csv.find(Path(path), places) for places in mimic4.PLACES]
        case settings.CodiEsp(path=str(path)) | settings.Eurlex57k(path=str(path)) | settings.Xmc(path=str(path)):
            named.append(Path(path))
    return [path for path in named if path is not None and path.exists()]
