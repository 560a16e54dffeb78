"""Reads the YAML files that people wrote: transcriptions, and the look of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from plant.ground.errors import InputError
from plant.ground.settings.base import Frozen

Model = TypeVar("Model", bound=Frozen)


def read_model(source: Path, model: type[Model]) -> Model:
    """A YAML file that a person wrote.

    Raises:
        InputError: the form is wrong.
    """
    try:
        return model.model_validate(read_yaml(source))
    except (yaml.YAMLError, ValidationError) as error:
        raise InputError(
            source.name, expected="the form that its head explains", got=str(error), fix="Correct it."
        ) from None


def read_yaml(source: Path) -> Any:
    """The content of a YAML file. The compiled parser reads it, if there is one."""
    return yaml.load(source.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
