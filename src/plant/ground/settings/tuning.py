"""Sections `tunings` and `tuned`: the learning rates of Stage 2 that are tried on validation, and the chosen ones."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from plant.ground.settings.base import Frozen, LearningRate, Name, Positive, Seed, SomeOnce

if TYPE_CHECKING:
    from plant.ground.settings.load import Settings
    from plant.ground.settings.recipes import Variant
    from plant.ground.settings.results import Experiment


class Tuned(Frozen):
    """Values that replace those of the Stage 2 recipe in one run. The entry's name is the run."""

    head_learning_rate: LearningRate
    """Learning rate of label embeddings, attention and head."""
    learning_rate: LearningRate
    """Learning rate of the backbone or its adapter."""
    epochs: Positive | None = None
    """Largest number of epochs, and length of the cosine schedule. None: as in the recipe."""
    patience: Positive | None = None
    """Training stops after this number of epochs without a better validation value. None: as in the recipe."""


class Tuning(Frozen):
    """A grid of learning rates of Stage 2, the same for every arm. The validation split chooses; the test split is not
    read (choice C08)."""

    experiment: Name
    """Name of the experiment. Its dataset and backbone are used."""
    variants: SomeOnce[Name]
    """Arms: variants of the experiment. Each arm gets the whole grid. Stage 1 of an arm is trained once."""
    head_learning_rate: SomeOnce[LearningRate]
    """Learning rates that are tried for label embeddings, attention and head."""
    learning_rate: SomeOnce[LearningRate]
    """Learning rates that are tried for the backbone or its adapter. One value is enough if the backbone is frozen."""
    epochs: Positive
    """Largest number of epochs. It should be large enough that patience ends every run."""
    patience: Positive
    """Training stops after this number of epochs without a better validation value."""
    seeds: SomeOnce[Seed] = (0,)
    """Seeds of the training runs. A point of the grid is judged by its mean over the seeds."""
    also: tuple[Name, ...] = ()
    """Other experiments that use the chosen learning rates, but not the epochs. A variant takes the rates of the arm
    with the same two recipes; if there is none, those of the first arm that also has (or also lacks) a Stage 1."""

    def points(self, recipe: str) -> dict[str, Tuned]:
        """Recipe name of each grid point -> the values that it replaces in `recipe`.

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
    """Arm of a tuning -> network of each grid point (its folder name) -> the values that the point replaces."""
    tuning = settings.tunings[name]
    arms = {arm: settings.variants[arm] for arm in tuning.variants}
    return {
        arm: {f"{variant.initial}+{recipe}": point for recipe, point in tuning.points(variant.finetuning).items()}
        for arm, variant in arms.items()
    }


def runs_of_arms(settings: Settings, name: str) -> dict[str, str]:
    """Run of a tuning, as `tuned` names it -> its arm."""
    tuning = settings.tunings[name]
    experiment = settings.experiments[tuning.experiment]
    return {run_name(experiment, settings.variants[arm]): arm for arm in tuning.variants}


def further_runs(settings: Settings, name: str) -> dict[str, str]:
    """Run of another experiment that uses the chosen rates -> the arm they come from (see `Tuning.also`)."""
    tuning, chosen = settings.tunings[name], {}
    arms = {arm: settings.variants[arm] for arm in tuning.variants}
    for experiment in (settings.experiments[other] for other in tuning.also):
        for variant in (settings.variants[each] for each in experiment.variants):
            same = [arm for arm, its in arms.items() if its.network == variant.network]
            alike = [arm for arm, its in arms.items() if its.is_planted == variant.is_planted]
            for arm in (same + alike)[:1]:
                chosen[run_name(experiment, variant)] = arm
    return chosen


def run_name(experiment: Experiment, variant: Variant) -> str:
    """Name of a Stage 2 run, in its folder and in `tuned`."""
    return f"{experiment.dataset}/{experiment.backbone}/{variant.network}"
