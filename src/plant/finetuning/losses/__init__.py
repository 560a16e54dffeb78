"""Losses of Stage 2: a module each. Recipes name a loss by its module.

To add a loss is to add a module `<name>.py` with a function `<name>_loss`:

    def <name>_loss(logits, truth, *, n_labels, selected=None, <parameters>) -> Tensor

Its first arguments and its result are those of `focal.focal_loss`. A parameter takes its value from the key of its name
in the recipe, else from the recipe's `loss_options`, else it keeps its default. A module whose name starts with `_` is
no loss: losses can share it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from plant.ground.errors import InputError, nearest
from plant.ground.settings import Finetuning, Settings

if TYPE_CHECKING:
    from torch import Tensor

GIVEN = ("n_labels", "selected")  # keyword arguments that are no parameters of the loss


def loss_names() -> tuple[str, ...]:
    """The losses, without importing them (and PyTorch)."""
    return tuple(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def loss_module(name: str) -> str:
    """The module of a loss."""
    return f"{__name__}.{name}"


def parameters_of(name: str) -> dict[str, bool]:
    """The parameters of a loss, and whether a value must be given. Read from its source, so nothing is imported."""
    spec = find_spec(loss_module(name))
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(loss_module(name))
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == f"{name}_loss")
    pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return {argument.arg: default is None for argument, default in pairs if argument.arg not in GIVEN}


def find_loss(settings: Finetuning) -> Callable[..., Tensor]:
    """The loss of a recipe, with its parameters.

    Raises:
        InputError: the loss lacks a parameter, or `loss_options` names one that it does not have.
    """
    _check_options("finetunings", settings)
    loss = getattr(import_module(loss_module(settings.loss)), f"{settings.loss}_loss")
    return partial(loss, **_values(settings))


def check_losses(settings: Settings) -> None:
    """Every loss that a recipe names must exist and have the named options; the config's types do not know them."""
    known = loss_names()
    for name, recipe in settings.finetunings.items():
        if recipe.loss not in known:
            raise InputError(
                f"finetunings.{name}.loss", expected=f"one of {', '.join(known)}", got=repr(recipe.loss),
                fix=nearest(recipe.loss, known),
            )  # fmt: skip
        _check_options(f"finetunings.{name}", recipe)


def _values(settings: Finetuning) -> dict[str, float]:
    """The values that a recipe gives to the parameters of its loss."""
    own = {name for name in parameters_of(settings.loss) if name in type(settings).model_fields}
    return {name: getattr(settings, name) for name in sorted(own)} | settings.loss_options


def _check_options(where: str, settings: Finetuning) -> None:
    """Refuse options that the loss does not have, and a parameter without a value."""
    parameters, options, given = parameters_of(settings.loss), settings.loss_options, _values(settings)
    lacking = [name for name, required in parameters.items() if required and name not in given]
    if lacking or not set(options) <= set(parameters):
        raise InputError(
            f"{where}.loss_options of the loss {settings.loss}", expected=f"some of {', '.join(parameters)}",
            got=", ".join(options) or "none",
            fix=f"Name {', '.join(lacking)} too." if lacking else "Remove the others.",
        )  # fmt: skip
