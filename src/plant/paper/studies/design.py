"""What a study runs: its rows, and the compute that each side of a difference is given."""

from __future__ import annotations

from collections.abc import Iterator

from plant.baselines.registry import baselines
from plant.ground.settings import NO_PRETRAINING, Cell, Settings, Study


def title_of(cell: Cell) -> str:
    """How a row is printed.

    >>> title_of(Cell(experiment="e", system="a", against="b", levels={"passes": 8.0, "sigma": "logits"}))
    'passes 8, sigma logits'
    """
    if cell.title is not None:
        return cell.title
    levels = ", ".join(f"{name} {plain(level)}" for name, level in cell.levels.items())
    return levels or f"{cell.experiment}: {cell.system}"


def plain(level: str | float) -> str:
    """A level as it is printed; whole numbers without a point."""
    return f"{level:g}" if isinstance(level, float) else level


def epochs(settings: Settings, experiment: str, system: str) -> tuple[int, int] | None:
    """Epochs of Stage 1 and Stage 2 at most; None for a system without a network."""
    if system in baselines() or not settings.reads_network(system):
        return None
    variant = settings.variants[system]
    first = 0
    if variant.pretraining != NO_PRETRAINING:
        first = variant.pretraining_epoch or settings.pretrainings[variant.pretraining].epochs
    return first, settings.stage2_of(settings.experiments[experiment], system).epochs


def is_equal(settings: Settings, cell: Cell) -> bool:
    """Whether both sides of a row have as many epochs in all; True where a side has no network."""
    both = [epochs(settings, *side) for side in cell.sides]
    totals = {sum(each) for each in both if each is not None}
    return len(totals) < 2


def design_of(settings: Settings, study: Study) -> Iterator[str]:
    """Markdown: a row a cell with what is compared, and what the rows have in common."""
    runs = {
        (experiment.dataset, experiment.backbone, settings.variants[name].network, seed)
        for cell in study.cells
        for place, name in cell.sides
        for experiment in [settings.experiments[place]]
        if epochs(settings, place, name) is not None
        for seed in experiment.seeds
    }
    yield (
        f"{len(study.cells)} differences from {len(runs)} trained networks. Thresholds, epochs and every other choice "
        "come from the validation split; test is read for these numbers alone."
    )
    unequal = [title_of(cell) for cell in study.cells if not is_equal(settings, cell)]
    yield (
        "Both sides of every row have the same number of epochs in all."
        if not unequal
        else ("**Unequal epochs** in: " + "; ".join(unequal) + ".")
    )
    yield ""
    yield "| Group | Setting | Dataset | Backbone | System | Against | Epochs (Stage 1 + 2) | Seeds |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for cell in study.cells:
        both = [settings.experiments[place] for place, _ in cell.sides]
        dataset, backbone = (
            " / ".join(dict.fromkeys(getattr(each, key) for each in both)) for key in ("dataset", "backbone")
        )
        sides = " / ".join(_epochs(settings, *side) for side in cell.sides)
        seeds = ", ".join(map(str, both[0].seeds))
        yield (
            f"| {cell.group} | {title_of(cell)} | {dataset} | {backbone} | {cell.system} | {cell.against} | {sides} | "
            f"{seeds} |"
        )


def _epochs(settings: Settings, experiment: str, system: str) -> str:
    found = epochs(settings, experiment, system)
    return "no network" if found is None else f"{found[0]} + {found[1]}"
