"""Folders of modules that the config names.

A raw format, an encoder, a label attention or a loss is one module with one function. To add one is to add its module.
Names and keyword arguments are read from the source, so checking a config imports neither the modules nor PyTorch. A
module whose name starts with `_` is not counted: others can share it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any


@dataclass(frozen=True)
class ModuleFolder:
    """The modules of one folder.

    Attributes:
        package: of the folder.
        function: of each module; `{name}` stands for the module's name.
        given: keyword arguments that the caller gives. All others are options of the config.
    """

    package: str
    function: str
    given: tuple[str, ...] = ()
    _read: dict[str, dict[str, bool]] = field(default_factory=dict, init=False, repr=False)  # each source, read once

    def names(self) -> tuple[str, ...]:
        """The modules by name, sorted."""
        spec = find_spec(self.package)
        if spec is None:
            raise ModuleNotFoundError(self.package)
        modules = iter_modules(spec.submodule_search_locations)
        return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))

    def module(self, name: str) -> str:
        """The import path of a module."""
        return f"{self.package}.{name}"

    def load(self, name: str) -> Callable[..., Any]:
        """The function of a module; imports the module."""
        return getattr(import_module(self.module(name)), self.function.format(name=name))

    def takes(self, name: str, argument: str) -> bool:
        """Whether the function of a module has a keyword argument."""
        return argument in self._keywords(name)

    def options(self, name: str) -> dict[str, bool]:
        """The options of a module, and whether a value must be given."""
        return {each: needed for each, needed in self._keywords(name).items() if each not in self.given}

    def _keywords(self, name: str) -> dict[str, bool]:
        """The keyword arguments of the function, and whether they lack a default."""
        if name not in self._read:
            spec = find_spec(self.module(name))
            if spec is None or spec.origin is None:
                raise ModuleNotFoundError(self.module(name))
            tree, wanted = ast.parse(Path(spec.origin).read_text(encoding="utf-8")), self.function.format(name=name)
            (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == wanted)
            pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            self._read[name] = {argument.arg: default is None for argument, default in pairs}
        return self._read[name]
