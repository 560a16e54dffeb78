"""Raw formats are found by their names, and one file adds one."""

import subprocess
import sys
from typing import get_args

import polars as pl
import pytest

from plant.corpus import build, formats, sources
from plant.ground import settings
from plant.ground.errors import InputError


def test_every_source_of_the_config_has_a_module_that_reads_it():
    classes = get_args(get_args(settings.Dataset)[0])
    known = {name for each in classes for name in get_args(each.model_fields["source"].annotation)}
    modules = {formats.SHARED.get(name, name) for name in known - {"subset", "module"}}
    assert modules <= set(formats.FORMATS.names())
    assert all(callable(formats.FORMATS.load(name)) for name in modules)


OWN_FORMAT = '''
"""A line for each document: its labels, a tab, its text."""
from plant.corpus.documents import SourceDocuments, canonical


def read(dataset, path):
    lines = [line.split(dataset.options["tab"]) for line in path.read_text("utf-8").splitlines()]
    names = [f"d{i}" for i in range(len(lines))]
    labels, texts = [labels.split() for labels, _ in lines], [text for _, text in lines]
    return SourceDocuments(canonical({"document_id": names, "group_id": names, "text": texts, "labels": labels}))
'''


def test_one_file_is_a_raw_format_that_a_config_names(tmp_path, extend):
    (tmp_path / "tabbed.py").write_text(OWN_FORMAT, encoding="utf-8")
    extend(sources, tmp_path)
    lines = [f"A{i % 3} B\tword{i} and more" for i in range(40)]
    (tmp_path / "raw.txt").write_text("\n".join(lines), encoding="utf-8")
    path = str(tmp_path / "raw.txt")
    own = settings.parse_dataset({"source": "module", "module": "tabbed", "path": path, "options": {"tab": "\t"}})
    formats.check({"own": own})
    build.build_corpus(own, tmp_path / "own")
    told = pl.concat([pl.read_parquet(tmp_path / f"own/{split}.parquet") for split in ("train", "val", "test")])
    assert sorted(told["text"]) == sorted(line.split("\t")[1] for line in lines)
    assert sources.files_read(own) == [tmp_path / "raw.txt"]
    assert formats.modules_of(own) == ["plant.corpus.sources.tabbed"]


def test_a_raw_format_without_a_module_is_refused_before_any_job():
    own = settings.parse_dataset({"source": "module", "module": "tabble", "path": "x"})
    with pytest.raises(InputError, match=r"datasets\.own\.module: .*'tabble'\. Did you mean 'table'\?"):
        formats.check({"own": own})
    code = "import sys; import plant.corpus.formats as f; f.FORMATS.names(); assert 'polars' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files_of_a_source_are_those_of_its_module_or_else_its_path(tmp_path):
    files = [tmp_path / name for name in ("train.csv", "test.csv", "NOTEEVENTS.csv", "other.csv")]
    for file in files:
        file.write_text("x\n")
    own = settings.parse_dataset({"source": "table", "files": {"train": str(files[0]), "test": str(files[1])}})
    assert sources.files_read(own) == files[:2]
    assert sources.files_read(settings.parse_dataset({"source": "eurlex57k", "path": str(tmp_path)})) == [tmp_path]
    assert sources.files_read(settings.parse_dataset({"source": "mimic3", "path": str(tmp_path)})) == [files[2]]
    assert sources.files_read(settings.parse_dataset({"source": "mimic3", "generate": {}})) == []
