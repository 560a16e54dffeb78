"""How much each factor of a designed experiment changes an effect: least squares over the cells of the design."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

Level = str | float


@dataclass(frozen=True)
class FactorEffect:
    """The change of an effect from `baseline`, the first level of a factor, to `level`, the other factors being equal.

    `error` is its standard error, for independent cells. `degrees` of freedom are infinite where the error comes from
    the cells' own errors. `low`, `high` and the two-sided `p` are by Student's t.
    """

    factor: str
    level: Level
    baseline: Level
    change: float
    error: float
    degrees: float
    low: float
    high: float
    p: float


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """P-values corrected for their number: rejecting those below alpha makes any error with probability alpha at most.

    The correction is Holm's (1979). NaN is a test that was not made: it stays NaN and does not count.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    corrected = np.full(values.shape, np.nan)
    made = np.flatnonzero(~np.isnan(values))
    order = made[np.argsort(values[made], kind="stable")]
    steps = values[order] * (len(order) - np.arange(len(order)))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def factor_effects(
    levels: Sequence[Mapping[str, Level]], effects: np.ndarray, errors: np.ndarray, confidence: float
) -> list[FactorEffect]:
    """Least squares of the cells' effects on their levels, main effects only.

    Every cell has the same weight, so in a balanced design a change is the difference of two means. A change has two
    errors: one from the cells' own errors, one from the residuals, which also hold what main effects cannot explain
    (lack of fit). The larger one is used, the second with the residuals' degrees of freedom. A factor has no row if it
    has one level, or if this design cannot separate it from the others.

    Args:
        levels: factor -> level, for each of n cells. A factor that a cell does not name has its first level there.
        effects, errors: (n,) effects of the cells and their standard errors.
    """
    names = list(dict.fromkeys(name for cell in levels for name in cell))
    known = {name: list(dict.fromkeys(cell[name] for cell in levels if name in cell)) for name in names}
    columns = [(name, level) for name in names for level in known[name][1:]]
    design = np.ones((len(levels), 1 + len(columns)))
    for place, (name, level) in enumerate(columns, start=1):
        design[:, place] = [cell.get(name, known[name][0]) == level for cell in levels]
    solve = np.linalg.pinv(design)
    resolved = np.abs(solve @ design - np.eye(design.shape[1])).max(axis=1) < 1e-8
    estimates = solve @ effects
    own = np.sqrt(np.square(solve) @ np.square(errors))
    freedom = len(levels) - int(np.linalg.matrix_rank(design))
    residual = np.sum(np.square(effects - design @ estimates)) / freedom if freedom else 0.0
    misfit = np.sqrt(residual * np.square(solve).sum(axis=1))
    changes = []
    for place, (name, level) in enumerate(columns, start=1):
        degrees = float(freedom) if misfit[place] > own[place] else math.inf
        change, error = float(estimates[place]), float(max(own[place], misfit[place]))
        if resolved[place] and error > 0:
            reach = error * float(stats.t.ppf((1 + confidence) / 2, degrees))
            p = 2 * float(stats.t.sf(abs(change) / error, degrees))
            changes.append(FactorEffect(
                name, level, known[name][0], change, error, degrees, change - reach, change + reach, p
            ))  # fmt: skip
    return changes
