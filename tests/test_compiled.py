"""Compiled loops where machine code can and cannot be kept on disk."""

import numpy as np
import pytest
from numba.core import caching

from plant.compiled import njit


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


def test_machine_code_is_kept_where_there_is_a_place():
    assert njit()(total).stats.cache_path


def test_other_errors_are_not_hidden(monkeypatch):
    def broken(*_args, **_options):
        raise RuntimeError("something else")

    monkeypatch.setattr("numba.njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        njit()(total)
