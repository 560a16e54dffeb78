"""Sections `tunings` and `tuned`: which rates of Stage 2 are tried on validation, and which were chosen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from plant.ground.errors import nearest
from plant.ground.settings.base import Count, Frozen, Name, Positive, Rate

if TYPE_CHECKING:
    from plant.ground.settings.load import Settings
    from plant.ground.settings.recipes import Variant
    from plant.ground.settings.results import Experiment

Rates = Annotated[tuple[Rate, ...], Field(min_length=1)]


class Tuned(Frozen):
    """What takes the place of the same keys of a Stage 2 recipe, for the run that the entry's name says."""

    head_learning_rate: Rate
    """Of label embeddings, attention and head."""
    learning_rate: Rate
    """Of the backbone or its adapter."""
    epochs: Positive | None = None
    """At most; the cosine schedule has this length. None: those of the recipe."""
    patience: Positive | None = None
    """Epochs without a better validation value before stopping. None: that of the recipe."""


class Tuning(Frozen):
    """A grid of Stage 2 rates, the same for every arm. The validation split chooses; test is not read (choice C08)."""

    experiment: Name
    """Whose dataset and backbone are used."""
    variants: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Arms: variants of the experiment. Each gets the whole grid. Stage 1 of an arm is trained once."""
    head_learning_rate: Rates
    """Tried for label embeddings, attention and head."""
    learning_rate: Rates
    """Tried for the backbone or its adapter. One value is enough where the backbone is frozen."""
    epochs: Positive
    """At most. Give enough, so that patience ends every run."""
    patience: Positive
    """Epochs without a better validation value before stopping."""
    seeds: Annotated[tuple[Count, ...], Field(min_length=1)] = (0,)
    """One training run each; a point counts with its mean over them."""
    also: tuple[Name, ...] = ()
    """Experiments that take the chosen rates, but not the epochs. A variant takes the rates of the arm with its two
    recipes. If there is none, it takes those of the first arm that has Stage 1, or that has none, as the variant."""

    def points(self, recipe: str) -> dict[str, Tuned]:
        """Name of each point's recipe -> what it changes in `recipe`.

        >>> grid = Tuning(experiment="demo", variants=("plant",), head_learning_rate=(2e-5, 0.002),
        ...               learning_rate=(2e-5,), epochs=40, patience=5)
        >>> list(grid.points("focal"))
        ['focal.head2e-05.lr2e-05.epochs40.patience5', 'focal.head0.002.lr2e-05.epochs40.patience5']
        """
        return {
            f"{recipe}.head{head}.lr{rate}.epochs{self.epochs}.patience{self.patience}": Tuned(
                head_learning_rate=head, learning_rate=rate, epochs=self.epochs, patience=self.patience
            )
            for head, rate in product(self.head_learning_rate, self.learning_rate)
        }


def tuning_points(settings: Settings, name: str) -> dict[str, dict[str, Tuned]]:
    """Arm of a tuning -> network of each point (the name of its folder) -> what the point changes."""
    tuning, found = settings.tunings[name], {}
    for arm in tuning.variants:
        variant = settings.variants[arm]
        points = tuning.points(variant.finetuning).items()
        found[arm] = {f"{variant.initial}+{recipe}": point for recipe, point in points}
    return found


def runs_of_arms(settings: Settings, name: str) -> dict[str, str]:
    """Run that a tuning is made for, as `tuned` names it -> its arm."""
    tuning = settings.tunings[name]
    experiment = settings.experiments[tuning.experiment]
    return {run_name(experiment, settings.variants[arm]): arm for arm in tuning.variants}


def further_runs(settings: Settings, name: str) -> dict[str, str]:
    """Run of another experiment that takes the chosen rates -> the arm that has them (see `Tuning.also`)."""
    tuning, found = settings.tunings[name], {}
    arms = {arm: settings.variants[arm] for arm in tuning.variants}
    for experiment in (settings.experiments[other] for other in tuning.also):
        for variant in (settings.variants[each] for each in experiment.variants):
            same = [arm for arm, its in arms.items() if its.network == variant.network]
            alike = [arm for arm, its in arms.items() if its.is_planted == variant.is_planted]
            for arm in (same + alike)[:1]:
                found[run_name(experiment, variant)] = arm
    return found


def run_name(experiment: Experiment, variant: Variant) -> str:
    """A run of Stage 2 as its folder and `tuned` name it."""
    return f"{experiment.dataset}/{experiment.backbone}/{variant.network}"


def tuning_faults(settings: Settings) -> Iterator[str]:
    """Faults of both sections: names that nothing has, and values that stand twice."""
    for name in settings.tunings:
        yield from _tuning(settings, name)
    runs = [
        run_name(experiment, settings.variants[variant])
        for experiment in settings.experiments.values()
        for variant in experiment.variants
        if variant in settings.variants
    ]
    for key in settings.tuned:
        if key not in runs:
            yield f"tuned: no experiment has a run {key!r}. {nearest(key, runs)}"


def _tuning(settings: Settings, name: str) -> Iterator[str]:
    """Faults of a tuning: unknown experiments, arms that its experiment does not have, values that stand twice."""
    tuning, path = settings.tunings[name], f"tunings.{name}"
    for key, used in (("experiment", [tuning.experiment]), ("also", tuning.also)):
        for each in used:
            if each not in settings.experiments:
                yield f"{path}.{key}: unknown name {each!r}. {nearest(each, settings.experiments)}"
    for key in ("variants", "head_learning_rate", "learning_rate", "seeds"):
        values = getattr(tuning, key)
        if len(set(values)) < len(values):
            yield f"{path}.{key}: each may be named once, got {list(values)}"
    experiment = settings.experiments.get(tuning.experiment)
    if experiment is None:
        return
    for arm in tuning.variants:
        if arm not in experiment.variants:
            yield f"{path}.variants: {tuning.experiment} has no {arm!r}. {nearest(arm, experiment.variants)}"
        elif arm in settings.variants:
            taken = settings.finetunings.keys() & tuning.points(settings.variants[arm].finetuning).keys()
            yield from (f"finetunings.{recipe}: this name belongs to a point of {path}" for recipe in sorted(taken))
