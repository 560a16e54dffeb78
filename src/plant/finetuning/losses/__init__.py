"""Losses of Stage 2: a module each. `plant.ground.losses` says how to add one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plant.ground.losses import Losses
from plant.ground.settings import Finetuning

if TYPE_CHECKING:
    from torch import Tensor

STAGE_2_LOSSES = Losses(__name__, section="finetunings", key="loss", given=("n_labels", "selected"))


def find_loss(settings: Finetuning) -> Callable[..., Tensor]:
    """The loss of a recipe, see `Losses.find`."""
    return STAGE_2_LOSSES.find(settings)
