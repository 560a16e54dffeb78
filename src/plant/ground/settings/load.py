"""The whole config, checked: one error that lists all faults."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, ValidationInfo, field_validator, model_validator

from plant.ground.errors import InputError, nearest
from plant.ground.settings.base import NAME, FilePath, Frozen, Name, refuse
from plant.ground.settings.corpus import Dataset, Download, Subset
from plant.ground.settings.faults import combination_faults, unknown_names
from plant.ground.settings.model import Backbone
from plant.ground.settings.recipes import Evidence, Finetuning, Pretraining, Relevance, Variant
from plant.ground.settings.results import (
    AttentionStudy,
    BaselineSettings,
    Compute,
    Evaluation,
    Experiment,
    Hardware,
    Paper,
    Statistics,
    Study,
)
from plant.ground.settings.tuning import Tuned, Tuning

PLAINER = {
    NAME: "a name has letters from A to Z, digits and . _ - only, and starts with a letter or a digit",
    "tuple_type": "a list is needed, such as [0] or [a, b]",
}
"""What some faults say in place of pydantic's words, by the pattern or by the type of the fault."""
WHOLE = "whole config"


class Settings(Frozen):
    """The whole config."""

    results: FilePath = "results"
    """Folder of all outputs."""
    downloads: dict[Name, Download] = Field(default_factory=dict)
    datasets: dict[Name, Dataset]
    backbones: dict[Name, Backbone]
    relevance: Relevance = Relevance()
    pretrainings: dict[Name, Pretraining] = Field(default_factory=dict)
    finetunings: dict[Name, Finetuning]
    evidences: dict[Name, Evidence] = Field(default_factory=dict)
    variants: dict[Name, Variant]
    baselines: BaselineSettings = BaselineSettings()
    evaluation: Evaluation = Evaluation()
    attention_study: AttentionStudy = AttentionStudy()
    statistics: Statistics = Statistics()
    paper: Paper = Paper()
    compute: Compute = Compute()
    hardware: Hardware = Hardware()
    experiments: dict[Name, Experiment]
    studies: dict[Name, Study] = Field(default_factory=dict)
    tunings: dict[Name, Tuning] = Field(default_factory=dict)
    tuned: dict[str, Tuned] = Field(default_factory=dict)
    """The values that a tuning chose, by run: `<dataset>/<backbone>/<pretraining>+<finetuning>`."""

    @field_validator("results")
    @classmethod
    def _one_spelling(cls, text: str) -> str:
        """The folder as every path spells it: Snakemake knows a job by the paths of its outputs."""
        if text.startswith("~"):
            raise ValueError(f"`~` would be a folder of this name, got {text!r}; write the whole path")
        return str(Path(text))

    @model_validator(mode="after")
    def _names_exist(self, info: ValidationInfo) -> Settings:
        """Check the sections against one another. A job gets a part of the config, and that is not checked again."""
        if info.context == WHOLE:
            refuse(list(unknown_names(self)) or combination_faults(self))
        return self

    def whole(self, dataset: str) -> str:
        """The dataset whose raw files are read: the dataset itself, or the one that a subset is a part of."""
        settings = self.datasets[dataset]
        return settings.of if isinstance(settings, Subset) else dataset

    def downloads_of(self, path: str) -> list[str]:
        """Paths of the downloads at, above or below a path."""
        places = [Path(download.path) for download in self.downloads.values()]
        return [str(place) for place in places if place.is_relative_to(path) or Path(path).is_relative_to(place)]

    def absent(self, dataset: str) -> dict[str, str]:
        """Key of the config -> the file or folder that it names, if it does not exist and no download makes it."""
        return {
            f"datasets.{dataset}.{key}": path
            for key, path in self.datasets[dataset].sources.items()
            if not Path(path).exists() and not self.downloads_of(path)
        }

    def is_credentialed(self, dataset: str) -> bool:
        """Whether the dataset, or the one that it is a part of, is credentialed."""
        return self.datasets[dataset].credentialed or self.datasets[self.whole(dataset)].credentialed

    def reads_network(self, variant: str) -> bool:
        """Whether the scores of a variant come from a network, alone or among other channels."""
        evidence = self.evidence_of(variant)
        return evidence is None or "network" in evidence.channels

    def documents_shown(self, dataset: str) -> int:
        """Number of test documents whose text may be shown, in attention figures and as reasons."""
        hidden = self.is_credentialed(dataset) and not self.evaluation.show_credentialed
        return 0 if hidden else self.evaluation.attention_documents

    def evidence_of(self, system: str) -> Evidence | None:
        """The Stage 3 recipe of a variant. None: a variant without Stage 3, or a baseline."""
        variant = self.variants.get(system)
        return None if variant is None or variant.evidence is None else self.evidences[variant.evidence]

    @property
    def points(self) -> dict[str, Finetuning]:
        """The Stage 2 recipes of all tunings. They are in no experiment and no table."""
        return {
            name: self.finetunings[recipe].model_copy(update=dict(change))
            for tuning in self.tunings.values()
            for recipe in {self.variants[arm].finetuning for arm in tuning.variants}
            for name, change in tuning.points(recipe).items()
        }

    def stage2(self, dataset: str, backbone: str, network: str) -> Finetuning:
        """The Stage 2 recipe of a network, with the values that a tuning chose for it.

        Args:
            dataset: first part of the folder of the run.
            backbone: second part.
            network: third part, `<pretraining>+<finetuning>`.
        """
        name = network.rpartition("+")[2]
        recipe = self.finetunings[name] if name in self.finetunings else self.points[name]
        chosen = self.tuned.get(f"{dataset}/{backbone}/{network}")
        return recipe if chosen is None else recipe.model_copy(update=chosen.model_dump(exclude_none=True))

    def stage2_of(self, experiment: Experiment, variant: str) -> Finetuning:
        """The Stage 2 recipe of a variant of an experiment."""
        return self.stage2(experiment.dataset, experiment.backbone, self.variants[variant].network)

    def is_stand_in(self, dataset: str) -> bool:
        """Whether the text is synthetic, in a published raw format. Its results say nothing about the real corpus."""
        return getattr(self.datasets[self.whole(dataset)], "generate", None) is not None


def load(config: Mapping[str, Any], *, where: str = "config") -> Settings:
    """Check a config and return it as settings.

    Raises:
        InputError: one error that lists every fault: unknown keys (with the nearest known one), values out of range,
            and unknown names. Names are checked only if all values are valid, and combinations of sections only if all
            names exist.
    """
    try:
        return Settings.model_validate(dict(config), context=WHOLE)
    except ValidationError as error:
        faults = [line for fault in error.errors() for line in _describe(fault)]
    raise InputError(
        where, expected="a config as docs/reference/config.md describes it", got=f"{len(faults)} fault(s)",
        fix="Correct:\n  " + "\n  ".join(faults),
    )  # fmt: skip


def forget_foreign_nulls(config: MutableMapping[str, Any]) -> None:
    """Delete keys that are null and that the entry's source or kind does not have, in place.

    A config laid over another can then replace a backbone by one of another kind with the same name: it sets the keys
    of the old kind to null (`revision: null`).
    """
    for section, union in (("datasets", Dataset), ("backbones", Backbone)):
        models, tag = get_args(get_args(union)[0]), get_args(union)[1].discriminator
        fields = {get_args(model.model_fields[tag].annotation)[0]: model.model_fields for model in models}
        entries = config.get(section)
        for entry in entries.values() if isinstance(entries, Mapping) else ():
            known = fields.get(entry.get(tag)) if isinstance(entry, MutableMapping) else None
            for key in [key for key, value in entry.items() if value is None and key not in known] if known else ():
                del entry[key]


def _describe(fault: Mapping[str, Any]) -> Iterator[str]:
    """One line for each fault in an error of pydantic, with the key that has it."""
    location = fault["loc"]
    tagged = location and location[0] in ("datasets", "backbones")  # the third part is the value of `source` or `kind`
    keys = [str(part) for place, part in enumerate(location) if part != "[key]" and not (tagged and place == 2)]
    path = ".".join(keys) + ": " if keys else ""
    if fault["type"] == "extra_forbidden":
        yield f"{path}unknown key. {nearest(keys[-1], _keys_beside(location))}"
    elif fault["type"] == "missing":
        yield f"{path}missing"
    elif fault["type"] == "value_error":  # raised by a validator of ours, with a line for each fault
        for line in str(fault["ctx"]["error"]).splitlines():
            names_a_key = keys and re.match(r"\w+: ", line)
            yield f"{path.removesuffix(': ')}.{line}" if names_a_key else f"{path}{line}"
    else:
        said = PLAINER.get(fault.get("ctx", {}).get("pattern", fault["type"]), fault["msg"])
        yield f"{path}{said}" + ("" if isinstance(fault["input"], Mapping) else f" (got {fault['input']!r})")


def _keys_beside(location: tuple[Any, ...]) -> list[str]:
    """Keys of the model that holds the last part of an error's location."""
    node: Any = Settings
    for part in location[:-1]:
        if isinstance(node, type) and issubclass(node, BaseModel):
            node = node.model_fields[part].annotation
        elif get_origin(node) is dict:
            node = get_args(node)[1]
        elif get_origin(node) is tuple:
            node = get_args(node)[0]
        else:  # the models of a section, and the source or kind of one of them
            models, tag = get_args(get_args(node)[0]), get_args(node)[1].discriminator
            node = next(model for model in models if part in get_args(model.model_fields[tag].annotation))
        optional = [kind for kind in get_args(node) if kind is not type(None)]
        node = optional[0] if type(None) in get_args(node) else node
    return sorted(node.model_fields)


def parse_dataset(section: Mapping[str, Any]) -> Dataset:
    """One entry of `datasets`, as a rule hands it to its script."""
    return TypeAdapter(Dataset).validate_python(dict(section))


def parse_backbone(section: Mapping[str, Any]) -> Backbone:
    """One entry of `backbones`, as a rule hands it to its script."""
    return TypeAdapter(Backbone).validate_python(dict(section))
