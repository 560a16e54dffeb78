"""Systems without a network. Each module of this folder makes the scores of one, and ends with its entry.

To add a baseline, add a module to this folder. The rule, the script, the checks of the config, the plan, the tables and
Stage 3 read its entry only. `SCORERS` of `plant.serving.export` lists the few that a model folder can hold.

Every option of a baseline (C, the number of words, the weight, the slack) is chosen on validation by nDCG@5. This
metric needs no threshold. Unlike a mean over labels it compares the scores of different labels, as a global threshold
does. `choices.json` records the tried values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Literal

from plant.ground.errors import InputError, nearest
from plant.ground.settings import Evidence, Settings

if TYPE_CHECKING:
    from plant.baselines.target import Features, Outcome, Sources
    from plant.corpus.reader import Labels

Need = Literal["mentions", "category_ends"]
NEEDS: dict[Need, str] = {
    "mentions": "mentions (CodiEsp has some in Spanish, a table where it names `mentions`)",
    "category_ends": "categories of labels (name `category_ends`)",
}
"""What only some datasets have, and how to give it."""
OWN_CHANNELS = ("network", "prior")
"""Channels of Stage 3 that are no baselines: the network's logit, and a label's log-odds in the training split."""


@dataclass(frozen=True)
class Baseline:
    """One system without a network.

    Attributes:
        name: of the rule, of the folder of scores, and in `experiments.<name>.baselines`.
        title: its name in tables and figures.
        function: makes the scores.
        inputs: any of `documents` (texts and labels), `labels`, `tokens` (of the backbone `words`), `relevance` (their
            mutual information), `mentions`, and names of other baselines, whose scores are read.
        outputs: files beside the scores and choices.json.
        needs: what the dataset must have.
        counts: it counts words itself, so it is given the config's section `relevance`.
        threads: of the job.
        channel: its name in `evidences.<name>.channels`; None: it is no channel of Stage 3.
        features: for a channel with words. It reads the folder of scores and gives the features of a document;
            weights.parquet gives their weights.
    """

    name: str
    title: str
    function: Callable[[Sources], Outcome]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ("weights.parquet",)
    needs: Need | None = None
    counts: bool = False
    threads: int = 1
    channel: str | None = None
    features: Callable[[Path, Labels], Features] | None = None


_ENTRIES: dict[str, Baseline] = {}


def register(*entries: Baseline) -> None:
    """Add entries. A module of this folder calls this at its end."""
    _ENTRIES.update({entry.name: entry for entry in entries})


@cache
def baselines() -> Mapping[str, Baseline]:
    """All baselines by name. The first call imports their modules, which import scikit-learn and numba when used."""
    for module in iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")
    return _ENTRIES


def channels() -> dict[str, Baseline]:
    """Channel of Stage 3 -> its baseline."""
    return {entry.channel: entry for entry in baselines().values() if entry.channel is not None}


def read_by(recipe: Evidence) -> list[Baseline]:
    """The baselines whose scores a Stage 3 recipe adds up, in the order of its channels."""
    known = channels()
    return [known[channel] for channel in recipe.channels if channel in known]


def check(settings: Settings) -> None:
    """Refuse systems and channels that are not registered, or that cannot be made.

    Raises:
        InputError: one error that lists all faults.
    """
    known = {*OWN_CHANNELS, *channels()}
    faults = [
        f"evidences.{name}.channels: unknown name {channel!r}. {nearest(channel, known)}"
        for name, recipe in settings.evidences.items()
        for channel in recipe.channels
        if channel not in known
    ]
    faults += [f"variants.{name}: this name belongs to a baseline" for name in settings.variants if name in baselines()]
    faults += [fault for name in settings.experiments for fault in _of_experiment(settings, name)]
    if faults:
        raise InputError(
            "config", expected="baselines and channels that can be made", got=f"{len(faults)} fault(s)",
            fix="Correct:\n  " + "\n  ".join(faults),
        )  # fmt: skip


def _of_experiment(settings: Settings, name: str) -> Iterator[str]:
    experiment, path = settings.experiments[name], f"experiments.{name}"
    dataset = settings.datasets[experiment.dataset]
    readers: dict[str, list[Baseline]] = {}
    for system in experiment.baselines:
        entry = baselines().get(system)
        if entry is None:
            yield f"{path}.baselines: unknown name {system!r}. {nearest(system, baselines())}"
            continue
        readers[system] = [entry]
        parts = [each for each in entry.inputs if each in baselines()]
        if not set(parts) <= set(experiment.baselines):
            yield f"{path}.baselines: {system!r} needs {' and '.join(map(repr, parts))} beside it"
    for variant in experiment.variants:
        recipe = settings.evidence_of(variant)
        readers[variant] = [] if recipe is None else read_by(recipe)
    if "words" not in settings.backbones and (systems := [system for system, read in readers.items() if read]):
        yield f"{path}: {' and '.join(systems)} need a backbone named 'words' of kind: words"
    for need, what in NEEDS.items():
        lacking = [system for system, read in readers.items() if any(entry.needs == need for entry in read)]
        has = dataset.has_mentions if need == "mentions" else dataset.category_ends is not None
        if lacking and not has:
            yield f"{path}: {' and '.join(lacking)} cannot be made, the dataset {experiment.dataset} has no {what}"
