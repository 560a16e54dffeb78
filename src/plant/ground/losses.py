"""Folders of losses: one for Stage 1 and one for Stage 2. Recipes name a loss by its module.

To add a loss is to add a module `<name>.py` with a function `<name>_loss` to a folder:

    plant/pretraining/losses/    def <name>_loss(scores, relevance, *, <parameters>) -> Tensor
    plant/finetuning/losses/     def <name>_loss(logits, truth, *, n_labels, selected=None, <parameters>) -> Tensor

`pairwise.pairwise_loss` and `focal.focal_loss` say what goes in and out. A parameter takes its value from the key of
its name in the recipe, else from the recipe's `loss_options`, else it keeps its default. A module whose name starts
with `_` is no loss: losses can share it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from plant.ground.errors import InputError, nearest


@dataclass(frozen=True)
class Losses:
    """The losses of one folder.

    Attributes:
        package: of the folder.
        section: of the config, whose recipes name a loss.
        key: of a recipe that names the loss.
        given: keyword arguments that the caller gives; they are no parameters of a recipe.
    """

    package: str
    section: str
    key: str
    given: tuple[str, ...]
    _read: dict[str, dict[str, bool]] = field(
        default_factory=dict, init=False, repr=False
    )  # keyword arguments, read once

    def names(self) -> tuple[str, ...]:
        """The losses, without importing them (and PyTorch)."""
        path = import_module(self.package).__path__
        return tuple(module.name for module in iter_modules(path) if not module.name.startswith("_"))

    def module(self, name: str) -> str:
        """The module of a loss."""
        return f"{self.package}.{name}"

    def parameters(self, name: str) -> dict[str, bool]:
        """The parameters of a loss, and whether a value must be given."""
        return {each: needed for each, needed in self._keywords(name).items() if each not in self.given}

    def _keywords(self, name: str) -> dict[str, bool]:
        """The keyword arguments of a loss, and whether they lack a default. Its source is read, nothing imported."""
        if name not in self._read:
            spec = find_spec(self.module(name))
            if spec is None or spec.origin is None:
                raise ModuleNotFoundError(self.module(name))
            tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
            (function,) = (
                node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == f"{name}_loss"
            )
            pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            self._read[name] = {argument.arg: default is None for argument, default in pairs}
        return self._read[name]

    def find(self, recipe: Any, **given: Any) -> Callable[..., Any]:
        """The loss of a recipe, with its parameters, and with those of the given arguments that it takes.

        Raises:
            InputError: the loss lacks a parameter, or `loss_options` names one that it does not have.
        """
        self._check_options(self.section, recipe)
        name = getattr(recipe, self.key)
        loss = getattr(import_module(self.module(name)), f"{name}_loss")
        taken = {each: value for each, value in given.items() if each in self._keywords(name)}
        return partial(loss, **self._values(recipe), **taken)

    def check(self, recipes: Mapping[str, Any]) -> None:
        """Every loss that a recipe names must exist and have the named options; the config's types do not know them.

        Args:
            recipes: name -> recipe of the section.
        """
        known = self.names()
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
        own = {each for each in self.parameters(getattr(recipe, self.key)) if each in type(recipe).model_fields}
        return {each: getattr(recipe, each) for each in sorted(own)} | recipe.loss_options

    def _check_options(self, where: str, recipe: Any) -> None:
        """Refuse options that the loss does not have, and a parameter without a value."""
        name, options, values = getattr(recipe, self.key), recipe.loss_options, self._values(recipe)
        parameters = self.parameters(name)
        lacking = [each for each, needed in parameters.items() if needed and each not in values]
        if lacking or not set(options) <= set(parameters):
            raise InputError(
                f"{where}.loss_options of the loss {name}", expected=f"some of {', '.join(parameters)}",
                got=", ".join(options) or "none",
                fix=f"Name {', '.join(lacking)} too." if lacking else "Remove the others.",
            )  # fmt: skip
