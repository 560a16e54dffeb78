"""Raw formats by name: one module each in the folder `sources`.

To add a raw format is to add a module `sources/<name>.py` with a function

    read(dataset, path) -> plant.corpus.documents.SourceDocuments

A dataset names it by `source: module` and `module: <name>`; `dataset.options` are the options of that section. A module
that does not read all of `path` also has `files_read(dataset, path)`, the files that it reads.

Nothing here imports polars, because the Snakefile checks names by this folder.
"""

from __future__ import annotations

from collections.abc import Mapping

from plant.ground.errors import InputError, nearest
from plant.ground.folders import ModuleFolder
from plant.ground.settings import Dataset, OtherFormat, Subset

FORMATS = ModuleFolder("plant.corpus.sources", "read")
SHARED = {"mimic3": "mimic", "mimic4": "mimic"}
"""`source` of a dataset -> its module, where the module has another name."""


def format_of(dataset: Dataset) -> str:
    """The module that reads a dataset, by its name in the folder."""
    return dataset.module if isinstance(dataset, OtherFormat) else SHARED.get(dataset.source, dataset.source)


def modules_of(dataset: Dataset) -> list[str]:
    """The modules that read this dataset: no import statement names them."""
    return [] if isinstance(dataset, Subset) else [FORMATS.module(format_of(dataset))]


def check(datasets: Mapping[str, Dataset]) -> None:
    """Raises InputError if a dataset (by its name in the config) names a module that is not in the folder."""
    for name, dataset in datasets.items():
        if isinstance(dataset, OtherFormat) and dataset.module not in FORMATS.names():
            raise InputError(
                f"datasets.{name}.module", expected="a module of plant/corpus/sources/", got=repr(dataset.module),
                fix=nearest(dataset.module, FORMATS.names()),
            )  # fmt: skip
