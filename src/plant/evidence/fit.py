"""Logistic regression with a few bounded scalars on very many pairs: Newton's method with exact sums.

scipy's L-BFGS-B finds the same scalars to 4e-7, but it needs 2 to 5 times as many passes over the pairs, and with a
large label set the passes are the cost of Stage 3 (docs/reference/libraries.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from plant.evidence.design import Design
from plant.ground.errors import InputError

SUBSAMPLE = 2**20
"""With more pairs than this, the fit starts from the fit of every eighth document."""
ITERATIONS = 100
SMALL = 1e-10
"""The fit ends when a Newton step would gain less than this share of the objective, which is below the rounding of the
sums."""


class Sums(NamedTuple):
    """Objective, gradient and Hessian at some scalars."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray


def standardisation(design: Design) -> np.ndarray:
    """(F + 1, K + 1): from the scalars of K standardised features and the constant to those of the F raw ones.

    Mean and deviation are over all known pairs of the split, true or not. A constant feature is left out.
    """
    count, total, squares = 0, 0.0, 0.0
    for block in design.blocks():
        features = block.rows[:, :-1]
        count += len(features)
        total = total + features.sum(axis=0)
        squares = squares + np.einsum("ij,ij->j", features, features)
    mean = np.asarray(total) / max(1, count) * np.ones(len(design.side.lower) - 1)
    variance = np.asarray(squares) / max(1, count) - mean**2
    kept = np.flatnonzero(variance > 1e-12 * np.maximum(mean**2, 1e-300))
    deviation = np.sqrt(variance[kept])
    matrix = np.zeros((len(mean) + 1, len(kept) + 1))
    matrix[kept, np.arange(len(kept))] = 1 / deviation
    matrix[-1, :-1] = -mean[kept] / deviation
    matrix[-1, -1] = 1.0
    return matrix


def fit(design: Design, documents: np.ndarray, *, matrix: np.ndarray, ridge: float, where: str) -> np.ndarray:
    """The scalars that minimise the sum of log-losses over the pairs of some documents, plus ridge / 2 sum (w sd)^2.

    The weights of all channels but the prior are at least 0. A feature that is constant on the split has weight 0.

    Args:
        documents: ascending.
        matrix: `standardisation` of the design.
        ridge: at least 0; the constant is not penalised.
        where: what is fitted, for errors.

    Returns:
        (F + 1,) weights of the raw features, then the constant.

    Raises:
        InputError: the pairs hold no true or no false label, or the weights grow without end.
    """
    lower = design.side.lower[matrix.any(axis=1)]
    scalars = np.zeros(len(lower))
    size = design.pairs.scores[0].size / max(1, design.pairs.shape[0]) * len(documents)
    for part in (documents[::8], documents) if size > SUBSAMPLE else (documents,):
        truths = [block.truth for block in design.blocks(part)]
        true, pairs = sum(int(truth.sum()) for truth in truths), sum(map(len, truths))
        if not 0 < true < pairs:
            if part is not documents:
                continue
            raise InputError(
                where, expected="pairs of documents and labels, true and false ones", got=f"{true} of {pairs} true",
                fix="Give more validation documents, or fewer folds.",
            )  # fmt: skip
        if not scalars.any():
            scalars[-1] = np.log(true / (pairs - true))
        scalars = minimise(partial(_sums, design, part, matrix=matrix, ridge=ridge), scalars, lower, where=where)
    return matrix @ scalars


def minimise(sums: Callable[[np.ndarray], Sums], start: np.ndarray, lower: np.ndarray, *, where: str) -> np.ndarray:
    """The minimum of a convex function with lower bounds, by Newton's method with bounded steps from `start`.

    Raises:
        InputError: it does not end within ITERATIONS steps. `where` says what is fitted.
    """
    point, here = start, sums(start)
    for _ in range(ITERATIONS):
        step = bounded_step(here.gradient, here.hessian, lower - point)
        gain = -float(here.gradient @ step)
        if gain <= SMALL * max(1.0, abs(here.value)):
            return np.maximum(point + step, lower)
        for size in 0.5 ** np.arange(60):
            trial = np.maximum(point + size * step, lower)
            there = sums(trial)
            if there.value <= here.value - 1e-4 * size * gain:
                break
        else:
            return point  # no shorter step is better: the rounding of the sums is reached
        point, here = trial, there
    raise InputError(
        where, expected=f"weights that settle within {ITERATIONS} Newton steps", got="weights that go on growing",
        fix="Raise evidences.<name>.ridge: the channels tell the validation labels apart without error.",
    )  # fmt: skip


def bounded_step(gradient: np.ndarray, hessian: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """The step d that minimises g.d + d.H.d / 2 with d >= `lower` (which is at most 0)."""
    from scipy.optimize import lsq_linear

    tiny = 1e-12 * np.trace(hessian) / len(hessian)
    root = np.linalg.cholesky(hessian + tiny * np.eye(len(hessian)))
    target = -np.linalg.solve(root, gradient)
    free = np.linalg.solve(root.T, target)
    if (free >= lower).all():
        return free
    bounds = (np.minimum(lower, 0.0), np.full(len(lower), np.inf))
    return lsq_linear(root.T, target, bounds=bounds, method="bvls", tol=1e-15).x


def _sums(design: Design, documents: np.ndarray, scalars: np.ndarray, *, matrix: np.ndarray, ridge: float) -> Sums:
    """Sums over raw features, converted to standardised ones."""
    raw = matrix @ scalars
    loss, gradient, hessian = 0.0, np.zeros(len(raw)), np.zeros((len(raw), len(raw)))
    for block in design.blocks(documents):
        z = block.rows @ raw
        tail = np.exp(-np.abs(z))
        loss += float(np.log1p(tail).sum() + np.maximum(z, 0).sum() - z[block.truth].sum())
        small = tail / (1 + tail)  # the smaller of p and 1 - p
        error = np.where(z > 0, 1 - small, small) - block.truth
        gradient += block.rows.T @ error
        hessian += (block.rows * (small * (1 - small))[:, None]).T @ block.rows
    penalty = np.append(np.full(len(scalars) - 1, ridge), 0.0)
    return Sums(
        loss + float(penalty @ scalars**2) / 2,
        matrix.T @ gradient + penalty * scalars,
        matrix.T @ hessian @ matrix + np.diag(penalty),
    )
