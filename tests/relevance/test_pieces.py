"""Files that grow piece by piece against files of whole arrays."""

import numpy as np
import pytest

from plant.ground.files import write_arrays
from plant.relevance.pieces import growing_arrays


def test_arrays_that_grew_in_pieces_are_the_file_of_the_whole_arrays(tmp_path):
    random = np.random.default_rng(0)
    whole = {
        "indptr": np.arange(7), "token_id": random.integers(0, 99, 13).astype(np.int32),
        "relevance": random.random(13).astype(np.float32), "none": np.zeros(0, np.float32),
    }  # fmt: skip
    with growing_arrays(tmp_path / "a", {name: array.dtype.type for name, array in whole.items()}, {"m": "x"}) as add:
        for name, array in whole.items():
            for piece in np.array_split(array, 3):
                add(name, piece)
        assert not (tmp_path / "a").exists()
    write_arrays(tmp_path / "b", whole, {"m": "x"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_pieces_of_a_writer_that_failed_leave_nothing_behind(tmp_path):
    with pytest.raises(ZeroDivisionError), growing_arrays(tmp_path / "a", {"x": np.int64}, {}) as add:
        add("x", np.arange(3))
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []
