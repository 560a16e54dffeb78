"""Losses of Stage 1: a module each. `plant.ground.losses` says how to add one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plant.ground.losses import Losses
from plant.ground.settings import Pretraining

if TYPE_CHECKING:
    from torch import Tensor

STAGE_1_LOSSES = Losses(__name__, section="pretrainings", key="objective", given=("k",))


def find_loss(settings: Pretraining) -> Callable[..., Tensor]:
    """The loss of each list: scores s (..., t) and relevance r (..., t) -> (...). Its k is that of nDCG@k (choice C07).

    Raises:
        InputError: as `Losses.find`.
    """
    return STAGE_1_LOSSES.find(settings, k=settings.ndcg_k or settings.k)
