"""The earlier version's tables and figures: numbers by hand, from the configs that ship."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import polars as pl
import pytest
from drawn import hollow, texts
from matplotlib.figure import Figure
from shipped import shipped

from plant.ground.settings import Item, load
from plant.paper.grid.cells import JUDGED
from plant.paper.grid.items import WORDS, needs, write_item
from plant.paper.grid.tables import to_page
from plant.paper.grid.words import word_table
from plant.paper.values.transcription import is_table, load_values

ROOT = Path(__file__).parents[3]
VALUES = load_values()
ITEMS = [item for item in get_args(Item) if item.startswith("awd_")]
LEVELS = {
    "awd_laat": 0.600, "awd_plant": 0.610, "awd_k72": 0.5070, "awd_k56": 0.5095, "awd_plant_k8": 0.556,
}  # fmt: skip
"""System -> every metric, a fraction. Intervals are 0.4 points to either side."""


SETTINGS = load(shipped("paper.yaml", "paper_awd_lstm.yaml"))


@pytest.fixture
def earlier(world, tmp_path):
    """The shipped grid, with four of its experiments run."""
    return type(world)(SETTINGS, tmp_path).run(
        "awd_mimic3_full", "awd_mimic3_inattention", "awd_mimic4_full", "awd_mimic3_few",
        level=lambda system, metric: LEVELS.get(system, 0.3),
    )  # fmt: skip


def numbers(frame: pl.DataFrame, row: str, kind: str) -> tuple:
    found = frame.filter(dataset="awd_mimic3_full", row=row, column="p@15", kind=kind)
    return found.select("paper", "ours", "low", "high", "verdict", "experiment").row(0)


def test_both_rows_of_an_ablation_and_their_difference_have_a_verdict(earlier):
    frame = earlier.frame("awd_table_7")
    planted, gain = (numbers(frame, "With PLANT", kind) for kind in ("value", "gain"))
    assert planted[:4] == pytest.approx((61.8, 61.0, 60.6, 61.4))
    assert planted[4:] == ("below", "awd_mimic3_full")
    assert gain[:4] == pytest.approx((2.2, 1.0, 0.6, 1.4))  # 61.8 - 59.6, and 61.0 - 60.0
    assert gain[4:] == ("below", "awd_mimic3_full")
    assert numbers(frame, "Without PLANT", "value")[4] == "within"  # 59.6 to 60.4


def test_a_row_on_a_part_of_the_training_split_is_measured_there(earlier):
    frame = earlier.frame("awd_table_7")
    with_k, gain = (numbers(frame, "With Inattention", kind) for kind in ("value", "gain"))
    assert (with_k[0], with_k[4], with_k[5]) == (51.05, "within", "awd_mimic3_inattention")
    assert SETTINGS.datasets[SETTINGS.experiments[with_k[5]].dataset].train_size == 22525
    assert gain[:4] == pytest.approx((0.1, 0.25, -0.15, 0.65))
    assert gain[4] == "within"
    stateful = frame.filter(row="Stateful", dataset="awd_mimic3_full", kind="value").row(0, named=True)
    assert (stateful["ours"], stateful["verdict"]) == (None, "not attempted")
    assert stateful["why"] == "not run yet: target `experiment_awd_mimic3_stateful`"
    page = to_page(earlier.sheet("awd_table_7"))
    assert page.startswith("# Table 7 of the earlier version of the paper beside ours: Ablations, P@15")
    assert "| With Inattention | paper | 51.05 |" in page
    assert "A gain of the paper is the difference of two values that it prints." in page


def test_few_is_read_in_two_ways_and_the_second_is_not_counted_with_the_table(earlier):
    sheet = earlier.sheet("awd_table_4")
    readings = [(part.dataset, SETTINGS.datasets[part.dataset].unlabelled) for part in sheet.parts]
    assert readings == [("awd_mimic3_few", "drop"), ("awd_mimic3_few_full_test", "keep_test")]
    assert sheet.summary[1].startswith("awd_mimic3_few_full_test, not counted above: ")


def test_the_ceilings_of_a_corpus_stand_beside_the_highest_precision_of_the_same_version(earlier):
    claims = earlier.frame("awd_table_8").filter(kind="ceiling").select("dataset", "column", "paper", "why").rows()
    assert ("awd_mimic3_full", "p@15", 61.8, "PLANT (Ours), Table 2") in claims
    assert {paper for name, column, paper, _ in claims if (name, column) == ("awd_mimic4_full", "p@5")} == {78.1}


@pytest.mark.parametrize("name", ITEMS)
def test_the_shipped_config_has_an_experiment_for_every_cell(name, world, tmp_path):
    nothing = type(world)(SETTINGS, tmp_path / "nothing")
    experiments, datasets = needs(name, SETTINGS)
    assert experiments or datasets
    if name in {item.target for item in VALUES.items}:
        judged = nothing.frame(name).filter(pl.col("kind").is_in(JUDGED))
        assert set(judged.get_column("verdict")) == {"not attempted"}
        assert all(why.startswith("not run yet: target `experiment_") for why in judged.get_column("why"))


def test_every_table_of_the_version_with_numbers_of_ours_is_an_item_of_the_shipped_config():
    tables = {item.target for item in VALUES.items if item.version == "awd" and is_table(item.item)}
    assert tables | {WORDS} == {name for name in ITEMS if "figure" not in name}
    assert set(ITEMS) <= set(SETTINGS.paper.items)


@pytest.mark.parametrize(("variant", "epochs", "k", "rate"), [
    ("awd_plant", 25, 56, 0.5), ("awd_plant_k8", 25, 8, 1 / 3), ("awd_k72", 5, 72, 0.5), ("awd_k56", 5, 56, 0.5),
    ("awd_no_k", 5, None, 1 / 3), ("awd_k8", 5, 8, 1 / 3), ("awd_stateful_3", 3, 56, 0.5),
    ("awd_stateless_7", 7, 8, 1 / 3), ("awd_one_rate_1", 1, 56, 1), ("awd_half_rate_1", 1, 56, 0.5),
    ("awd_one_rate_7", 7, 8, 1), ("awd_third_rate_7", 7, 8, 1 / 3), ("awd_full_unfreezing", 10, 56, 0.5),
    ("awd_gradual_unfreezing_k8", 10, 8, 1 / 3), ("awd_both", 25, 56, 0.5), ("awd_both_k8", 25, 8, 1 / 3),
])  # fmt: skip
def test_the_shipped_recipes_are_those_of_the_text(variant, epochs, k, rate):
    recipe = SETTINGS.finetunings[SETTINGS.variants[variant].finetuning]
    assert (recipe.epochs, recipe.inattention) == (epochs, k)
    assert recipe.attention_rate == pytest.approx(rate, abs=1e-3)
    assert recipe.segment == (None if "stateless" in variant else 72)
    assert recipe.unfreezing == ("gradual" if "gradual" in variant or "both" in variant else "together")
    trains_encoder = recipe.backbone_from_epoch <= recipe.epochs
    assert trains_encoder == ("unfreezing" in variant or "both" in variant)  # A.10
    assert (recipe.gamma, recipe.epsilon, recipe.hard_negatives) == (0, 0, None)  # BCE


def test_both_directions_are_an_average_of_one_recipe_with_its_difference_to_the_forward_network(world, tmp_path):
    level = {"awd_forward": 0.606, "awd_both": 0.612}
    made = type(world)(SETTINGS, tmp_path).run("awd_mimic3_directions", level=lambda system, _: level.get(system, 0.3))
    frame = made.frame("awd_appendix_11")
    both, gain = (numbers(frame, "both directions", kind) for kind in ("value", "gain"))
    assert both[:2] == pytest.approx((61.67, 61.2))
    assert gain[:2] == pytest.approx((1.06, 0.6))
    assert both[5] == gain[5] == "awd_mimic3_directions"
    page = to_page(made.sheet("awd_appendix_11"))
    assert page.startswith("# Appendix A.11 of the earlier version of the paper beside ours: ")
    forward, average = (SETTINGS.variants[name] for name in ("awd_forward", "awd_both"))
    assert average == forward.model_copy(update={"average_with": "awd_lstm_backward", "title": "both directions"})
    one, other = (SETTINGS.backbones[name] for name in ("awd_lstm", "awd_lstm_backward"))
    assert other == one.model_copy(update={"options": {**one.options, "backward": True}})


def drawn(name: str, world) -> tuple[Figure, str, set[tuple[float, float]]]:
    """A figure, its words, and the places of its hollow marks."""
    figure = world.draw(name)
    return figure, texts(figure), set().union(*map(hollow, figure.axes))


def test_figure_3_has_the_sizes_of_the_text_and_no_ablation(earlier):
    earlier.run("awd_mimic3_n136", "awd_mimic3_n22525", level=lambda system, _: LEVELS.get(system, 0.3))
    _, text, marks = drawn("awd_figure_3", earlier)
    assert {(136, 47), (1342, 47), (235, 30), (1578, 30)} <= marks
    assert "PLANT, k = 56, P@15" in text and "k = 72" not in text
    assert "LAAT" in text and "single stage" not in text  # the system that planting is compared with
    assert "target experiment_awd_mimic3_n235" in text


def test_figure_4_counts_the_documents_of_labels_in_all_splits_beside_the_share_of_the_text(earlier):
    corpus = Path(earlier.paths["awd_mimic3_full"].corpus)
    missing = "target `experiment_awd_mimic3_full"
    assert missing in drawn("awd_figure_4", earlier)[1]
    counts = {"n_train": [20, 9, 1, 0], "n_val": [4, 0, 0, 0], "n_test": [6, 1, 3, 0]}  # 30, 10, 4 and no document
    pl.DataFrame({"label": list("abcd"), **counts}).write_parquet(corpus / "labels.parquet")
    figure, words, marks = drawn("awd_figure_4", earlier)
    ranked, cumulated = ([list(map(float, line.get_ydata())) for line in axes.get_lines()] for axes in figure.axes)
    assert ranked[0] == [30, 10, 4]
    assert cumulated[0] == pytest.approx([0, 100 / 3, 200 / 3])  # fewer than 4, 10 and 30 documents
    assert marks == {(10, 60.6)}  # 5,411 of 8,929
    assert missing not in words
    assert needs("awd_figure_4", SETTINGS) == ([], ["awd_mimic3_full"])


def test_figure_5_has_training_and_validation_by_epoch_and_the_epochs_of_the_text(earlier, tmp_path):
    assert "target experiment_awd_mimic4_overfitting" in drawn("awd_figure_5", earlier)[1]
    name, runs = "awd_mimic4_overfitting", {}
    for system, end in (("awd_laat_60", 0.2), ("awd_plant_60", 0.3)):
        folder = tmp_path / system / "seed0"
        folder.mkdir(parents=True)
        runs[system] = [folder]
        history = {"epoch": [1, 2, 3], "loss": [3.0, 2.0, 1.0], "macro_f1": [0.1, 0.15, end], "threshold": [0.0] * 3}
        pl.DataFrame(history).write_parquet(folder / "history.parquet")
    earlier.paths[name] = replace(earlier.paths[name], finetunings=runs)
    figure, text, _ = drawn("awd_figure_5", earlier)
    drawn_lines = [[list(map(float, line.get_ydata())) for line in axes.get_lines()] for axes in figure.axes]
    assert [3.0, 2.0, 1.0] in drawn_lines[0]
    assert any(y == pytest.approx([10, 15, 30]) for y in drawn_lines[1])
    dotted = {float(x) for axes in figure.axes for line in axes.get_lines() for x in line.get_xdata()[:1]}
    assert {40.0, 60.0} <= dotted
    assert "to read them off a picture is not attempted" in " ".join(text.split())


def attention_of(words: dict[str, float]) -> pl.DataFrame:
    """attention.parquet of one label in one document."""
    return pl.DataFrame({
        "document_id": "d", "label": "fish", "truth": True, "probability": 0.5, "position": range(len(words)),
        "token": list(words), "weight": list(words.values()),
        "relevance": [0.5 if word == "net" else None for word in words],
    })  # fmt: skip


def test_table_11_ranks_words_by_attention_and_relevance_and_n_grams_by_weight_on_open_text_alone(earlier, tmp_path):
    inputs, files = earlier.paths["awd_eurlex4k"], {}
    table = word_table(earlier.grid, VALUES)
    assert "Not run yet: target `experiment_awd_eurlex4k experiment_awd_wiki10_31k`." in table.notes
    assert "The paper on 518.81: Acute respiratory failure, PLANT: intubation, fio2, pc02." in table.notes
    planted = {"the": 0.1, "net": 0.3, "cod": 0.2, "sea": 0.15, "of": 0.05, "boat": 0.08, "and": 0.0}
    for system, words in (("awd_plant", planted), ("awd_laat", {**planted, "the": 0.9})):
        files[system] = tmp_path / f"{system}.parquet"
        attention_of(words).write_parquet(files[system])
    earlier.paths["awd_eurlex4k"] = replace(inputs, attention=files)
    linear = Path(inputs.evaluations["tfidf_linear"][0])
    linear.mkdir(parents=True, exist_ok=True)
    features = {"label": ["fish", "fish", "fish", "coal"], "feature": [None, "fishing quota", "steel", "mine"],
                "weight": [9.0, 2.0, -3.0, 4.0]}  # fmt: skip
    pl.DataFrame(features).write_parquet(linear / "weights.parquet")
    write_item("awd_table_11", earlier.settings, earlier.paths, tmp_path / "paper")
    rows = pl.read_csv(tmp_path / "paper/tables/awd_table_11.csv")
    found = rows.group_by("system", "what", maintain_order=True).agg(pl.col("words")).rows()
    assert found == [
        ("awd_plant", "learned attention A", ["net", "cod", "sea", "the", "boat"]),
        ("awd_laat", "learned attention A", ["the", "net", "cod", "sea", "boat"]),
        ("awd_plant", "relevance S", ["net"]),
        ("tfidf_linear", "weight", ["fishing quota"]),
    ]
    assert (
        "| awd_eurlex4k | fish | TF-IDF + linear | weight | fishing quota |"
        in (tmp_path / "paper/tables/awd_table_11.md").read_text()
    )
    assert set(rows.get_column("experiment")) == {"awd_eurlex4k"}  # no text under credentials


def test_figure_2_marks_the_means_of_the_text_and_no_share(earlier):
    _, text, marks = drawn("awd_figure_2", earlier)
    assert {29.42, 66.32, 5.38, 0.0} <= {x for x, _ in marks}
    assert "[66.3]" in text and "%]" not in text
