"""One module for each raw format. Each reads its files into `plant.corpus.documents.SourceDocuments`.

A module has `read(dataset, path)`. If it does not read all of `path`, it also has `files_read(dataset, path)`.
A new format is a module, its line in `FORMATS`, and its class in `plant.ground.settings.corpus`.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from plant.corpus.documents import SourceDocuments
from plant.corpus.sources import codiesp, eurlex57k, mimic, table, xmc
from plant.ground.errors import InputError
from plant.ground.settings import Dataset, OwnTable, Subset

FORMATS: dict[str, ModuleType] = {
    "table": table, "mimic3": mimic, "mimic4": mimic, "codiesp": codiesp, "eurlex57k": eurlex57k, "xmc": xmc,
}  # fmt: skip
"""`source` of a dataset -> the module that reads it."""


def read(dataset: Dataset, *, raw: Path | None = None) -> SourceDocuments:
    """Read the source that a dataset names.

    Args:
        dataset: an entry of the config's `datasets`, but not a subset.
        raw: folder of the generated raw files, for a dataset with `generate`.

    Raises:
        InputError: a file is missing, damaged or has another form.
    """
    if isinstance(dataset, Subset):
        raise InputError("build_corpus", expected="a source of its own", got="a subset", fix="Use build_subset.")
    path = raw if dataset.path is None else Path(dataset.path)
    if path is None and not isinstance(dataset, OwnTable):  # a table may name its files one by one
        raise InputError(
            "build_corpus", expected="`raw`, the folder of the generated files", got="none",
            fix="Run plant.corpus.synthetic.write_raw first.",
        )  # fmt: skip
    documents: SourceDocuments = FORMATS[dataset.source].read(dataset, path)
    return documents


def files_read(dataset: Dataset) -> list[Path]:
    """The existing files of the source and the lists, for provenance.

    Generated raw files are not listed, because the rule has them as an input. A subset reads its lists only.
    """
    own = [Path(path) for key, path in dataset.sources.items() if key.partition(".")[0] in ("path", "files")]
    module = FORMATS.get(dataset.source)
    if own and module is not None and hasattr(module, "files_read"):
        own = module.files_read(dataset, own[0])
    return [path for path in (*map(Path, dataset.lists), *own) if path.exists()]
