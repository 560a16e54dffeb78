"""Figures: all files, the same bytes twice, what stands in them, and nothing left behind in matplotlib."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from drawn import texts
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from plant.paper.contents import report_figures
from plant.paper.experiment.attention import heaviest, readings, spaced
from plant.paper.figures import write_figures
from plant.paper.figures.style import look, marks, save, spread
from plant.paper.paths import FIGURE_FORMATS
from plant.paper.systems import group_systems


def drawn(toy, name: str):
    with look():
        return report_figures()[name].load()(toy.data)


def test_every_declared_figure_is_written_with_ink_and_the_same_bytes_again(toy):
    first, second = toy.folder / "first", toy.folder / "second"
    write_figures(toy.data, first)
    assert {path.name for path in first.iterdir()} == {
        f"{name}.{kind}" for name in report_figures() for kind in FIGURE_FORMATS
    }
    for name in report_figures():
        pixels = np.asarray(Image.open(first / f"{name}.png").convert("L"))
        assert 0.003 < (pixels < 200).mean() < 0.5
        assert (first / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    with look():  # one figure again: it has text, lines, patches and densities, of which the others are made
        save(report_figures()["rare_label_f1"].load()(toy.data), second / "rare_label_f1")
    for path in second.iterdir():
        assert path.read_bytes() == (first / path.name).read_bytes()


def test_matplotlib_settings_are_put_back(toy):
    before = dict(mpl.rcParams)
    drawn(toy, "differences")
    assert dict(mpl.rcParams) == before


def write_labels(toy, **columns) -> None:
    """The same labels for every system and seed."""
    table = pl.DataFrame({"label": list("abcdef")[: len(columns["f1"])], "n_test": 1, "ap": 0.5} | columns)
    for folder in (folder for folders in toy.inputs.evaluations.values() for folder in folders):
        table.write_parquet(folder / "per_label.parquet")


@pytest.mark.parametrize(("f1", "n_train", "printed"), [
    ([0.0, 0.2, 0.8, 0.9, 0.6, 1.0], [1, 2, 3, 4, 9, 50], ["50.0", "40%", "5 labels"]),
    ([0.0, 0.0, 0.0], [1, 1, 1], ["0.0", "0%", "3 labels"]),  # equal values have no density
])  # fmt: skip
def test_violins_print_the_mean_and_the_share_above_70(toy, f1, n_train, printed):
    write_labels(toy, n_train=n_train, f1=f1)
    text = texts(drawn(toy.with_config(evaluation={"rare_below": 10}), "rare_label_f1"))
    assert all(part in text for part in printed)


def test_frequency_figure_groups_by_training_documents(toy):
    write_labels(toy, n_train=[0, 1, 10, 11, 900], f1=[1.0, 0.2, 0.4, 0.5, 0.9])
    figure = drawn(toy, "frequency_groups")
    for line in figure.axes[0].get_lines():
        assert np.allclose(line.get_ydata(), [30, 50, 90])
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert ticks == ["1–10\n2 labels", "11–50\n1 label", "> 500\n1 label"]


def test_each_name_beside_a_line_stands_behind_the_mark_of_its_line(toy):
    """All lines end at one place here, so the place of a name does not say whose it is."""
    write_labels(toy, n_train=[1, 10, 11, 900], f1=[0.2, 0.4, 0.5, 0.9])
    figure = drawn(toy, "frequency_groups")
    own = marks(toy.data.systems)
    shown = {line.get_ydata()[0]: (line.get_marker(), line.get_color()) for line in figure.artists}
    beside = {text.get_text(): shown[text.xy[1]] for text in figure.axes[0].texts}
    assert beside == {one.title: (own[one.name].marker, own[one.name].colour) for one in toy.data.systems}


def test_labels_absent_from_the_test_split_do_not_count(toy):
    table = pl.DataFrame(
        {"label": ["a", "b"], "n_train": [1, 2], "n_test": [1, 0], "f1": [0.5, None], "ap": [0.5, None]}
    )
    for folder in toy.inputs.evaluations["plant"]:
        table.write_parquet(folder / "per_label.parquet")
    assert toy.data.labels.filter(system="plant").get_column("label").to_list() == ["a"]


def test_interval_marks_are_filled_only_where_zero_is_excluded(toy):
    figure = drawn(toy, "differences")
    panel = next(axes for axes in figure.axes if axes.get_title(loc="left") == "P@5")
    faces = {round(float(line.get_ydata()[0])): line.get_markerfacecolor() for line in panel.get_lines()[1:]
             if line.get_marker() not in ("None", "")}  # fmt: skip
    rows = [label.get_text() for label in figure.axes[4].get_yticklabels()]
    assert faces.pop(rows.index("random init, focal + HNM")) == "white"
    assert "white" not in faces.values()


def test_a_long_title_takes_no_room_from_the_panels_of_differences(toy):
    widths = []
    for title in ("short", "a title of many words, which nobody would write twice, but which somebody wrote once"):
        figure = drawn(toy.with_config(variants={"focal": {"finetuning": "focal_long", "title": title}}), "differences")
        figure.draw_without_rendering()
        widths.append(figure.axes[0].get_position().width * figure.get_figwidth())
    assert widths[1] > 0.8 * widths[0]


def test_forest_rows_are_grouped_by_the_stage_that_differs_from_the_reference(toy):
    figure = drawn(toy.with_config(finetunings={"focal_long": {}, "focal": {}, "bce": {}}, variants={
        "focal": {"finetuning": "focal"}, "bce": {"finetuning": "bce", "title": "bce"},
    }), "differences")  # fmt: skip
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "Stage 1 differs", "focal", "PLANT, shuffled relevance", "several stages differ", "bce",
        "no network", "TF-IDF + linear", "MIG log-odds", "TF-IDF + MIG combined",
    ]  # fmt: skip
    alone = drawn(toy.with_experiment(baselines=[], variants=["bce", "plant"]), "differences")
    assert [label.get_text() for label in alone.axes[0].get_yticklabels()] == ["random init, BCE"]
    baseline = toy.with_experiment(reference="combined")
    assert set(group_systems(baseline.data.systems)) == {"networks", "no network"}


@pytest.mark.parametrize("epoch", [None, 1])
def test_stage_figure_has_a_point_for_each_seed_at_the_epoch_that_stage_2_starts_from(toy, epoch):
    plant = {"pretraining": "mig", "pretraining_epoch": epoch, "finetuning": "focal"}
    stage1 = {"epochs": 4, "patience": None, "k": 100, "keep_epochs": True}
    figure = drawn(toy.with_config(variants={"plant": plant}, pretrainings={"mig": stage1}), "ndcg_and_macro_f1")
    points = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "None"]
    assert [len(line.get_xdata()) for line in points] == [3, 3]  # shuffled relevance, and PLANT
    assert "nDCG@100" in texts(figure)
    runs = [pl.read_parquet(folder / "history.parquet") for folder in toy.inputs.pretrainings["mig"]]
    expected = [run["ndcg_val"].max() if epoch is None else run.filter(epoch=epoch)["ndcg_val"].item() for run in runs]
    assert list(points[1].get_xdata()) == pytest.approx(expected)


def test_a_figure_with_nothing_to_show_says_why(toy):
    alone = toy.with_experiment(variants=["bce", "focal"], reference="focal", baselines=[])
    alone = replace(alone, inputs=replace(toy.inputs, pretrainings={}))
    assert "No system of this experiment has a Stage 1." in texts(drawn(alone, "ndcg_and_macro_f1"))


def test_attention_pairs_planted_and_random_over_the_same_tokens(toy):
    found = readings(toy.with_config(evaluation={"attention_documents": 2}).data)
    assert [reading["document"] for reading in found] == ["d1", "d2"]
    for reading in found:
        pieces, relevant = reading["pieces"], reading["relevant"]
        assert [panel["system"].name for panel in reading["panels"]] == ["plant", "focal"]
        for panel in reading["panels"]:
            assert len(panel["weights"]) == len(pieces) == len(relevant)
            assert panel["weights"].sum() == pytest.approx(1)
        marked = {piece for piece, is_relevant in zip(pieces, relevant, strict=True) if is_relevant}
        assert marked == {" fever", " cough", " chest"}  # in every place
        assert sum(relevant) == sum(piece in marked for piece in pieces)
        assert reading["part"] == slice(0, len(pieces))


def test_the_part_of_a_long_text_that_is_shown_is_the_window_with_most_weight_of_both_panels():
    weights = np.random.default_rng(0).dirichlet(np.ones(140), size=2)
    part, total = heaviest(weights, 20), weights.sum(axis=0)
    assert part.stop - part.start == 20
    assert part.start == int(np.argmax([total[start : start + 20].sum() for start in range(len(total) - 19)]))


@pytest.mark.parametrize(("tokens", "text"), [
    ([" fe", "ver", " up"], " fever up"), (["Ġfe", "ver", "Ġup"], " fever up"), (["▁fe", "ver", "▁up"], " fever up"),
    (["fe", "##ver", "up"], " fever up"), (["fever", "up"], " fever up"), ([], ""),
])  # fmt: skip
def test_tokens_of_every_tokenizer_join_to_the_same_text(tokens, text):
    assert "".join(spaced(tokens)) == text


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12), st.floats(0.1, 20))
def test_spread_labels_keep_their_order_and_never_overlap(positions, gap):
    moved = spread(positions, gap)
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    in_order = [moved[index] for index in order]
    assert all(after - before >= gap * (1 - 1e-9) - 1e-9 for before, after in pairwise(in_order))


def test_signs_that_the_font_lacks_come_from_fonts_that_the_machine_has(monkeypatch):
    monkeypatch.setattr("plant.paper.figures.style.FALLBACKS", ("No such font", "DejaVu Serif"))
    before = mpl.rcParams["font.family"]
    with look():
        assert mpl.rcParams["font.family"] == ["DejaVu Sans", "DejaVu Serif"]
    assert mpl.rcParams["font.family"] == before


def test_systems_of_one_kind_share_a_hue_and_differ_in_marker(toy):
    found = marks(toy.data.systems)
    assert found["bce"].ink == found["focal"].ink != found["plant"].ink
    assert (found["bce"].colour, found["bce"].marker) != (found["focal"].colour, found["focal"].marker)


@pytest.mark.parametrize("grey", [0, 1])
@pytest.mark.parametrize("name", ["frequency_groups", "ndcg_and_macro_f1", "learning_over_time", "training_curves"])
def test_of_many_systems_only_the_leading_ones_have_a_colour_and_a_name(toy, monkeypatch, name, grey):
    networks = toy.with_experiment(baselines=[])
    module = report_figures()[name].module
    for where in ("style", "training"):
        monkeypatch.setattr(f"plant.paper.figures.{where}.MANY", len(networks.data.systems) - grey)
    monkeypatch.setattr(f"{module}.leading", lambda data: {"plant", "focal", "shuffled"})
    axes = drawn(networks, name).axes[-1]
    shown = {text.get_text() for text in axes.texts}
    titles = {system.title for system in networks.data.systems if not grey or system.name != "bce"}
    assert shown == titles
    assert sum(line.get_color() == "#C4C4C4" for line in axes.get_lines()) == grey
    assert (f"grey: {grey} other systems" in axes.get_xlabel()) == bool(grey)


def test_curve_of_a_network_has_the_title_of_the_variant_that_is_the_network_alone(toy):
    """Variants that differ in Stage 3 share a network, whose files stand under the first of them."""
    variants = ["plant_evidence", "plant", "focal_evidence", "bce"]
    toy = toy.with_config(
        {"variants": variants}, evidences={"all": {}},
        variants={"focal_evidence": {"finetuning": "focal_long", "evidence": "all", "title": "random init + evidence"},
                  "plant_evidence": {"pretraining": "mig", "finetuning": "focal", "evidence": "all",
                                     "title": "PLANT + evidence"}},
    )  # fmt: skip
    assert {name: system.title for name, system in toy.data.networks.items()} == {
        "plant_evidence": "PLANT", "focal_evidence": "none+focal_long", "bce": "random init, BCE",
    }  # fmt: skip
    names = {"plant_evidence": "plant", "focal_evidence": "focal", "bce": "bce"}
    histories = {new: toy.inputs.finetunings[old] for new, old in names.items()}
    toy = replace(toy, inputs=replace(toy.inputs, pretrainings={}, finetunings=histories))
    text = texts(drawn(toy, "training_curves")).splitlines()
    assert {"PLANT", "none+focal_long", "random init, BCE"} <= set(text)
    assert not {"PLANT + evidence", "random init + evidence"} & set(text)


def test_learning_over_time_begins_after_the_seconds_of_stage_1(toy):
    (axes,) = drawn(toy, "learning_over_time").axes
    thick = {line.get_color(): line for line in axes.lines if line.get_linewidth() > 1}
    assert len(thick) == len(toy.data.networks)
    look = marks(toy.data.systems)
    for name, first in (("focal", 0.0), ("plant", 20.0)):  # Stage 1 takes 20 seconds, Stage 2 70
        line = thick[look[name].colour]
        epochs = len(line.get_xdata())
        assert line.get_xdata() == pytest.approx(first + 70 * np.arange(1, epochs + 1) / epochs)
        (folder, *_) = toy.inputs.finetunings[name]
        assert pl.read_parquet(folder / "history.parquet").height == epochs


def test_formulas_in_titles_are_drawn_as_they_stand(toy):
    title = r"$\nothing{ a_b^c 5% & #1"
    odd = toy.with_config(variants={"focal": {"finetuning": "focal_long", "title": title}})
    with look():
        for entry in report_figures().values():
            figure = entry.load()(odd.data)
            figure.draw_without_rendering()
            assert title in texts(figure)
            assert not any(artist.get_parse_math() for artist in figure.findobj(mpl.text.Text))


def test_figures_import_no_pyplot():
    """pyplot keeps every figure in a global list."""
    folder = Path(__file__).parents[2] / "src" / "plant" / "paper"
    assert not [path.name for path in folder.rglob("*.py") if "pyplot" in path.read_text(encoding="utf-8")]
