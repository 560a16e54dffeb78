"""The report's first sentence falls the way the numbers fall."""

from __future__ import annotations

import polars as pl
import pytest

from plant.paper.experiment.headline import SYNTHETIC_WARNING, compare, leading, write_headline
from plant.paper.experiment.result_tables import interval_table
from plant.paper.paths import Paths


def headline(toy) -> dict:
    return write_headline(toy.data)


def set_value(toy, system: str, value: float) -> None:
    here = (pl.col("system") == system) & (pl.col("metric") == "macro_f1_present")
    toy.rewrite("intervals", lambda t: t.with_columns(value=pl.when(here).then(value).otherwise("value")))


def set_difference(toy, system: str, metric: str, low: float, high: float) -> None:
    """Our interval of system minus PLANT."""
    here = (pl.col("system") == system) & (pl.col("metric") == metric)
    toy.rewrite(
        "intervals",
        lambda t: t.with_columns(
            pl.when(here).then((low + high) / 2).otherwise("difference").alias("difference"),
            pl.when(here).then(low).otherwise("diff_low").alias("diff_low"),
            pl.when(here).then(high).otherwise("diff_high").alias("diff_high"),
        ),
    )


UNDECIDED = "Undecided: these data are too few to show whether planting helps the network"


@pytest.mark.parametrize(("control", "baseline", "expected"), [
    ((-0.1, -0.02), (-0.1, -0.02), "Yes, planting helps the network, and it beats {}"),
    ((-0.1, -0.02), (0.02, 0.1), "Yes, planting helps the network, but {} is better"),
    ((-0.1, -0.02), (-0.02, 0.1), "Yes, planting helps the network, but against {} it is undecided"),
    ((0.02, 0.1), (0.02, 0.1), "No, planting hurts the network, and {} is better"),
    ((0.02, 0.1), (-0.1, -0.02), "No, planting hurts the network, but it beats {}"),
    ((-0.02, 0.1), (0.02, 0.1), f"{UNDECIDED}, and {{}} is better"),
])  # fmt: skip
def test_answer_follows_the_two_intervals(toy, control, baseline, expected):
    set_difference(toy, "focal", "macro_f1_present", *control)
    set_difference(toy, "combined", "macro_f1_present", *baseline)
    sentence = expected.format("the best baseline without a network")
    assert headline(toy)["answer"] == f"{sentence} (by macro-F1 (present))."


def test_an_interval_that_touches_zero_or_a_failed_randomisation_test_is_undecided(toy):
    set_difference(toy, "focal", "macro_f1_present", -0.1, 0.0)
    assert headline(toy)["answer"].startswith("Undecided")
    set_difference(toy, "focal", "macro_f1_present", -0.1, -0.02)
    toy.rewrite("randomization", lambda t: t.with_columns(p=0.2))
    assert headline(toy)["answer"].startswith("Undecided")


def test_details_state_values_difference_interval_and_p_against_the_best_baseline_of_each_metric(toy):
    details = headline(toy)["details"]
    assert details[0] == (
        "macro-F1 (present): PLANT 36.9, random init, focal + HNM 12.8; difference +24.1 [22.1, 26.1]; "
        "randomisation p = 0.001."
    )
    assert len(details) == 4  # two metrics, each against the control and the best baseline
    assert details[1].startswith("macro-F1 (present): PLANT 36.9, TF-IDF + MIG combined 59.0")
    assert details[3].startswith("rare AP: PLANT 27.8, MIG log-odds 50.9")


def test_best_system_is_named_even_where_it_is_neither_reference_nor_control_nor_baseline(toy):
    """A third planted or control system can be ahead of all: the reader must hear of it, with its interval."""
    before = headline(toy)
    assert "PLANT, shuffled relevance" not in before["best"] + " ".join(before["details"])
    set_value(toy, "shuffled", 0.7)
    set_difference(toy, "shuffled", "macro_f1_present", 0.31, 0.35)
    after = headline(toy)
    assert after["best"] == (
        "Best of 7 systems: PLANT, shuffled relevance in macro-F1 (present) (70.0), MIG log-odds in rare AP (50.9)."
    )
    assert (
        "macro-F1 (present): PLANT 36.9, PLANT, shuffled relevance 70.0; difference \N{MINUS SIGN}33.0 "
        "[\N{MINUS SIGN}35.0, \N{MINUS SIGN}31.0]; randomisation p = 0.001."
    ) in after["details"]


def test_systems_of_the_same_highest_value_are_all_named(toy):
    set_value(toy, "mig_log_odds", 0.59)
    assert "MIG log-odds and TF-IDF + MIG combined in macro-F1 (present) (59.0)" in headline(toy)["best"]


def test_leading_systems_are_the_reference_its_controls_the_best_and_the_best_baseline(toy):
    assert leading(toy.data) == {"plant", "focal", "shuffled", "combined"}
    set_value(toy, "bce", 0.9)
    assert leading(toy.data) == {"plant", "focal", "shuffled", "combined", "bce"}


def test_a_difference_changes_sign_with_the_reference_and_none_is_invented_without_it(toy):
    """The same numbers, told from the other side, give the same comparison."""
    systems = {system.name: system for system in toy.data.systems}
    rows = toy.data.rows
    before = compare(rows, systems["plant"], systems["focal"], "map")
    row = rows["focal", "map"]
    told = {**row, "reference": "focal", "value": before.first_value, "difference": -row["difference"],
            "diff_low": -row["diff_high"], "diff_high": -row["diff_low"], "our_arrow": "up"}  # fmt: skip
    focal = {**row, "reference": "focal", "diff_low": None, "diff_high": None}
    after = compare({("plant", "map"): told, ("focal", "map"): focal}, systems["plant"], systems["focal"], "map")
    assert after == before
    assert after.outcome == "higher"
    assert compare(rows, systems["focal"], systems["bce"], "map") is None


def test_control_is_the_random_initialisation_with_the_same_loss_and_budget(toy):
    roles = toy.data.roles
    assert (roles.planted.name, roles.control.name, roles.equal_compute) == ("plant", "focal", True)
    assert "the loss and the budget of PLANT: 12 epochs in all" in headline(toy)["certainty"]


@pytest.mark.parametrize(("section", "name", "change", "said"), [
    ("finetunings", "focal_long", {"epochs": 8}, "PLANT has 12 epochs in all, random init, focal + HNM 8 (4 fewer)"),
    ("finetunings", "focal_long", {"patience": 2},
     "early stopping (`patience`) may end random init, focal + HNM sooner"),
    ("pretrainings", "mig", {"patience": 2}, "early stopping (`patience`) may end PLANT sooner"),
    ("finetunings", "focal_long", {"epsilon": 0.2},
     "`epsilon` differs (0.1 in PLANT, 0.2 in random init, focal + HNM)"),
    ("finetunings", "focal_long", {"loss": "asymmetric"},
     "`loss` differs (focal in PLANT, asymmetric in random init, focal + HNM)"),
])  # fmt: skip
def test_unequal_budget_is_said(toy, section, name, change, said):
    """The budget, early stopping on one side, or another loss, with both values."""
    recipe = getattr(toy.settings, section)[name].model_dump(mode="json") | change
    other = toy.with_config({"variants": ["plant", "focal"]}, **{section: {name: recipe}})
    assert other.data.roles.equal_compute is False
    assert f"Not an equal-compute comparison: {said}." in headline(other)["certainty"]


def test_an_answer_from_one_seed_says_so_and_what_its_intervals_are_over(toy):
    assert "one seed" not in headline(toy)["answer"]
    assert "95% intervals over training seeds and test documents together" in headline(toy)["certainty"]
    one = headline(toy.with_experiment(seeds=[0]))
    assert one["answer"].endswith("(by macro-F1 (present), one seed).")
    assert "over test documents alone (one seed" in one["certainty"]


@pytest.mark.parametrize(("measure", "kind"), [("mig", "planted"), ("random", "control"), ("shuffled", "control")])
def test_static_attention_plants_its_relevance_without_a_stage_1(toy, measure, kind):
    recipe = toy.settings.finetunings["focal_long"].model_dump(mode="json")
    static = {**recipe, "static_attention": 1.0, "static_measure": measure}
    with_static = toy.with_config({"reference": "focal"}, finetunings={"focal_long": static})
    kinds = {system.name: system.kind for system in with_static.data.systems}
    names = ("focal", "bce", "plant", "shuffled", "combined")
    assert [kinds[name] for name in names] == [kind, "unplanted", "planted", "control", "no network"]
    roles = with_static.data.roles
    assert (roles.planted.name, roles.control.name) == ("focal" if kind == "planted" else "plant", "bce")


def test_synthetic_corpus_is_said_to_favour_the_method(toy, tmp_path):
    assert headline(toy)["warning"] == SYNTHETIC_WARNING
    assert "favours the method" in SYNTHETIC_WARNING
    real = toy.with_config(datasets={"toy": {"source": "mimic3", "path": str(tmp_path)}})
    assert headline(real)["warning"] == ""
    part = {"toy": {"source": "subset", "of": "whole"}, "whole": {"source": "mimic3", "generate": {}}}
    assert headline(toy.with_config(datasets=part))["warning"] == SYNTHETIC_WARNING


def test_a_random_initialisation_that_ran_but_has_no_interval_is_not_said_to_be_missing(toy):
    """Neither is the reference, or the test split has one document."""
    toy.rewrite("intervals", lambda t: t.with_columns(reference=pl.lit("combined"), diff_low=None, diff_high=None))
    assert headline(toy.with_experiment(reference="combined"))["answer"] == (
        "Planting has no paired interval against a random initialisation, and there is no paired interval against the "
        "baselines without a network."
    )


@pytest.mark.parametrize(("experiment", "answer"), [
    ({"variants": ["bce", "focal"], "reference": "focal"}, "No planted system ran: there is nothing to judge."),
    ({"variants": ["plant"], "baselines": []}, "Planting was not compared with a random initialisation."),
])  # fmt: skip
def test_experiment_without_a_planted_system_or_without_rivals_says_so(toy, experiment, answer):
    assert headline(toy.with_experiment(**experiment))["answer"] == answer


@pytest.mark.parametrize("seeds", [[], [0, 1]])
def test_baselines_alone_are_not_said_to_have_training_seeds(toy, seeds):
    """They have one fit each, whatever seeds the config names; no seed at all is no error."""
    alone = toy.with_experiment(variants=[], reference="combined", seeds=seeds)
    assert Paths(alone.settings).attention("toy") == {}
    certainty = headline(alone)["certainty"]
    assert certainty.startswith("95% intervals over test documents alone. ")
    assert "training" not in certainty
    toy.rewrite("intervals", lambda t: t.with_columns(n_seeds=pl.lit(1)))
    assert interval_table(alone.data).values["over"] == "over test documents alone"
