"""Losses of Stage 2: a module each. Recipes name a loss by its module.

To add a loss is to add a module `<name>.py` with a function `<name>_loss`:

    def <name>_loss(logits, truth, *, n_labels, selected=None, <parameters>) -> Tensor

Its first arguments and its result are those of `focal.focal_loss`. A parameter takes its value from the key of its name
in the recipe, else from the recipe's `loss_options`, else it keeps its default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from plant.ground.errors import InputError, nearest
from plant.ground.settings import Finetuning, Settings

if TYPE_CHECKING:
    from torch import Tensor

GIVEN = ("n_labels", "selected")  # keyword arguments that are no parameters of the loss


def loss_names() -> tuple[str, ...]:
    """The losses, without importing them (and PyTorch)."""
    return tuple(module.name for module in iter_modules(__path__))


def loss_module(name: str) -> str:
    """The module of a loss."""
    return f"{__name__}.{name}"


def find_loss(settings: Finetuning) -> Callable[..., Tensor]:
    """The loss of a recipe, with its parameters.

    Raises:
        InputError: the loss lacks a parameter, or `loss_options` names one that it does not have.
    """
    loss, options = getattr(import_module(loss_module(settings.loss)), f"{settings.loss}_loss"), settings.loss_options
    parameters = {
        name: parameter.default
        for name, parameter in inspect.signature(loss).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in GIVEN
    }
    values = {name: getattr(settings, name) for name in parameters if name in type(settings).model_fields} | options
    lacking = [
        name for name, default in parameters.items() if name not in values and default is inspect.Parameter.empty
    ]
    if lacking or not set(options) <= set(parameters):
        raise InputError(
            f"finetunings: loss_options of the loss {settings.loss}", expected=f"some of {', '.join(parameters)}",
            got=", ".join(options) or "none",
            fix=f"Name {', '.join(lacking)} too." if lacking else "Remove the others.",
        )  # fmt: skip
    return partial(loss, **values)


def check_losses(settings: Settings) -> None:
    """Every loss that a recipe names must exist; the config's types do not know them."""
    known = loss_names()
    for name, recipe in settings.finetunings.items():
        if recipe.loss not in known:
            raise InputError(
                f"finetunings.{name}.loss", expected=f"one of {', '.join(known)}", got=repr(recipe.loss),
                fix=nearest(recipe.loss, known),
            )  # fmt: skip
