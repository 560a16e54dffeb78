"""Tables 7 and 8: sizes from statistics.json, the ceilings of P@k, and the sizes that the config expects."""

from __future__ import annotations

import pytest

from plant.ground.files import write_json
from plant.paper.grid.corpus import TITLES, statistics_of
from plant.paper.grid.tables import to_frame, to_page


def put(world, dataset: str, **changes) -> None:
    record = world.statistics() | changes
    write_json(world.paths[f"{dataset}_mistral_7b"].corpus / "statistics.json", record)


def test_statistics_of_the_corpus_by_hand(world):
    found = statistics_of(world.statistics(700))  # 700 + 100 + 200 documents, 6 assignments each, 50 labels
    assert found == {
        "documents": 1000, "patients": 970, "labels": 50, "labels_per_document_median": 6, "labels_per_document_q1": 4,
        "labels_per_document_q3": 8, "words_median": 80, "words_q1": 60, "words_q3": 120, "train_percent": 70,
        "val_percent": 10, "test_percent": 20, "train_documents": 800, "test_documents": 200,
        "labels_per_document_mean": 6, "documents_per_label_mean": 96,
    }  # fmt: skip
    assert found.keys() == TITLES.keys()


def test_a_size_is_judged_as_it_is_printed(world):
    put(world, "eurlex4k", labels=3956)
    cells = {row["column"]: row for row in world.frame("table_8").filter(kind="value").iter_rows(named=True)
             if row["dataset"] == "eurlex4k"}  # fmt: skip
    assert (cells["labels"]["ours"], cells["labels"]["verdict"]) == (3956, "within")
    assert cells["train_documents"]["verdict"] == "below"
    assert cells["labels_per_document_mean"]["verdict"] == "above"


def test_a_claim_above_the_ceiling_is_out_of_reach(world):
    put(world, "eurlex4k", ceilings={"p@1": 1.0, "p@3": 0.9, "p@5": 0.6, "p@15": 0.2})
    found = world.frame("table_8").filter(dataset="eurlex4k", kind="ceiling")
    assert dict(found.select("column", "verdict").iter_rows()) == {
        "p@1": "reachable", "p@3": "reachable", "p@5": "out of reach"
    }  # fmt: skip
    assert found.filter(column="p@5").select("paper", "ours").row(0) == (70.24, 60.0)


@pytest.mark.parametrize(("ceiling", "verdict"), [(0.7024, "reachable"), (0.70235, "reachable"), (0.7, "out of reach")])
def test_a_ceiling_that_rounds_to_the_claim_lets_it_stand(world, ceiling, verdict):
    put(world, "eurlex4k", ceilings={"p@5": ceiling})
    assert world.frame("table_8").filter(kind="ceiling").get_column("verdict").to_list() == [verdict]


def test_ceilings_and_expected_sizes_are_not_counted_as_verdicts(world):
    put(world, "eurlex4k")
    sheet = world.sheet("table_8")
    assert sheet.summary[1].startswith("eurlex4k: 5 cells:")
    sizes = to_frame(sheet).filter(kind="size", dataset="eurlex4k")
    assert dict(sizes.select("column", "verdict").iter_rows()) == {"labels": "equal", "train": "equal"}
    put(world, "eurlex4k", expected={"test": [3865, 3864]})
    assert "| test: expected by the config, found | 3,865 | 3,864 | **differs** |" in to_page(world.sheet("table_8"))


def test_table_7_holds_the_sizes_that_the_text_prints_too(world):
    put(world, "mimic3_few", labels=689)
    rows = world.frame("table_7").filter(dataset="mimic3_few", column="labels", kind="value")
    assert rows.select("paper", "ours", "verdict").row(0) == (685.0, 689.0, "above")
