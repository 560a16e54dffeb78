"""Folders of losses: one for Stage 1 and one for Stage 2. Recipes name a loss by its module.

To add a loss is to add a module `<name>.py` with a function `<name>_loss` to a folder:

    plant/pretraining/losses/    def <name>_loss(scores, relevance, *, <parameters>) -> Tensor
    plant/finetuning/losses/     def <name>_loss(logits, truth, *, n_labels, selected=None, <parameters>) -> Tensor

`pairwise.pairwise_loss` and `focal.focal_loss` say what goes in and out. A parameter takes its value from the key of
its name in the recipe, else from the recipe's `loss_options`, else it keeps its default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from plant.ground.errors import InputError, nearest
from plant.ground.folders import ModuleFolder


class Losses:
    """The losses of one folder.

    Args:
        package: of the folder.
        section: of the config, whose recipes name a loss.
        key: of a recipe that names the loss.
        given: keyword arguments that the caller gives; they are no parameters of a recipe.
    """

    def __init__(self, package: str, *, section: str, key: str, given: tuple[str, ...]) -> None:
        self.folder = ModuleFolder(package, "{name}_loss", given)
        self.section, self.key = section, key

    def find(self, recipe: Any, **given: Any) -> Callable[..., Any]:
        """The loss of a recipe, with its parameters, and with those of the given arguments that it takes.

        Raises:
            InputError: the loss lacks a parameter, or `loss_options` names one that it does not have.
        """
        self._check_options(self.section, recipe)
        name = getattr(recipe, self.key)
        taken = {each: value for each, value in given.items() if self.folder.takes(name, each)}
        return partial(self.folder.load(name), **self._values(recipe), **taken)

    def check(self, recipes: Mapping[str, Any]) -> None:
        """Every loss that a recipe names must exist and have the named options; the config's types do not know them.

        Args:
            recipes: name -> recipe of the section.
        """
        known = self.folder.names()
        for name, recipe in recipes.items():
            asked = getattr(recipe, self.key)
            if asked not in known:
                raise InputError(
                    f"{self.section}.{name}.{self.key}", expected=f"one of {', '.join(known)}", got=repr(asked),
                    fix=nearest(asked, known),
                )  # fmt: skip
            self._check_options(f"{self.section}.{name}", recipe)

    def _values(self, recipe: Any) -> dict[str, float]:
        """The values that a recipe gives to the parameters of its loss."""
        own = {each for each in self.folder.options(getattr(recipe, self.key)) if each in type(recipe).model_fields}
        return {each: getattr(recipe, each) for each in sorted(own)} | recipe.loss_options

    def _check_options(self, where: str, recipe: Any) -> None:
        """Refuse options that the loss lacks or that are keys of the recipe, and a parameter without a value."""
        name, options, values = getattr(recipe, self.key), recipe.loss_options, self._values(recipe)
        parameters = self.folder.options(name)
        lacking = [each for each, needed in parameters.items() if needed and each not in values]
        if lacking or not set(options) <= set(parameters):
            raise InputError(
                f"{where}.loss_options of the loss {name}", expected=f"some of {', '.join(parameters)}",
                got=", ".join(options) or "none",
                fix=f"Name {', '.join(lacking)} too." if lacking else "Remove the others.",
            )  # fmt: skip
        if twice := [each for each in options if each in type(recipe).model_fields]:
            raise InputError(
                f"{where}.loss_options of the loss {name}", expected="parameters that have no key of their own",
                got=", ".join(twice), fix="Set them as keys of the recipe, where their values are checked.",
            )  # fmt: skip
