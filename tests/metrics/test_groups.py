"""Label groups and the label space."""

import numpy as np
from hypothesis import given
from hypothesis.extra.numpy import arrays

from plant.ground.settings import Evaluation
from plant.metrics.groups import label_groups


@given(arrays(np.uint16, 12))
def test_frequency_groups_and_lmtc_groups_each_partition_the_labels(n_train: np.ndarray) -> None:
    groups = label_groups(n_train, Evaluation())
    lmtc = [groups[name] for name in ("frequent", "few", "zero")]
    frequency = [groups[name] for name in ("0", "1-10", "11-50", "51-100", "101-500", "501+")]
    assert (np.sum(lmtc, axis=0) == 1).all()
    assert (np.sum(frequency, axis=0) == 1).all()


def test_the_borders_of_the_groups_are_those_of_the_field() -> None:
    n_train = np.array([0, 1, 9, 10, 11, 50, 51, 500, 501])
    members = {name: n_train[mask].tolist() for name, mask in label_groups(n_train, Evaluation()).items()}
    assert members["rare"] == [1, 9]
    assert members["few"] == [1, 9, 10, 11, 50]
    assert members["frequent"] == [51, 500, 501]
    assert (members["1-10"], members["11-50"], members["501+"]) == ([1, 9, 10], [11, 50], [501])
