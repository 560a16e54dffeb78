"""The whole config, checked: one error that names every fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, get_args

from pydantic import Field, TypeAdapter, ValidationError

from plant.ground.errors import InputError, nearest
from plant.ground.settings.base import NO_PRETRAINING, Frozen, Name
from plant.ground.settings.corpus import Dataset, Download, Subset
from plant.ground.settings.model import Backbone, Words
from plant.ground.settings.recipes import Evidence, Finetuning, Pretraining, Relevance, Variant
from plant.ground.settings.results import (
    BaselineSettings,
    Compute,
    Evaluation,
    Experiment,
    Hardware,
    Paper,
    Statistics,
    Study,
)
from plant.ground.settings.tuning import Tuned, Tuning, tuning_faults


class Settings(Frozen):
    """The whole config."""

    results: str = "results"
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
    statistics: Statistics = Statistics()
    paper: Paper = Paper()
    compute: Compute = Compute()
    hardware: Hardware = Hardware()
    experiments: dict[Name, Experiment]
    studies: dict[Name, Study] = Field(default_factory=dict)
    tunings: dict[Name, Tuning] = Field(default_factory=dict)
    tuned: dict[str, Tuned] = Field(default_factory=dict)
    """What a tuning chose, by run: `<dataset>/<backbone>/<pretraining>+<finetuning>`."""

    def whole(self, dataset: str) -> str:
        """The dataset that is read from its source: itself, or what a subset is a part of."""
        settings = self.datasets[dataset]
        return settings.of if isinstance(settings, Subset) else dataset

    def downloads_of(self, path: str) -> list[str]:
        """Paths of the declared downloads at, above or below a path."""
        places = [Path(download.path) for download in self.downloads.values()]
        return [str(place) for place in places if place.is_relative_to(path) or Path(path).is_relative_to(place)]

    def absent(self, dataset: str) -> dict[str, str]:
        """Key of the config -> the file or folder that it names, where nothing is there and no download brings it."""
        return {
            f"datasets.{dataset}.{key}": path
            for key, path in self.datasets[dataset].sources.items()
            if not Path(path).exists() and not self.downloads_of(path)
        }

    def is_credentialed(self, dataset: str) -> bool:
        """Of the dataset or of what it is a part of."""
        return self.datasets[dataset].credentialed or self.datasets[self.whole(dataset)].credentialed

    def reads_network(self, variant: str) -> bool:
        """Whether the scores of a variant come from a network, alone or among other channels."""
        evidence = self.evidence_of(variant)
        return evidence is None or "network" in evidence.channels

    def documents_shown(self, dataset: str) -> int:
        """Test documents whose text may be shown: in attention figures, and as reasons."""
        hidden = self.is_credentialed(dataset) and not self.evaluation.show_credentialed
        return 0 if hidden else self.evaluation.attention_documents

    def evidence_of(self, system: str) -> Evidence | None:
        """The Stage 3 recipe of a variant; None for one without, and for a baseline."""
        variant = self.variants.get(system)
        return None if variant is None or variant.evidence is None else self.evidences[variant.evidence]

    @property
    def points(self) -> dict[str, Finetuning]:
        """The Stage 2 recipes of all tunings. No experiment and no table has them."""
        return {
            name: self.finetunings[recipe].model_copy(update=dict(change))
            for tuning in self.tunings.values()
            for recipe in {self.variants[arm].finetuning for arm in tuning.variants}
            for name, change in tuning.points(recipe).items()
        }

    def stage2(self, dataset: str, backbone: str, network: str) -> Finetuning:
        """The recipe that a network is trained by, with what a tuning chose for it.

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
        """The same for a variant of an experiment."""
        return self.stage2(experiment.dataset, experiment.backbone, self.variants[variant].network)

    def is_stand_in(self, dataset: str) -> bool:
        """True for generated text in a published raw form: its numbers say nothing about the corpus it is named for."""
        return getattr(self.datasets[self.whole(dataset)], "generate", None) is not None


def load(config: Mapping[str, Any], *, where: str = "config") -> Settings:
    """Check a config and return it as settings.

    Raises:
        InputError: one error that lists every fault: unknown keys (with the nearest known one), values
            out of range, and names that no section declares.
    """
    try:
        settings = Settings.model_validate(dict(config))
    except ValidationError as error:
        faults = [_describe(fault) for fault in error.errors()]
    else:
        faults = list(_dangling(settings))
        if not faults:
            return settings
    raise InputError(
        where,
        expected="a config that config/README.md describes",
        got=f"{len(faults)} fault(s)",
        fix="Correct:\n  " + "\n  ".join(faults),
    )


def forget_foreign_nulls(config: MutableMapping[str, Any]) -> None:
    """Drop keys that are null and that the entry's source or kind does not have, in place.

    So a config that is laid over another can turn a backbone from the hub into a random one of the same name: what
    belongs to the former (`revision: null`) is taken back.
    """
    for section, union in (("datasets", Dataset), ("backbones", Backbone)):
        models, tag = get_args(get_args(union)[0]), get_args(union)[1].discriminator
        fields = {get_args(model.model_fields[tag].annotation)[0]: model.model_fields for model in models}
        entries = config.get(section)
        for entry in entries.values() if isinstance(entries, Mapping) else ():
            known = fields.get(entry.get(tag)) if isinstance(entry, MutableMapping) else None
            for key in [key for key, value in entry.items() if value is None and key not in known] if known else ():
                del entry[key]


def _describe(fault: Mapping[str, Any]) -> str:
    path = ".".join(str(part) for place, part in enumerate(fault["loc"]) if not _is_tag(fault["loc"], place))
    if fault["type"] == "extra_forbidden":
        return f"{path}: unknown key. {nearest(str(fault['loc'][-1]), _known_keys(fault['loc']))}"
    if fault["type"] == "missing":
        return f"{path}: missing"
    got = fault.get("input")
    return f"{path}: {fault['msg']}" + (f" (got {got!r})" if not isinstance(got, Mapping) else "")


def _is_tag(location: tuple[Any, ...], place: int) -> bool:
    """True for the part of an error's location that names a source or kind, which is no key of the config."""
    return place == 2 and location[0] in ("datasets", "backbones") and len(location) > 3


def _known_keys(location: tuple[Any, ...]) -> list[str]:
    """Field names of the model that holds the last part of an error's location."""
    schema = Settings.model_json_schema()
    node: Any = schema
    for part in location[:-1]:
        node = _child(schema, node, str(part))
    return sorted(_resolve(schema, node).get("properties", {}))


def _child(schema: dict[str, Any], node: dict[str, Any], part: str) -> dict[str, Any]:
    node = _resolve(schema, node)
    if part in node.get("properties", {}):
        return node["properties"][part]
    mapping = node.get("discriminator", {}).get("mapping", {})
    if part in mapping:
        return {"$ref": mapping[part]}
    inner = node.get("additionalProperties", node.get("items", {}))
    return inner if isinstance(inner, dict) else next(iter(node.get("patternProperties", {}).values()), {})


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    if not node.get("properties") and "patternProperties" in node:
        return {"additionalProperties": next(iter(node["patternProperties"].values()))}
    options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
    return _resolve(schema, options[0]) if len(options) == 1 else node


def _dangling(settings: Settings) -> Iterator[str]:
    """Names that are used but not declared, and combinations that cannot work."""

    def check(path: str, name: str, known: Mapping[str, Any], extra: tuple[str, ...] = ()) -> Iterator[str]:
        if name not in known and name not in extra:
            yield f"{path}: unknown name {name!r}. {nearest(name, [*known, *extra])}"

    if not settings.experiments:
        yield "experiments: at least one is needed"
    if settings.evaluation.top < max(settings.evaluation.at):
        yield f"evaluation.top: at least the largest of evaluation.at = {max(settings.evaluation.at)} must be kept"
    if list(settings.evaluation.frequency_groups) != sorted(set(settings.evaluation.frequency_groups)):
        yield "evaluation.frequency_groups: lower ends must rise"
    if NO_PRETRAINING in settings.pretrainings:
        yield f"pretrainings.{NO_PRETRAINING}: this name is reserved for random initialisation"
    for name, recipe in settings.variants.items():
        yield from check(f"variants.{name}.pretraining", recipe.pretraining, settings.pretrainings, (NO_PRETRAINING,))
        yield from check(f"variants.{name}.finetuning", recipe.finetuning, settings.finetunings)
        if recipe.evidence is not None:
            yield from check(f"variants.{name}.evidence", recipe.evidence, settings.evidences)
        yield from _epoch_of(settings, name)
    yield from _unused(settings)
    for name, dataset in settings.datasets.items():
        if isinstance(dataset, Subset):
            whole = {key: value for key, value in settings.datasets.items() if not isinstance(value, Subset)}
            yield from check(f"datasets.{name}.of", dataset.of, whole)
    if settings.paper.main_backbone is not None:
        yield from check("paper.main_backbone", settings.paper.main_backbone, settings.backbones)
    for name, pretraining in settings.pretrainings.items():
        if pretraining.reweight and pretraining.negatives == 0:
            yield f"pretrainings.{name}.reweight: needs negatives, got 0"
        if pretraining.k > settings.relevance.k:
            yield f"pretrainings.{name}.k: {pretraining.k} is more than relevance.k = {settings.relevance.k}"
    for name, experiment in settings.experiments.items():
        path = f"experiments.{name}"
        yield from check(f"{path}.dataset", experiment.dataset, settings.datasets)
        yield from check(f"{path}.backbone", experiment.backbone, settings.backbones)
        for variant in experiment.variants:
            yield from check(f"{path}.variants", variant, settings.variants)
        systems = dict.fromkeys([*experiment.variants, *experiment.baselines])
        if name in ("tables", "figures"):
            yield f"{path}: this name belongs to a folder of results/paper"
        yield from check(f"{path}.reference", experiment.reference, systems)
        if isinstance(settings.backbones.get(experiment.backbone), Words) and experiment.variants:
            yield f"{path}.backbone: {experiment.backbone!r} has no network; variants need one"
        for key in ("variants", "baselines", "seeds"):
            values = getattr(experiment, key)
            if len(set(values)) < len(values):
                yield f"{path}.{key}: each may be named once, got {list(values)}"
        if experiment.variants and not experiment.seeds:
            yield f"{path}.seeds: at least one is needed"
        if not experiment.variants and not experiment.baselines:
            yield f"{path}: no variants and no baselines"
    for name in settings.studies:
        yield from _study(settings, name)
    yield from tuning_faults(settings)


def _unused(settings: Settings) -> Iterator[str]:
    """Datasets that would be left aside in silence."""
    used = {experiment.dataset for experiment in settings.experiments.values()}
    used |= {settings.whole(name) for name in used & set(settings.datasets)}
    for name in settings.datasets:
        if name not in used:
            yield (
                f"datasets.{name}: no experiment uses it. Name it in one (`dataset: {name}`; with `on_request: true` "
                "it is no part of `all`), or leave it out"
            )


def _study(settings: Settings, name: str) -> Iterator[str]:
    """Faults of a study: unknown experiments, systems that its experiments do not have, metrics without resamples."""
    study = settings.studies[name]
    for metric in study.metrics:
        if metric not in settings.statistics.metrics:
            yield f"studies.{name}.metrics: {metric!r} is not among statistics.metrics"
    for place, cell in enumerate(study.cells):
        path = f"studies.{name}.cells.{place}"
        keys = (("experiment", "system"), ("against_experiment", "against"))
        for (where, key), (place_of, system) in zip(keys, cell.sides, strict=True):
            experiment = settings.experiments.get(place_of)
            if experiment is None:
                yield f"{path}.{where}: unknown name {place_of!r}. {nearest(place_of, settings.experiments)}"
                break
            systems = [*experiment.variants, *experiment.baselines]
            if system not in systems:
                yield f"{path}.{key}: {place_of} has no {system!r}. {nearest(system, systems)}"
        if cell.sides[0] == cell.sides[1]:
            yield f"{path}: {cell.system!r} is compared with itself"
        both = [settings.experiments[each] for each, _ in cell.sides if each in settings.experiments]
        if len(both) == len(cell.sides):
            yield from _other_experiment(settings, path, *both)


def _other_experiment(settings: Settings, path: str, ours: Experiment, theirs: Experiment) -> Iterator[str]:
    """Faults of a difference between two experiments."""
    wholes = [settings.whole(each.dataset) for each in (ours, theirs) if each.dataset in settings.datasets]
    if len(set(wholes)) > 1:
        yield f"{path}.against_experiment: its dataset is cut from {wholes[1]!r}, not from {wholes[0]!r}"
    if not set(ours.seeds) <= set(theirs.seeds):
        yield f"{path}.against_experiment: it has the seeds {list(theirs.seeds)}, {list(ours.seeds)} are compared"


def _epoch_of(settings: Settings, variant: str) -> Iterator[str]:
    """Faults of `pretraining_epoch`."""
    recipe = settings.variants[variant]
    epoch, path = recipe.pretraining_epoch, f"variants.{variant}.pretraining_epoch"
    stage1 = settings.pretrainings.get(recipe.pretraining)
    if epoch is None:
        return
    if stage1 is None:
        yield f"{path}: needs a Stage 1 recipe"
    elif not stage1.keep_epochs:
        yield f"{path}: needs pretrainings.{recipe.pretraining}.keep_epochs: true"
    elif stage1.patience is not None:
        yield f"{path}: needs pretrainings.{recipe.pretraining}.patience: null (else that epoch may not be reached)"
    elif epoch > stage1.epochs:
        yield f"{path}: {recipe.pretraining} has {stage1.epochs} epochs, got {epoch}"


def parse_dataset(section: Mapping[str, Any]) -> Dataset:
    """One entry of `datasets`, as a rule hands it to its script."""
    return TypeAdapter(Dataset).validate_python(dict(section))


def parse_backbone(section: Mapping[str, Any]) -> Backbone:
    """One entry of `backbones`, as a rule hands it to its script."""
    return TypeAdapter(Backbone).validate_python(dict(section))
