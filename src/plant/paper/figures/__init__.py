"""All figures of an experiment, as PDF and PNG under fixed names (`plant.paper.FIGURES`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from plant.ground.settings import Experiment, Settings
from plant.paper.experiment.attention import mark, may_show_text, readings
from plant.paper.experiment.headline import leading
from plant.paper.figures.differences import interval_figure
from plant.paper.figures.labels import frequency_figure, rare_label_figure
from plant.paper.figures.reading import attention_figure
from plant.paper.figures.style import look, save
from plant.paper.figures.training import STAGE1_COLUMNS, STAGE2_COLUMNS, curves_figure, stage_figure
from plant.paper.inputs import Inputs, read_attention, read_histories, read_labels, read_metrics, read_results
from plant.paper.systems import find_roles, list_networks, list_systems


def write_figures(inputs: Inputs, folder: Path, *, settings: Settings, experiment: str) -> None:
    """Write every figure of `FIGURES` into `folder`; the same inputs give the same bytes.

    Raises:
        InputError: an input is missing or lacks a column.
    """
    with look():
        for name, draw in figure_builders(inputs, settings=settings, experiment=experiment).items():
            save(draw(), Path(folder) / name)


def figure_builders(inputs: Inputs, *, settings: Settings, experiment: str) -> dict[str, Callable[[], Figure]]:
    """Name -> function that draws it, in the order of `FIGURES`; call them inside `style.look()`."""
    design = settings.experiments[experiment]
    systems = list_systems(settings, design)
    labels = read_labels(inputs)
    stage1 = read_histories(inputs.pretrainings, STAGE1_COLUMNS)
    stage2 = read_histories(inputs.finetunings, STAGE2_COLUMNS)
    results = read_results(inputs, alpha=settings.statistics.alpha)
    leaders = leading(results, settings=settings, experiment=design)
    recipes = [settings.pretrainings[system.pretraining] for system in systems if system.pretraining is not None]
    return {
        "ndcg_and_macro_f1": lambda: stage_figure(
            stage1, read_metrics(inputs), systems=systems, leading=leaders,
            ndcg_k=[recipe.ndcg_k or recipe.k for recipe in recipes],
        ),
        "rare_label_f1": lambda: rare_label_figure(labels, systems=systems, evaluation=settings.evaluation),
        "attention": lambda: _attention(inputs, settings, design),
        "differences": lambda: interval_figure(
            results, systems=systems, metrics=settings.paper.metrics, confidence=settings.statistics.confidence,
        ),
        "frequency_groups": lambda: frequency_figure(
            labels, systems=systems, evaluation=settings.evaluation, leading=leaders
        ),
        "training_curves": lambda: curves_figure(
            stage1, stage2, systems=systems, networks=list_networks(settings, design)
        ),
    }  # fmt: skip


def _attention(inputs: Inputs, settings: Settings, experiment: Experiment) -> Figure:
    if not may_show_text(settings, experiment):
        return attention_figure((), reason="Not shown: the text of this corpus is credentialed.")
    roles = find_roles(settings, experiment)
    shown = readings(read_attention(inputs), roles, documents=settings.evaluation.attention_documents)
    return attention_figure(shown, mark=mark(settings, experiment))
