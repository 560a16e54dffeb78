"""One module for each raw format. Each reads its files into `plant.corpus.documents.SourceDocuments`."""

from __future__ import annotations

from pathlib import Path

from plant.corpus.documents import SourceDocuments
from plant.corpus.sources import codiesp, eurlex57k, mimic, table, xmc
from plant.ground import settings
from plant.ground.errors import InputError


def read(dataset: settings.Dataset, *, raw: Path | None = None) -> SourceDocuments:
    """Read the source that a dataset names.

    Args:
        dataset: an entry of the config's `datasets`, but not a subset.
        raw: folder of the generated raw files, for a dataset with `generate`.

    Raises:
        InputError: a file is missing, damaged or has another form.
    """
    match dataset:
        case settings.OwnTable():
            return table.read(dataset)
        case settings.Subset():
            raise InputError("build_corpus", expected="a source of its own", got="a subset", fix="Use build_subset.")
    if dataset.path is None and raw is None:
        raise InputError(
            "build_corpus", expected="`raw`, the folder of the generated files", got="none",
            fix="Run plant.corpus.synthetic.write_raw first.",
        )  # fmt: skip
    path = Path(dataset.path or str(raw))
    match dataset:
        case settings.Mimic3() | settings.Mimic4():
            return mimic.read(dataset, path)
        case settings.CodiEsp():
            return codiesp.read(dataset, path)
        case settings.Eurlex57k():
            return eurlex57k.read(path)
        case settings.Xmc():
            return xmc.read(dataset, path)


def files_read(dataset: settings.Dataset) -> list[Path]:
    """The existing files of the source and the lists, for provenance.

    For MIMIC these are the tables that are read. For other sources it is the whole folder. Generated raw files are not
    listed, because the rule has them as an input.
    """
    named = [Path(path) for path in dataset.lists]
    match dataset:
        case settings.OwnTable():
            named += map(Path, [dataset.path] if dataset.path is not None else (dataset.files or {}).values())
        case settings.Mimic3(path=str(path)) | settings.Mimic4(path=str(path)):
            named += mimic.files_read(dataset, Path(path))
        case settings.CodiEsp(path=str(path)) | settings.Eurlex57k(path=str(path)) | settings.Xmc(path=str(path)):
            named.append(Path(path))
    return [path for path in named if path.exists()]
