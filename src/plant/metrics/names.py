"""The names of metrics, as metrics.json, the config and the tables write them.

    name = base [@k] [@cut] [/group]

- no suffix: all labels, at the threshold that was tuned on validation;
- `@natural`: at the system's own threshold (probability .5, score 0);
- `@micro`: at the threshold that was tuned on validation for micro-F1, which most published micro-F1 is taken at;
- `@sloped`: at a threshold that goes linearly with log(1 + training documents of the label), slope and value tuned on
  validation (thresholds.py, choice C12); these two exist over all labels, and for `rare_f1`;
- `/group`: labels of one frequency group only (groups.py);
- `rare_f1` and `rare_ap` are short for `macro_f1_present/rare` and `map/rare`;
- `brier_skill` judges probabilities and needs no threshold (documents.py).

Examples: `macro_f1_present`, `micro_f1@natural`, `ndcg@5`, `rp@5/few`, `macro_f1_all@natural/1-10`, `rare_f1@sloped`.
All are fractions in [0, 1], higher is better; `brier_skill` alone can be negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from plant.ground.errors import InputError, nearest
from plant.ground.settings import Evaluation
from plant.metrics.counts import COUNT_METRICS
from plant.metrics.documents import AT_K, DOCUMENT_METRICS
from plant.metrics.groups import label_groups

CURVES = ("macro_auc", "map")
MICRO_AUC = "micro_auc"
PROPENSITY = "psp"
BRIER_SKILL = "brier_skill"
Cut = Literal["tuned", "natural", "micro", "sloped"]
CUTS: tuple[Cut, ...] = ("tuned", "natural", "micro", "sloped")
SHORT = {"rare_f1": ("macro_f1_present", "rare"), "rare_ap": ("map", "rare")}


@dataclass(frozen=True)
class Metric:
    """A name, taken apart."""

    name: str
    base: str
    k: int | None = None
    cut: Cut = "tuned"
    group: str | None = None

    @property
    def per_document(self) -> bool:
        """A mean of values that single documents have (unlike F1 over labels, AUC, AP and PSP@k)."""
        return self.base in AT_K or self.base in DOCUMENT_METRICS


@lru_cache(maxsize=8)
def metrics(settings: Evaluation) -> dict[str, Metric]:
    """Every metric that exists under these settings, by name."""
    groups = (None, *label_groups(np.zeros(0), settings))
    found = [Metric(MICRO_AUC, MICRO_AUC), Metric(BRIER_SKILL, BRIER_SKILL)]
    found += [Metric(f"{PROPENSITY}@{k}", PROPENSITY, k) for k in settings.at]
    for group in groups:
        suffix = "" if group is None else f"/{group}"
        found += [Metric(base + suffix, base, group=group) for base in CURVES]
        found += [Metric(f"{base}@{k}{suffix}", base, k, group=group) for base in AT_K for k in settings.at]
        for base in (*COUNT_METRICS, *DOCUMENT_METRICS):
            for cut in CUTS if group is None else CUTS[:2]:
                found.append(Metric(f"{base}{_at(cut)}{suffix}", base, cut=cut, group=group))
    for name, (base, group) in SHORT.items():
        for cut in CUTS if base not in CURVES else CUTS[:1]:
            found.append(Metric(f"{name}{_at(cut)}", base, cut=cut, group=group))
    return {metric.name: metric for metric in found}


def find(name: str, settings: Evaluation) -> Metric:
    """The metric of a name.

    Raises:
        InputError: no such metric (says the nearest).

    >>> find("rare_f1", Evaluation())
    Metric(name='rare_f1', base='macro_f1_present', k=None, cut='tuned', group='rare')
    """
    known = metrics(settings)
    if name not in known:
        raise InputError("metric", expected="the name of a metric", got=repr(name), fix=nearest(name, known))
    return known[name]


def _at(cut: Cut) -> str:
    return "" if cut == "tuned" else f"@{cut}"
