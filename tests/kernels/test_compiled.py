"""Compiled loops where machine code can and cannot be kept on disk."""

from pathlib import Path

import numpy as np
import pytest
from numba.core import caching

from plant.kernels.compiled import njit


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


def test_where_nothing_can_be_written_the_loop_is_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])  # a read-only installation without a home
    compiled = njit()(total)
    assert compiled(np.arange(4.0)) == 6.0
    assert compiled.stats.cache_path is None


@pytest.mark.parametrize(("mode", "kept"), [(0o700, True), (0o755, True), (0o777, False), (0o1777, False)])
def test_machine_code_is_kept_in_no_folder_that_everybody_may_write_to(monkeypatch, tmp_path, mode, kept):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    place = Path(njit()(total).stats.cache_path)
    assert tmp_path in place.parents
    place.chmod(mode)
    compiled = njit()(total)
    assert compiled(np.arange(4.0)) == 6.0
    assert bool(compiled.stats.cache_path) == kept
    assert bool(list(place.glob("*.nbi"))) == kept


def test_machine_code_is_kept_in_no_folder_of_another_user(monkeypatch):
    monkeypatch.setattr("os.getuid", lambda: 12345)
    assert njit()(total).stats.cache_path is None
