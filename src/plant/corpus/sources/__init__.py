"""One module for each raw format. Each reads its files into `plant.corpus.documents.SourceDocuments`.

`plant.corpus.formats` says what a module holds, and how a dataset names it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from plant.corpus.documents import SourceDocuments
from plant.corpus.formats import FORMATS, format_of
from plant.ground.errors import InputError
from plant.ground.settings import Dataset, OwnTable, Subset


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
