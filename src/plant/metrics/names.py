"""The names of metrics in metrics.json, in the config and in the tables.

    name = base [@k] [@threshold rule] [/group]

- `@micro`, `@sloped`, `@natural`: the threshold rule that predicts the labels (thresholds.py, choice C12). Without a
  suffix the rule is `tuned`. Rules other than `tuned` and `natural` exist over all labels, and for `rare_f1`.
- `/group`: only the labels of one frequency group (groups.py).
- `rare_f1` and `rare_ap` are short for `macro_f1_present/rare` and `map/rare`.

Examples: `macro_f1_present`, `micro_f1@natural`, `ndcg@5`, `rp@5/few`, `macro_f1_all@natural/1-10`, `rare_f1@sloped`.
All are fractions in [0, 1], and higher is better. Only `brier_skill` can be negative.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from plant.ground.errors import InputError, nearest
from plant.ground.settings import Evaluation
from plant.metrics.counts import COUNT_METRICS
from plant.metrics.documents import AT_K, DOCUMENT_METRICS
from plant.metrics.groups import label_groups
from plant.metrics.thresholds import NATURAL, THRESHOLD_RULES, TUNED

CURVES = ("macro_auc", "map")
MICRO_AUC = "micro_auc"
PROPENSITY = "psp"
BRIER_SKILL = "brier_skill"
SHORT = {"rare_f1": ("macro_f1_present", "rare"), "rare_ap": ("map", "rare")}


@dataclass(frozen=True)
class Metric:
    """The parts of a name."""

    name: str
    base: str
    k: int | None = None
    rule: str = TUNED
    group: str | None = None

    @property
    def per_document(self) -> bool:
        """Whether the metric is a mean over documents (F1 over labels, AUC, AP and PSP@k are not)."""
        return self.base in AT_K or self.base in DOCUMENT_METRICS


@lru_cache(maxsize=8)
def metrics(settings: Evaluation) -> dict[str, Metric]:
    """Every metric that exists under these settings, by name."""
    rules = (TUNED, NATURAL, *(name for name in THRESHOLD_RULES if name != TUNED))
    every = [Metric(MICRO_AUC, MICRO_AUC), Metric(BRIER_SKILL, BRIER_SKILL)]
    every += [Metric(f"{PROPENSITY}@{k}", PROPENSITY, k) for k in settings.at]
    for group in (None, *label_groups(np.zeros(0), settings)):
        suffix = "" if group is None else f"/{group}"
        every += [Metric(base + suffix, base, group=group) for base in CURVES]
        every += [Metric(f"{base}@{k}{suffix}", base, k, group=group) for base in AT_K for k in settings.at]
        for base in (*COUNT_METRICS, *DOCUMENT_METRICS):
            for rule in rules if group is None else (TUNED, NATURAL):
                every.append(Metric(f"{base}{_at(rule)}{suffix}", base, rule=rule, group=group))
    for name, (base, group) in SHORT.items():
        for rule in rules if base not in CURVES else (TUNED,):
            every.append(Metric(f"{name}{_at(rule)}", base, rule=rule, group=group))
    return {metric.name: metric for metric in every}


def find(name: str, settings: Evaluation) -> Metric:
    """The metric with this name; InputError suggests the nearest one if there is none.

    >>> find("rare_f1", Evaluation())
    Metric(name='rare_f1', base='macro_f1_present', k=None, rule='tuned', group='rare')
    """
    known = metrics(settings)
    if name not in known:
        raise InputError("metric", expected="the name of a metric", got=repr(name), fix=nearest(name, known))
    return known[name]


def _at(rule: str) -> str:
    return "" if rule == TUNED else f"@{rule}"
