"""What a study runs: its rows, and the epochs that each side of a difference is given."""

from __future__ import annotations

from plant.baselines.registry import baselines
from plant.ground.settings import Cell, Settings, Study
from plant.paper.render import template
from plant.paper.systems import stage_epochs


def title_of(cell: Cell) -> str:
    """How a row is printed.

    >>> title_of(Cell(experiment="e", system="a", against="b", levels={"passes": 8.0, "sigma": "logits"}))
    'passes 8, sigma logits'
    """
    levels = ", ".join(f"{name} {plain(level)}" for name, level in cell.levels.items())
    return cell.title if cell.title is not None else levels or f"{cell.experiment}: {cell.system}"


def plain(level: str | float) -> str:
    """A level as it is printed. A whole number has no decimals."""
    return f"{level:g}" if isinstance(level, float) else level


def epochs(settings: Settings, experiment: str, system: str) -> tuple[int, int] | None:
    """Epochs of Stage 1 and of Stage 2 at most; None for a system without a network."""
    if system in baselines() or not settings.reads_network(system):
        return None
    return stage_epochs(settings, settings.experiments[experiment], system)


def patience(settings: Settings, cell: Cell) -> int | None:
    """Epochs without a better validation value after which Stage 2 of both sides stops; None if a side runs them all,
    or if the two differ."""
    recipes = [
        settings.stage2_of(settings.experiments[name], system)
        for name, system in cell.sides
        if epochs(settings, name, system) is not None
    ]
    values = {recipe.patience for recipe in recipes}
    return values.pop() if len(values) == 1 else None


def is_equal(settings: Settings, cell: Cell) -> bool:
    """Whether both sides of a row have the same compute: the same number of epochs, or the same patience. True if a
    side has no network."""
    sides = [epochs(settings, *side) for side in cell.sides]
    same = len({sum(stages) for stages in sides if stages is not None}) < 2
    return same or patience(settings, cell) is not None


def design_of(settings: Settings, study: Study) -> str:
    """Markdown: what the rows have in common, and a table with one row per cell."""
    networks = {
        (experiment.dataset, experiment.backbone, settings.variants[system].network, seed)
        for cell in study.cells
        for name, system in cell.sides
        if epochs(settings, name, system) is not None
        for experiment in [settings.experiments[name]]
        for seed in experiment.seeds
    }
    return template(__package__, "design.md.j2").render(
        study=study,
        networks=len(networks),
        patience={waits for cell in study.cells if (waits := patience(settings, cell)) is not None},
        unequal=[title_of(cell) for cell in study.cells if not is_equal(settings, cell)],
        title_of=title_of,
        experiments=lambda cell: [settings.experiments[name] for name, _ in cell.sides],
        epochs=lambda cell: [epochs(settings, *side) for side in cell.sides],
    )
