"""Labels of a dataset, and their groups by n_train, the number of training documents with the label.

There are three families of groups:
- frequency groups: `0`, `1-10`, `11-50`, `51-100`, `101-500`, `501+` (from `evaluation.frequency_groups`);
- LMTC (Chalkidis et al. 2019): `frequent` (> 50), `few` (1 to 50), `zero` (0);
- `rare`: at least 1 and fewer than `evaluation.rare_below`.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from plant.ground import files
from plant.ground.settings import Evaluation

FREQUENT_ABOVE = 50


@dataclass(frozen=True)
class LabelSpace:
    """The labels of a dataset, in the order of labels.parquet."""

    names: tuple[str, ...]
    n_train: np.ndarray
    """(L,)."""
    documents: int
    """Number of training documents."""
    settings: Evaluation

    @cached_property
    def groups(self) -> dict[str, np.ndarray]:
        """Group name -> (L,) boolean."""
        return label_groups(self.n_train, self.settings)

    @cached_property
    def inverse_propensity(self) -> np.ndarray:
        """(L,), at least 1: 1/p_l = 1 + C (N_l + B)^-A, C = (ln N - 1)(B + 1)^A (Jain et al. 2016, section 4)."""
        a, b = self.settings.propensity
        scale = (np.log(max(self.documents, np.e)) - 1) * (b + 1) ** a  # N < e would give propensities above 1
        return 1 + scale * (self.n_train + b) ** -a


def read_label_space(labels_parquet: Path, settings: Evaluation) -> LabelSpace:
    """Read labels.parquet, and the number of training documents from labels.safetensors beside it."""
    path = files.require_file(labels_parquet)
    table = pq.read_table(path, columns=["label", "n_train"])
    documents = int(files.read_arrays(path.with_suffix(".safetensors"))["split_sizes"][0])
    n_train = table["n_train"].to_numpy().astype(np.int64)
    return LabelSpace(tuple(table["label"].to_pylist()), n_train, documents, settings)


def label_groups(n_train: np.ndarray, settings: Evaluation) -> dict[str, np.ndarray]:
    """Group -> (L,) boolean. The frequency groups partition the labels, and so do the LMTC groups.

    >>> sorted(name for name, member in label_groups(np.array([0, 7, 600]), Evaluation()).items() if member[1])
    ['1-10', 'few', 'rare']
    """
    lows = [0, *sorted(settings.frequency_groups)]
    highs = [*(low - 1 for low in lows[1:]), None]
    groups = {}
    for low, high in zip(lows, highs, strict=True):
        name = f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}"
        groups[name] = (n_train >= low) & (n_train <= (np.inf if high is None else high))
    groups["frequent"] = n_train > FREQUENT_ABOVE
    groups["few"] = (n_train >= 1) & (n_train <= FREQUENT_ABOVE)
    groups["zero"] = n_train == 0
    groups["rare"] = (n_train >= 1) & (n_train < settings.rare_below)
    return groups
