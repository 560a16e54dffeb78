"""Synthetic raw files: always the same bytes, which the readers of the published files read."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plant.corpus import sources
from plant.corpus.simulation import OTHER_WORD
from plant.corpus.synthetic import write_raw
from plant.ground import settings

GENERATE = settings.Generate(admissions=1200, codes=150, words_per_note=60)
FORMS: dict[str, dict[str, Any]] = {
    "mimic3": {"source": "mimic3"},
    "mimic4": {"source": "mimic4"},
    "mimic4_icd9": {"source": "mimic4", "icd_version": 9},
    "pecos": {"source": "xmc", "format": "pecos"},
}


def dataset_of(form: str, **more: Any) -> settings.Dataset:
    return settings.parse_dataset({**FORMS[form], "generate": GENERATE.model_dump(), **more})


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_settings_give_the_bytes_of_our_numbers_and_the_published_path_reads_them(form, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        write_raw(dataset_of(form), folder)
    written = contents(one)
    assert contents(two) == written
    state = hashlib.sha256()
    for name, content in sorted(written.items()):
        state.update(Path(name).name.encode() + unpacked(name, content))
    assert state.hexdigest() == PUBLISHED[form]
    documents = sources.read(dataset_of(form), raw=one)
    assert sources.read(dataset_of(form, generate=None, path=str(one))).frame.equals(documents.frame)
    assert not documents.frame["text"].str.contains(OTHER_WORD).any()


PUBLISHED = {
    "mimic3": "771e5a3079cf233b1933a4e8f9d39de523cae937bed9eb4e551756bfcdc10d24",
    "mimic4": "947e71155ae73167c3ff348603569d415231d3a5ad6326e95096deff2f965239",
    "mimic4_icd9": "91243f2ed48f7e5a9abe38afabc2dcc26af43cf4bbe8ee9954a9bd15e337c05b",
    "pecos": "862c10b289ea7d9948d93899becba47af793bc9b0065e8fde69a0be94c50d0bb",
}
"""SHA-256 of the raw files with which our published numbers were made."""


def unpacked(name: str, content: bytes) -> bytes:
    """What a file holds: how it is compressed depends on the machine's zlib."""
    if name.endswith(".gz"):
        return gzip.decompress(content)
    if not name.endswith(".npz"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"".join(archive.read(member) for member in sorted(archive.namelist()))


def test_of_the_xmc_formats_only_pecos_has_a_synthetic_form():
    with pytest.raises(ValidationError, match="`format: pecos` only"):
        settings.parse_dataset({"source": "xmc", "format": "xmc_json", "generate": {}})
