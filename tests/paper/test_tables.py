"""The tables of an experiment: the paper's notation, its arrows, and the same cells in every format."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path

import polars as pl
import pytest

from plant.ground.errors import InputError
from plant.ground.files import read_json, write_json
from plant.paper.contents import report_tables
from plant.paper.experiment.report import to_html
from plant.paper.experiment.tables import build_tables, write_tables
from plant.paper.paths import TABLE_FORMATS
from plant.paper.render import Table, TableCell, latex_escape, row_of, to_csv, to_latex, to_markdown

GOLDEN = Path(__file__).parent / "golden"
THREE = ["macro_auc", "macro_f1_present", "p@5"]


def table_of(toy, name: str) -> Table:
    return build_tables(toy.data)[name]


def ablation(toy) -> Table:
    return table_of(toy, "ablation")


def cell_of(table: Table, title: str, metric: str) -> TableCell:
    row = next(row for row in table.rows if row[0].main == title)
    return row[table.columns.index(metric)]


def texts(table: Table) -> dict[str, list[str]]:
    """First cell of a row -> the main texts of the others."""
    return {row[0].main: [cell.main for cell in row[1:]] for row in table.rows}


def test_gain_and_interval_are_the_papers_and_not_ours(toy):
    toy.rewrite("intervals", lambda t: t.with_columns(paper_gain=0.012, paper_low=0.006, paper_high=0.018))
    cell = cell_of(ablation(toy), "MIG log-odds", "macro-F1 (present)")
    assert (cell.main, cell.arrow, cell.detail) == ("57.5", "up", "(+1.2, [0.6, 1.8])")


def test_an_arrow_of_the_table_needs_the_interval_and_the_wilcoxon_test(toy):
    assert toy.data.results.filter(system="focal", metric="p@5").item(0, "wilcoxon_p") < 1e-6
    assert cell_of(ablation(toy), "random init, focal + HNM", "P@5").arrow == ""  # its interval holds 0
    assert any(cell.arrow for row in ablation(toy).rows for cell in row)
    toy.rewrite("wilcoxon", lambda t: t.with_columns(p=0.06))
    assert not any(cell.arrow for row in ablation(toy).rows for cell in row)


def test_reference_is_the_last_row_without_a_gain_and_the_best_of_each_column_is_bold(toy):
    table = ablation(toy)
    assert table.rows[-1][0].main == "PLANT (reference)"
    assert all(not cell.detail and not cell.arrow for cell in table.rows[-1])
    assert all(cell.detail for row in table.rows[:-1] for cell in row[1:])
    bold = [{row[0].main for row in table.rows if row[column].bold} for column in range(1, len(table.columns))]
    assert bold == [{"TF-IDF + MIG combined"}] * 3 + [{"MIG log-odds"}] * 2 + [{"TF-IDF + MIG combined"}] * 3


def test_the_best_of_skills_below_minus_1_is_bold_beside_a_system_without_any(toy):
    """Networks of focal loss have a Brier skill far below -1; scores without a scale have none."""
    for name, folders in toy.inputs.evaluations.items():
        skill = {"plant": -3.0, "focal": -2.0}.get(name)
        for path in (folder / "metrics.json" for folder in folders):
            write_json(path, read_json(path) | {"brier_skill": skill})
    table = ablation(toy.with_config(paper={"metrics": ["brier_skill"]}))
    assert [row[0].main for row in table.rows if row[1].bold] == ["random init, focal + HNM"]


def test_metric_without_interval_shows_the_seed_mean_and_a_note(toy):
    toy.rewrite("intervals", lambda t: t.filter(pl.col("metric") != "map"))
    table = ablation(toy)
    cell = cell_of(table, "MIG log-odds", "mAP")
    assert (cell.main, cell.detail) == ("68.8", "")
    assert any("No interval was asked for: mAP" in note for note in table.notes)


def test_value_is_the_mean_and_spread_the_sample_standard_deviation_over_seeds(toy):
    values = toy.data.metrics.filter(system="plant", metric="macro_f1_present").get_column("value")
    assert len(values) == 3  # m - .01, m, m + .01
    assert cell_of(ablation(toy), "PLANT (reference)", "macro-F1 (present)").main == f"{100 * sum(values) / 3:.1f}"
    cell = cell_of(table_of(toy, "seeds"), "PLANT", "macro-F1 (present)")
    assert (cell.main, cell.detail) == ("36.9", "± 1.0")
    assert cell_of(table_of(toy, "seeds"), "MIG log-odds", "macro-F1 (present)").detail == ""


def test_probabilities_are_means_over_seeds_and_scores_without_a_scale_have_none(toy):
    fits = [(-0.5, 0.02, 0.3), (0.1, 0.03, 0.002), (0.7, 0.04, 0.001)]  # Brier skill, log-loss, calibration error
    for folder, (skill, loss, error) in zip(toy.inputs.evaluations["plant"], fits, strict=True):
        fit = {"log_loss": loss, "calibration_error": error, "pairs": 10, "positives": 2}
        path = folder / "metrics.json"
        write_json(path, read_json(path) | {"brier_skill": skill, "micro_f1@natural": skill / 2, "calibration": fit})
    for folder in toy.inputs.evaluations["mig_log_odds"]:
        path = folder / "metrics.json"
        write_json(path, read_json(path) | {"brier_skill": None})
    table = table_of(toy, "probabilities")
    assert texts(table)["PLANT"] == ["10.0", "5.0", "–", "0.101", "0.03"]
    assert texts(table)["MIG log-odds"] == ["–"] * 5
    errors = table.data.filter(system="plant", metric="calibration_error").get_column("value").to_list()
    assert errors == [0.3, 0.002, 0.001]
    assert set(table.data.get_column("metric")) == {"brier_skill", "micro_f1@natural", "calibration_error", "log_loss"}
    assert "Only the top" not in " ".join(table.notes)
    cut = {"exactness": {"scores": "top 100 of each document", "lower_bounds": ["map"]}}
    write_json(path, read_json(path) | cut)
    notes = " ".join(table_of(toy, "probabilities").notes)
    assert "Only the top 100 scores of each document were kept: Brier skill takes the other" in notes


def test_notes_name_threshold_convention_seeds_and_the_anti_conservative_test(toy):
    notes = " ".join(ablation(toy).notes)
    assert "tuned on the validation split for macro-F1 (present) (−1.20 to −1.00 on the score scale)" in notes
    assert "labels that occur in the test split" in notes
    assert "3 training seeds" in notes
    aggregate = re.search(r"For (.*) the Wilcoxon test runs over bootstrap resamples", notes)
    assert aggregate is not None
    assert "macro-AUC" in aggregate[1]
    assert "P@5" not in aggregate[1]


def test_a_note_that_no_column_calls_for_is_left_out(toy):
    notes = " ".join(ablation(toy.with_config(paper={"metrics": ["p@5"]})).notes)
    for words in ("threshold", "Rare labels", "macro-F1", "resamples are", "Lower bounds", "No interval"):
        assert words not in notes
    path = toy.inputs.evaluations["plant"][0] / "metrics.json"
    write_json(path, read_json(path) | {"exactness": {"lower_bounds": ["map", "map/*", "rare_ap"]}})
    note = "Lower bounds, as only the top 100 scores of each document were kept: rare AP, mAP."
    assert note in ablation(toy).notes


@pytest.mark.parametrize(("weight", "kept", "lost"), [
    (0.0, "MIG log-odds", "TF-IDF + linear"), (1.0, "TF-IDF + linear", "MIG log-odds"), (0.4, None, None),
])  # fmt: skip
def test_a_sum_that_repeats_the_row_of_one_part_says_why(toy, weight, kept, lost):
    write_json(toy.inputs.evaluations["combined"][0] / "choices.json", {"weight": weight})
    notes = [note for note in ablation(toy).notes if "repeats its row" in note]
    why = (
        f"TF-IDF + MIG combined is {kept} alone here and repeats its row: the weight of {lost} that was best on the "
        "validation split is 0."
    )
    assert notes == ([why] if kept else [])


def test_interval_table_keeps_our_interval_apart_from_the_papers(toy):
    toy.rewrite("intervals", lambda t: t.with_columns(diff_low=-0.001, diff_high=0.002))
    table = table_of(toy, "intervals")
    row = next(row for row in table.rows if [cell.main for cell in row[:2]] == ["macro-F1 (present)", "MIG log-odds"])
    assert (row[3].detail, row[3].arrow, row[4].main) == ("[−0.1, 0.2]", "", "0.001")  # our interval holds 0
    assert (row[5].detail, row[5].arrow, row[6].main) == ("[18.6, 22.6]", "up", "< 0.001*")  # the paper's does not
    assert "(ours)" in table.columns[3]
    assert "(paper's)" in table.columns[5]
    starred = {row[0].main for row in table.rows if row[6].main.endswith("*")}  # tests over resamples
    assert starred == {"macro-AUC", "micro-F1", "macro-F1 (present)", "rare F1", "rare AP", "mAP"}


def test_cost_table_gives_mean_time_largest_memory_and_the_epochs_that_ran(toy):
    history = toy.inputs.finetunings["focal"][1] / "history.parquet"
    pl.read_parquet(history).head(9).write_parquet(history)  # early stopping ended one of three runs of 12
    table = table_of(toy, "cost")
    rows = texts(table)  # 20, 21, 22 s; 700 to 702 MB
    assert rows["Stage 1: mig"] == ["3", "4", "21.0 s", "702 MB", *["–"] * 3, "cpu (a processor)"]
    assert (rows["Stage 2: random init, focal + HNM"][1], rows["Stage 2: PLANT"][1]) == ("9 to 12", "12")
    assert table.data.filter(stage="Stage 2", name="focal").get_column("epochs").to_list() == [12, 9, 12]
    assert any("The energy of processors is not measured." in note for note in table.notes)
    assert table.data.filter(stage="evaluation").get_column("epochs").null_count() > 0


def test_corpus_table_has_one_column_a_split_and_ceilings_in_percent(toy):
    path = toy.inputs.corpus / "statistics.json"
    write_json(path, read_json(path) | {"ceilings": {"p@5": 0.9}})
    table = table_of(toy, "corpus")
    assert table.columns == ("Statistic", "train", "val", "test", "all")
    rows = texts(table)
    assert rows["documents"] == ["1,050"] * 3 + ["–"]
    assert rows["labels per document: median"] == ["6 (4–8)"] * 3 + ["–"]
    assert rows["highest possible P@5 (test, ×100)"] == ["–", "–", "–", "90.0"]
    assert next(iter(rows)) == "documents"
    assert table.data.filter(statistic="ceilings p@5")["value"].item() == 0.9  # the CSV holds fractions


def test_every_declared_table_is_written_and_its_csv_is_long_and_has_full_precision(toy):
    toy.rewrite("intervals", lambda t: t.with_columns(diff_low=1 / 3))
    folder = toy.folder / "tables"
    write_tables(toy.data, folder)
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.{kind}" for name in report_tables() for kind in TABLE_FORMATS
    }
    with (folder / "ablation.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 7 * 8
    assert {row["diff_low"] for row in rows} == {str(1 / 3)}
    assert set(toy.data.results.columns) <= set(rows[0])


@pytest.mark.parametrize("kind", ["md", "tex"])
def test_ablation_table_equals_its_golden_file(toy, kind):
    """After an intended change: PLANT_UPDATE_GOLDEN=1 python -m pytest tests/paper, and review the diff."""
    write_tables(toy.with_config(paper={"metrics": THREE}).data, toy.folder / "tables")
    written = (toy.folder / "tables" / f"ablation.{kind}").read_text(encoding="utf-8")
    golden = GOLDEN / f"ablation.{kind}"
    if os.environ.get("PLANT_UPDATE_GOLDEN"):
        golden.write_text(written, encoding="utf-8")
    assert written == golden.read_text(encoding="utf-8")


def test_latex_is_balanced_and_ascii(toy, assert_latex):
    for table in build_tables(toy.data).values():
        assert_latex(to_latex(table), "tabular")


@pytest.mark.parametrize(("text", "latex"), [
    (r"a_b & 50% {x} ~^\ #1 $", r"a\_b \& 50\% \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} \#1 \$"),
    ("toy† ‡ 1.0▲", r"toy\textsuperscript{\dag} \textsuperscript{\ddag} 1.0\textsuperscript{$\blacktriangle$}"),
    ("[low", "{[}low"),  # after a row's end "[" would start an argument
])  # fmt: skip
def test_latex_escapes_what_users_put_into_titles(text, latex):
    assert latex_escape(text) == latex


@pytest.mark.parametrize(("text", "shown"), [
    ("a | b", r"a \| b"), ("star *x* and _y_", r"star \*x\* and \_y\_"), ("lr <1e-3> & &lt;", r"lr \<1e-3> & \&lt;"),
    ("$x$ `y` ~z~ \\", r"\$x\$ \`y\` \~z\~ \\"), ("plant_static < 0.001", "plant_static < 0.001"),
])  # fmt: skip
def test_a_markdown_table_shows_what_users_put_into_titles(text, shown):
    """A title of `<unk>` would be taken for HTML, and not be there at all."""
    table = Table("t", "T", ("System", "F1"), (row_of(TableCell(text, bold=True), TableCell("1", "", text)),))
    assert to_markdown(table).splitlines()[-1] == f"| **{shown}** | 1 {shown} |"


def test_html_is_escaped_speaks_arrows_and_breaks_a_line_only_before_an_interval():
    cells = row_of("<script>", TableCell("1.0", "down", "(+0.5, [0.1, 0.9])"), TableCell("<", detail="[<, 9]"))
    html = to_html(Table("t", "A <b>", ("System", "F1", "P"), (cells,), pl.DataFrame()))
    assert '<span class="detail">(+0.5, <br>[0.1, 0.9])</span>' in html
    assert '<span class="detail">[&lt;, 9]</span>' in html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<caption>A &lt;b&gt;</caption>" in html
    assert 'aria-label="significant drop"' in html
    assert 'scope="row"' in html


def test_a_spreadsheet_takes_no_text_of_a_table_for_a_formula_and_every_number_stays():
    texts = ["=1+1", "+a", "-b", "@sum", "\tc", "plain", "-0.5", "+1e-3", None]
    frame = pl.DataFrame({"text": texts, "number": [-float(i) for i in range(len(texts))]})
    rows = [*csv.DictReader(io.StringIO(to_csv(frame), newline=""))]
    assert [row["text"] for row in rows] == ["'=1+1", "'+a", "'-b", "'@sum", "'\tc", "plain", "-0.5", "+1e-3", ""]
    assert [float(row["number"]) for row in rows] == frame["number"].to_list()


def truncate(toy):
    path = toy.inputs.statistics / "intervals.parquet"
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize(("damage", "message"), [
    (truncate, "expected a parquet file"),
    (lambda toy: toy.rewrite("wilcoxon", lambda t: t.drop("p")), r"wilcoxon\.parquet: expected a column 'p'"),
])  # fmt: skip
def test_a_bad_input_is_one_clear_error_and_nothing_is_written(toy, damage, message):
    damage(toy)
    with pytest.raises(InputError, match=message):
        write_tables(toy.data, toy.folder / "tables")
    assert not (toy.folder / "tables").exists()
