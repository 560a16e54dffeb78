"""Folds for cross-fitting."""

from functools import partial

import numpy as np
import pytest

from plant.corpus.folds import deal_folds
from plant.ground.errors import InputError

deal = partial(deal_folds, purpose="test", key="folds")


def test_folds_keep_groups_whole_and_are_of_like_size_in_any_order_of_documents():
    groups = np.array([f"patient {number}" for number in np.random.default_rng(0).integers(0, 40, size=200)])
    folds = deal(groups, 5, 0)
    for name in np.unique(groups):
        assert len(set(folds[groups == name])) == 1
    assert np.ptp(np.bincount(folds)) <= np.unique(groups, return_counts=True)[1].max()
    order = np.random.default_rng(1).permutation(200)
    np.testing.assert_array_equal(deal(groups[order], 5, 0), folds[order])
    assert (deal(groups, 5, 1) != folds).any()
    with pytest.raises(InputError, match="at most 2, the groups of documents, got 3"):
        deal(np.array(["a", "a", "b"]), 3, 0)
