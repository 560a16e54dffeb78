"""Stage 1's loss (Eq. 2), forward and gradient: ours beside autograd and beside allRank's lambdaLoss.

allRank is neither needed nor copied: its loss is imported from the installed package (envs/bench.txt), or from a
checkout of github.com/allegro/allRank that the environment variable ALLRANK names; otherwise its rows say that it is
absent. Its scheme `lambdaRank_scheme` is Eq. 2 with exponential gain, so that losses and gradients must be the same.

A pair is (j, h) with r_j > r_h: what Eq. 2 sums over. Others compute the t x t square, twice as much and more.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Measured, Row, fresh, row
from torch import Tensor

NAME = "Stage 1 loss"
K, SIGMA, GAIN = 2000, 1.0, "exponential"  # no shorter than any list: allRank drops pairs with one end beyond k
LENGTHS = {64: 256, 256: 32, 1000: 4, 2000: 1}  # tokens a list: lists a call
DOCUMENT = (64, 8_929)  # all labels of one MIMIC-III document, with as many tokens as usually meet T_l
CALLS = {"ours": 40, "one by one in float64": 2}  # in one measurement; 1 for the others
WAYS = ("ours", "one by one in float64", "dense autograd", "chunked", "allRank lambdaLoss")


def rows(quick: bool) -> list[Row]:
    """All ways at four lengths, and for a whole document; seconds are those of one list."""
    found = [line for m, lists in LENGTHS.items() if not quick or m < 1000 for line in _length(NAME, m, lists, quick)]
    return found if quick else [*found, *_length(f"{NAME}, {DOCUMENT[1]:,} lists at once", *DOCUMENT, quick)]


def _length(kernel: str, m: int, lists: int, quick: bool) -> Iterator[Row]:
    pairs, expected = _pairs(m, lists), None
    for way in WAYS:
        if way.startswith("allRank") and _allrank_folder() is None:
            yield row(kernel, way, m, ratio_to="ours", note="not measured: allRank is not installed (envs/bench.txt)")
            continue
        calls = 1 if quick or lists > 1000 else CALLS.get(way, 1)
        repeats = 1 if quick else 2 if lists > 1000 else 5
        measured = fresh(loss_and_gradient, repeats=repeats, m=m, lists=lists, way=way, calls=calls)
        expected = expected or measured.value
        if not np.allclose(measured.value, expected, rtol=1e-3):
            raise AssertionError(f"m = {m}: {way} gives {measured.value}, ours {expected}")
        yield _line(kernel, way, m, lists * calls, pairs / lists, measured)


def _line(kernel: str, way: str, m: int, lists: int, pairs: float, measured: Measured) -> Row:
    seconds = measured.cpu_seconds / lists
    speed = pairs / seconds / 1e6
    more: dict[str, Any] = {
        "cpu_seconds": seconds, "wall_seconds": measured.wall_seconds / lists,
        "million_pairs_a_cpu_second": speed, "extra_mb": measured.extra_mb, "shown": f"{speed:,.0f} M pairs/CPU-s",
    }  # fmt: skip
    note = f"{speed:,.0f} million pairs a CPU-second, {measured.extra_mb:,.1f} MB beside inputs"
    return row(kernel, way, m, measured, ratio_to="" if way == "ours" else "ours", note=note, **more)


def loss_and_gradient(m: int, lists: int, way: str, calls: int) -> Callable[[], list[float]]:
    """The sums of losses, and of the gradients' absolute values, of some lists of m tokens."""
    torch.set_num_threads(1)
    scores, relevance = _lists(m, lists)
    compute = _way(way)
    compute(*(array[:1, :2].clone() for array in (scores, relevance)))  # loads or makes machine code

    def work() -> list[float]:
        for _ in range(calls):
            losses, gradient = compute(scores, relevance)
        return [float(losses.sum()), float(gradient.abs().sum())]

    return work


def _lists(m: int, lists: int) -> tuple[Tensor, Tensor]:
    """Normal scores, and relevances of which some are equal, as a token's repeats are."""
    random = np.random.default_rng(m)
    relevance = random.random((lists, m)).astype(np.float32)
    relevance[:, ::5] = np.round(relevance[:, ::5], 1)
    return torch.from_numpy(random.normal(0, 2, (lists, m)).astype(np.float32)), torch.from_numpy(relevance)


def _pairs(m: int, lists: int) -> int:
    _, relevance = _lists(m, lists)
    return sum(int((one[:, None] > one[None, :]).sum()) for one in relevance)


def _way(name: str) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """(scores, relevance) -> losses, gradient of their sum."""
    from plant.pretraining.ranking_loss import _chunked, pairwise_loss, pairwise_loss_dense

    def through_autograd(loss: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
        def compute(scores: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
            scores = scores.clone().requires_grad_()
            losses = loss(scores, relevance)
            (gradient,) = torch.autograd.grad(losses.sum(), scores)
            return losses.detach(), gradient

        return compute

    ours = through_autograd(lambda s, r: pairwise_loss(s, r, k=K, sigma=SIGMA, gain=GAIN))
    if name == "allRank lambdaLoss":
        return through_autograd(_allrank())
    return {
        "ours": ours,
        "one by one in float64": lambda s, r: ours(s.double(), r.double()),
        "dense autograd": through_autograd(lambda s, r: pairwise_loss_dense(s, r, k=K, sigma=SIGMA, gain=GAIN)),
        "chunked": lambda s, r: _chunked(s, r, K, SIGMA, GAIN),
    }[name]


def _allrank_folder() -> Path | None:
    """Where its package lies."""
    if "ALLRANK" in os.environ:
        base = Path(os.environ["ALLRANK"]) / "allrank"
    else:
        spec = importlib.util.find_spec("allrank")
        base = Path(next(iter(spec.submodule_search_locations or ()), "")) if spec else Path("allrank")
    return base if (base / "models" / "losses" / "lambdaLoss.py").is_file() else None


def _allrank() -> Callable[[Tensor, Tensor], Tensor]:
    """allRank's lambdaLoss; its other modules, which ask for more packages, are not imported."""
    base = _allrank_folder()
    if base is None:
        raise ModuleNotFoundError("allRank is neither installed nor where ALLRANK says")
    for name in ("allrank", "allrank.models", "allrank.models.losses", "allrank.data", "allrank.data.dataset_loading"):
        module = types.ModuleType(name)
        module.__path__ = [str(base.parent.joinpath(*name.split(".")))]
        sys.modules[name] = module
    vars(sys.modules["allrank.data.dataset_loading"])["PADDED_Y_VALUE"] = -1
    vars(sys.modules["allrank.models.losses"])["DEFAULT_EPS"] = 1e-10
    from allrank.models.losses.lambdaLoss import lambdaLoss

    return lambda s, r: lambdaLoss(s, r, weighing_scheme="lambdaRank_scheme", k=K, sigma=SIGMA, reduction_log="binary")
