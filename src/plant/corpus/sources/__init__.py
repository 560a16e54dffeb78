"""One module for each raw format. Each reads its files into `plant.corpus.documents.SourceDocuments`.

`plant.corpus.formats` says what a module holds, and how a dataset names it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from plant.corpus.documents import SourceDocuments
from plant.corpus.formats import FORMATS, format_of
from plant.ground.settings import Dataset, Subset


def read(dataset: Dataset, *, raw: Path | None = None) -> SourceDocuments:
    """Read the source that a dataset names, but not a subset. `raw` is the folder of generated raw files.

    Raises:
        InputError: a file is missing, damaged or has another form.
    """
    named = dataset.sources.get("path")
    path = raw if named is None else Path(named)  # None: a table that names its files one by one
    documents: SourceDocuments = FORMATS.load(format_of(dataset))(dataset, path)
    return documents


def files_read(dataset: Dataset) -> list[Path]:
    """The existing files of the source and the lists, for provenance.

    Generated raw files are not listed, because the rule has them as an input. A subset reads its lists only.
    """
    own = [Path(path) for key, path in dataset.sources.items() if key.partition(".")[0] in ("path", "files")]
    if own and not isinstance(dataset, Subset):
        module = import_module(FORMATS.module(format_of(dataset)))
        if hasattr(module, "files_read"):
            own = module.files_read(dataset, own[0])
    return [path for path in (*map(Path, dataset.lists), *own) if path.exists()]
