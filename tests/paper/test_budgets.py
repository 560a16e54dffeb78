"""Choice C16: both sides of a comparison that ships have the same epochs and neither stops early, or the same patience
ends both."""

from __future__ import annotations

from pathlib import Path

import pytest
from shipped import shipped

from plant.ground.settings import NO_PRETRAINING, Experiment, Finetuning, Settings, load
from plant.paper.systems import budget_notes, find_system, list_systems
from plant.paper.values.transcription import load_values

ROOT = Path(__file__).parents[2]
MARK = "paper's epochs"
"""In the title of a row that keeps the paper's regimen: fewer epochs than PLANT in all."""
STUDIED = {"codiesp_en_start"}
"""Experiments without table and figure: a row of a study compares a variant with another experiment."""


BELOW = {
    "miniature.yaml": ["paper.yaml"],
    "paper_awd_lstm.yaml": ["paper.yaml"],
    "miniature_awd_lstm.yaml": ["paper.yaml", "paper_awd_lstm.yaml", "miniature.yaml"],
}
"""A config that is laid over others -> the others, the lowest first."""
CONFIGS = {
    file.name: load(shipped(*BELOW.get(file.name, []), file.name)) for file in sorted((ROOT / "config").glob("*.yaml"))
}
ON_MIMIC = "studies/fair_mimic.yaml"
STUDIES = sorted({f"studies/{one.name}" for one in (ROOT / "config/studies").iterdir()} - {ON_MIMIC})
CONFIGS |= {"studies": load(shipped(*STUDIES)), "study on MIMIC": load(shipped("paper.yaml", ON_MIMIC))}
assert {"config.yaml", "miniature.yaml", "open.yaml", "paper.yaml"} <= CONFIGS.keys()
every_config = pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)


def epochs(settings: Settings, name: str) -> int:
    """Counted from the recipes alone."""
    variant = settings.variants[name]
    first = 0 if variant.pretraining == NO_PRETRAINING else settings.pretrainings[variant.pretraining].epochs
    return (variant.pretraining_epoch or first) + settings.finetunings[variant.finetuning].epochs


def is_marked(settings: Settings, name: str) -> bool:
    return MARK in (settings.variants[name].title or "")


def is_plain(settings: Settings, name: str, recipe: Finetuning) -> bool:
    """Whether its attention starts from random weights and nothing is planted in it."""
    return settings.variants[name].pretraining == NO_PRETRAINING and not recipe.static_attention


def to_the_end(settings: Settings, experiment: Experiment) -> bool:
    """Whether patience ends Stage 2 of all its networks."""
    recipes = [settings.stage2_of(experiment, name) for name in experiment.variants if settings.reads_network(name)]
    return bool(recipes) and all(recipe.patience is not None for recipe in recipes)


@every_config
def test_no_recipe_stops_early_but_where_all_of_an_experiment_are_trained_to_the_end(settings):
    assert [name for name, recipe in settings.pretrainings.items() if recipe.patience is not None] == []
    for name, experiment in settings.experiments.items():
        recipes = {
            each: settings.stage2_of(experiment, each) for each in experiment.variants if settings.reads_network(each)
        }
        assert len({each.patience for each in recipes.values()}) <= 1, name
        if not to_the_end(settings, experiment):
            continue
        # no planted network has room for more passes than one that is not planted
        plain = [each for each, recipe in recipes.items() if is_plain(settings, each, recipe)]
        assert len({recipes[each].epochs for each in plain or recipes}) == 1, name
        assert all(recipe.epochs <= recipes[each].epochs for each in plain for recipe in recipes.values()), name


def test_only_the_fair_trial_is_trained_to_the_end():
    names = {
        name
        for settings in CONFIGS.values()
        for name, experiment in settings.experiments.items()
        if to_the_end(settings, experiment)
    }
    assert names
    assert all(name.startswith("fair_") for name in names)


@every_config
def test_every_row_of_a_table_has_the_epochs_of_its_reference_or_says_that_they_are_the_papers(settings):
    for name, experiment in settings.experiments.items():
        expected = epochs(settings, experiment.reference)
        for variant in experiment.variants:
            networks = settings.reads_network(variant) + (settings.variants[variant].average_with is not None)
            assert find_system(settings, experiment, variant).total_epochs == networks * epochs(settings, variant)
        if name in STUDIED or to_the_end(settings, experiment):
            continue
        for variant in experiment.variants:
            if settings.variants[variant].pretraining_epoch is not None or not settings.reads_network(variant):
                continue  # a point of the sweep over epochs; words alone
            if settings.variants[variant].average_with is not None:
                continue  # the mean of two networks, each with these epochs (appendix A.11 of the earlier version)
            fewer = epochs(settings, variant) < expected
            assert (epochs(settings, variant) == expected) != fewer, (name, variant)
            assert fewer == is_marked(settings, variant), (name, variant, epochs(settings, variant), expected)


def test_what_only_studies_compare_has_no_table():
    experiments = {name: each for settings in CONFIGS.values() for name, each in settings.experiments.items()}
    assert [experiments[name].report for name in STUDIED] == [False]


@every_config
def test_both_sides_of_a_row_of_a_study_have_the_same_epochs(settings):
    for name, study in settings.studies.items():
        for cell in study.cells:
            sides = [system for _, system in cell.sides if system in settings.variants]
            sides = [system for system in sides if settings.reads_network(system)]
            if to_the_end(settings, settings.experiments[cell.experiment]):
                continue
            assert len({epochs(settings, system) for system in sides}) <= 1, (name, cell.title, sides)


def test_a_row_that_is_marked_as_the_papers_is_one_of_the_paper_and_has_an_equal_row_beside_it():
    settings = CONFIGS["paper.yaml"]
    rows = {row.system for _, block in load_values().blocks() for row in block.rows}
    marked = {name for name in settings.variants if is_marked(settings, name)}
    assert marked <= rows
    assert marked == {"single_stage", "single_stage_bce", "single_stage_focal"}
    for name, experiment in settings.experiments.items():
        if marked & set(experiment.variants) and experiment.backbone != "deepseek_v3":  # which costs ten times as much
            assert "single_stage_long" in experiment.variants, name


def test_the_notes_of_a_table_name_the_rows_of_other_epochs_and_those_that_may_stop_early():
    settings = CONFIGS["paper.yaml"]
    experiment = settings.experiments["mimic4_full_mistral"]
    systems = list_systems(settings, experiment)
    assert budget_notes(systems, systems[-1]) == (
        "Not equal compute: PLANT has 20 epochs in all; single stage, paper's epochs 10 (choice C16).",
    )
    config = settings.model_dump(mode="json")
    config["finetunings"]["focal_hnm_long"]["patience"] = 2
    early = load(config)
    notes = budget_notes(list_systems(early, experiment), systems[-1])
    assert notes[1] == "May stop before their last epoch (`patience`): single stage, equal epochs (choice C16)."
    demo = CONFIGS["config.yaml"]
    systems = list_systems(demo, demo.experiments["demo"])
    assert budget_notes(systems, systems[-1]) == ()
