"""The ground floor: errors, files, seeds and settings."""

import copy
import errno
import hashlib
import os
import resource
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors import safe_open

from plant.ground import files, seeds
from plant.ground.errors import InputError

# --- errors ---------------------------------------------------------------------------------------


def test_an_input_error_survives_the_way_back_from_a_worker_process() -> None:
    error = InputError("where", expected="this", got="that", fix="Do it.")
    twin = copy.copy(error)  # by the protocol that pickling uses too
    assert isinstance(twin, InputError)
    assert (twin.where, twin.expected, twin.got, twin.fix, str(twin)) == ("where", "this", "that", "Do it.", str(error))


# --- files ----------------------------------------------------------------------------------------


def names(folder: Path) -> list[str]:
    """Everything below a folder, hidden files too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_file_appears_whole_and_alone_and_a_folder_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.txt"
    with files.atomic_path(target) as partial:
        partial.write_text("half")
        assert not target.exists()
        partial.write_text("whole")
    assert target.read_text() == "whole"
    (tmp_path / "model").touch()  # a file of this name gives way, too
    for name in ("old", "new"):
        with files.atomic_path(tmp_path / "model") as partial:
            partial.mkdir()
            (partial / name).write_text(name)
    assert names(tmp_path) == ["model", "model/new", "new", "new/a.txt"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_old_file_or_folder_and_nothing_else(tmp_path: Path, failure: type[BaseException]) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "old").write_text("old")
    with pytest.raises(failure), files.atomic_path(tmp_path / "a.txt") as partial:
        partial.write_text("half")
        raise failure
    with pytest.raises(failure), files.atomic_path(tmp_path / "model") as partial:
        partial.mkdir()
        (partial / "new").write_text("half")
        raise failure
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt", "model", "model/old"]


def test_what_a_killed_process_left_an_hour_ago_is_removed_and_what_another_writes_is_not(tmp_path: Path) -> None:
    old, fresh, other = (tmp_path / name for name in (".a.1.partial", ".a.2.partial", ".b.1.partial"))
    for path in (old, fresh, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (1, 1))
    with files.atomic_path(tmp_path / "a") as partial:
        partial.write_text("whole")
    assert names(tmp_path) == [".a.2.partial", ".b.1.partial", "a"]


def test_json_is_read_back_whatever_the_order_of_keys_and_refuses_what_is_no_number(tmp_path: Path) -> None:
    value = {"b": [1, 2.5, None, True], "a": {"ü": "text"}}
    files.write_json(tmp_path / "1.json", value)
    files.write_json(tmp_path / "2.json", dict(reversed(value.items())))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            files.write_json(tmp_path / "1.json", {"value": bad})
    assert files.read_json(tmp_path / "1.json") == value
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    assert names(tmp_path) == ["1.json", "2.json"]


DTYPES = st.sampled_from([np.dtype(name) for name in ("int32", "int64", "float16", "float32", "float64", "bool")])


@given(array=arrays_of.arrays(DTYPES, arrays_of.array_shapes(max_dims=3, max_side=5, min_side=0)))
def test_any_array_is_read_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray) -> None:
    target = tmp_path_factory.mktemp("arrays") / "a.safetensors"
    files.write_arrays(target, {"plain": array, "turned": array.T})
    back = files.read_arrays(target)
    for name, expected in (("plain", array), ("turned", array.T)):
        assert back[name].dtype == expected.dtype
        assert back[name].shape == expected.shape
        assert back[name].tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_arrays_and_tensors_have_the_mode_that_the_umask_asks_for(tmp_path: Path, mask: int) -> None:
    import torch

    from plant.ground.checkpoints import save_tensors

    before = os.umask(mask)
    try:
        files.write_arrays(tmp_path / "a", {"x": np.zeros(2)})
        save_tensors(tmp_path / "b", {"x": torch.zeros(2)})
    finally:
        os.umask(before)
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in "ab"} == {0o666 & ~mask}


def test_a_table_and_the_metadata_of_arrays_are_read_back(tmp_path: Path) -> None:
    rows = [{"label": "a", "n": 1}, {"label": "b", "n": None}]
    files.write_table(tmp_path / "a.parquet", rows)
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist() == rows
    files.write_arrays(tmp_path / "a.safetensors", {"x": np.arange(3)}, {"natural_threshold": "0"})
    with safe_open(tmp_path / "a.safetensors", framework="numpy") as handle:
        assert handle.metadata() == {"natural_threshold": "0"}


def test_large_arrays_are_mapped_and_can_be_changed_without_changing_the_file(tmp_path):
    whole = {
        "ids": np.arange(300_000, dtype=np.int32), "wide": np.arange(400_000, dtype=np.float64).reshape(2, -1),
        "small": np.arange(3), "none": np.zeros((0, 4), np.float32),
    }  # fmt: skip
    files.write_arrays(tmp_path / "a", whole, {"note": "x"})
    for _ in range(2):
        back = files.read_arrays(tmp_path / "a")
        assert back.keys() == whole.keys()
        for name, array in whole.items():
            assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
            assert np.array_equal(back[name], array)
        assert isinstance(back["ids"].base, np.memmap) and type(back["ids"]) is np.ndarray
        back["ids"][:] = 0


@pytest.mark.parametrize("read", [files.require_file, files.read_json, files.read_arrays])
def test_a_file_that_is_missing_a_folder_or_a_circle_of_links_is_named(
    tmp_path: Path, read: Callable[[Path], Any]
) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    circle = "a link that leads nowhere, or in a circle"
    for name, got in (("gone", "nothing there"), ("", "a folder"), ("a", circle)):
        with pytest.raises(InputError, match=f"{name}: expected a file, got {got}"):
            read(tmp_path / name)


def test_a_truncated_array_file_is_named(tmp_path: Path) -> None:
    target = tmp_path / "a.safetensors"
    files.write_arrays(target, {"x": np.arange(100)})
    target.write_bytes(target.read_bytes()[:-10])
    with pytest.raises(InputError, match=r"a\.safetensors: expected a safetensors file, got an unreadable one"):
        files.read_arrays(target)


# --- seeds ----------------------------------------------------------------------------------------


@given(seed=st.integers(), purpose=st.lists(st.text(), max_size=3))
def test_a_stream_is_the_digest_of_its_names_and_fits_what_torch_takes(seed: int, purpose: list[str]) -> None:
    by_hand = int(hashlib.sha256("/".join([str(seed), *purpose]).encode()).hexdigest()[:16], 16) // 2
    assert 0 <= seeds.stream(seed, *purpose) == by_hand < 2**63


def test_no_character_that_a_terminal_obeys_is_in_an_error_or_a_page(tmp_path):
    spoilt = "".join(map(chr, range(0x110))) + "\u202e"
    said = str(InputError("a", expected="b", got=spoilt, fix="c"))
    files.write_text(tmp_path / "page.md", spoilt)
    for text in (said, (tmp_path / "page.md").read_bytes().decode("utf-8")):
        assert {one for one in text if unicodedata.category(one) in ("Cc", "Cf")} <= {"\t", "\n", "\u00ad"}


def test_what_cannot_be_read_is_told_from_what_cannot_be_written():
    outputs = [Path("results/corpus/small/train.parquet"), Path("results/corpus/small/p.json")]
    for place, verb in (
        ("results/corpus", "to write"),  # made around the outputs
        ("results/corpus/small/.train.parquet.1.partial", "to write"),
        ("raw/notes.csv", "to read it"),
        ("results/corpus/large/train.parquet", "to read it"),
    ):
        told = files.explain(PermissionError(errno.EACCES, "Permission denied", place), outputs)
        assert (told.expected, place) == (verb, place)


def test_what_takes_its_name_is_on_the_disk_before_and_its_folder_after(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(files.os, "fsync", lambda handle: seen.append(Path(f"/proc/self/fd/{handle}").readlink()))
    files.write_text(tmp_path / "one", "text")
    with files.atomic_path(tmp_path / "many") as partial:
        partial.mkdir()
        (partial / "inner").touch()
    names = [path.relative_to(tmp_path).as_posix() for path in seen]
    one, many = f".one.{os.getpid()}.partial", f".many.{os.getpid()}.partial"
    assert names == [one, ".", many, f"{many}/inner", "."]


def test_a_limit_on_the_size_of_a_file_is_told_as_a_full_disk_is(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        for write in (files.write_json, lambda path, values: files.write_arrays(path, {"x": np.array(values)})):
            with pytest.raises(OSError, match="File too large") as caught:
                write(tmp_path / "large", [0] * 9000)
            told = files.explain(caught.value, [tmp_path / "large"])
            assert told is not None
            assert "Raise the limit on the size of a file (ulimit -f); nothing half-written was kept" in str(told)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
