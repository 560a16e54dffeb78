"""The configs that ship, as Snakemake reads them."""

from pathlib import Path
from typing import Any

import yaml
from snakemake.utils import update_config

from plant.ground.settings import forget_foreign_nulls

CONFIGS = Path(__file__).parents[1] / "config"


def shipped(*names: str) -> dict[str, Any]:
    """Files of config/, each laid over those before it."""
    config: dict[str, Any] = {}
    for name in names:
        update_config(config, yaml.safe_load((CONFIGS / name).read_text(encoding="utf-8")))
    forget_foreign_nulls(config)
    return config
