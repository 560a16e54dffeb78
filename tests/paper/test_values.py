"""The transcription of the paper: that it was read, not made up, and what the arithmetic says about it."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from plant.ground.errors import InputError
from plant.ground.settings import Evaluation
from plant.metrics.names import find
from plant.paper.audit.relations import RELATIONS, Check, check_all
from plant.paper.values.transcription import TRANSCRIPTION, load_values

VALUES = load_values()
CHECKS = {check.key: check for check in check_all(VALUES)}

# Rows x columns of the paper's own tables, less their dashes; averages count as a row.
NUMBERS = {
    "T2": 9 * 5, "T3": 5 * 6, "T4": 7 * 6, "T5": 8 * 6, "T6": 8 * 3, "T7": 2 * 12, "T8": 2 * 5, "T9": 9 * 10,
    "T10": 12 * 11, "T11": 9 * 10 - 2, "T12": 2 * 8 * 3,
}  # fmt: skip
GAINS = {
    "T2": 4 * 5, "T3": 6, "T4": 6, "T5": 6, "T6": 7 * 3, "T7": 0, "T8": 0, "T9": 4 * 10, "T10": 11, "T11": 10,
    "T12": 2 * 7 * 3,
}  # fmt: skip


def corrupted(tmp_path: Path, old: str, new: str) -> Path:
    """The transcription with one passage changed."""
    text = TRANSCRIPTION.read_text(encoding="utf-8")
    assert old in text
    target = tmp_path / "values.yaml"
    target.write_text(text.replace(old, new, 1), encoding="utf-8")
    return target


def check_of(source: Path, key: str) -> Check:
    return next(check for check in check_all(load_values(source)) if check.key == key)


@pytest.mark.parametrize("item", NUMBERS)
def test_every_number_of_a_table_is_transcribed(item: str) -> None:
    cells = [cell for cell in VALUES.cells.values() if cell.item == item]
    assert len(cells) == NUMBERS[item]
    gains = GAINS.get(item, 0)  # the earlier version prints none
    assert sum(cell.gain is not None for cell in cells) == gains
    without = gains if item in {"T2", "T9"} else 0  # these two print no interval
    assert sum(cell.low is not None for cell in cells) == gains - without


def test_rows_name_rows_and_columns_of_their_block_and_quoted_ones_a_publication() -> None:
    for _, block in VALUES.blocks():
        for row in block.rows:
            assert row.against in {None, "best", *(other.row for other in block.rows)}
            assert row.bold == "all" or set(row.bold) <= set(block.columns)
            assert row.cite or (row.origin or block.origin) == "own"
    own = [cell for cell in VALUES.cells.values() if cell.origin == "own"]
    assert {cell.convention for cell in own} == {None, "all"}


def test_hand_picked_cells_are_those_of_the_paper() -> None:
    cell = VALUES.cells["T12/mimic3_full/PLANT w/ MSE/p@15"]
    assert (cell.value, cell.gain, cell.low, cell.high) == tuple(map(Decimal, ("61.8", "-4.0", "-4.7", "-3.2")))
    assert (cell.arrow, cell.backbone, cell.origin) == ("down", "mistral_7b", "own")
    quoted = VALUES.cells["T5/wiki10_31k/XRR/p@5"]
    assert (str(quoted.value), quoted.origin, quoted.cite) == ("81.34", "quoted", "Xiong et al., 2023")
    assert str(VALUES.cells["T5/eurlex4k/PLANT (Ours)/p@1"].gain) == "2.20"
    drops = VALUES.within("F4/mimic3_full_and_mimic4_full/1 epoch")  # section 4 (8): 1 epoch against 10
    assert [str(cell.value) for _, cell in sorted(drops.items())] == ["-2.4", "-0.24", "-2.6"]


def test_metrics_of_result_cells_are_metrics_of_this_pipeline() -> None:
    settings = Evaluation()
    results = [cell for cell in VALUES.cells.values() if cell.item in {"T2", "T3", "T4", "T6", "T9", "T11", "T12"}]
    for cell in results:
        if cell.metric is None:
            assert (cell.column, cell.convention) == ("macro_f1", "unknown")
        else:
            assert find(cell.metric, settings).name == cell.metric


def test_every_relation_is_applied_and_no_check_has_anothers_key() -> None:
    checks = check_all(VALUES)
    assert set(Counter(check.relation for check in checks)) == set(RELATIONS)
    assert len(CHECKS) == len(checks)
    assert all(check.cells for check in checks)


@pytest.mark.parametrize(
    ("key", "holds"),
    [
        ("gain:T9/mimic3_full/Mistral-7B + PLANT/macro_auc", True),  # 98.1 - 90.8 = 7.3
        ("gain:T3/mimic4_full/PLANT (Ours)/micro_auc", True),  # 99.5 - 99.6 = -0.1
        ("gain:T5/eurlex4k/PLANT (Ours)/p@1", False),  # 90.61 - 88.12 = 2.49, printed 2.20
        ("gain:T5/eurlex4k/PLANT (Ours)/p@3", True),  # 81.35 - 78.88 = 2.47
        ("arrow:T10/mimic3_top50/PLANT (Ours)/macro_auc", False),  # [-0.01, 0.58]
        ("arrow:T10/mimic3_full/PLANT (Ours)/micro_auc", True),  # [0.02, 0.61]
        ("average:T9/mimic3_full/Avg. gain with PLANT/macro_f1", True),  # 1.25, a half: 1.3
        ("micro-f1:T11/mimic3_few/GP/micro_f1", True),  # 2 x 38.5 x 32.6 / 71.1 = 35.3
        ("micro-f1:T11/mimic3_few/PLANT (Ours)/micro_f1", False),  # 74.6, printed 71.0
        ("macro-f1:T11/mimic3_few/AGMHT/macro_f1", True),  # 2 x 17.6 x 19.9 / 37.5 = 18.7
        ("macro-f1:T11/mimic3_few/PLM-CA/macro_f1", False),  # at most 26.2, printed 26.5
        ("claim:rq1-llama-deepseek-macro-f1-3", True),  # 15.0 - 13.2 = 1.8
        ("claim:ablation-bce-macro-auc", True),  # (6.1 + 6.4) / 2 = 6.25, printed 6.2
        ("claim:under-10", False),
        ("repeated:T12/mimic4_full/PLANT (full setup)/macro_auc=T9/mimic4_full/LLaMA3-8B + PLANT/macro_auc", False),
        ("words:S1/mimic3_full/corpus/tokens_mean", False),  # (965 + 1375 + 1900) / 4 = 1060 > 709.3
        ("split:T7/mimic3_full/corpus/train_percent", True),  # 47719 / 52722 = 90.51 %
        ("split:T7/mimic3_full/corpus/documents", False),
        ("per-label:T8/wiki10_31k/corpus/documents_per_label_mean", True),  # 14146 x 18.64 / 30938 = 8.52
        ("labels:T5/eurlex4k/PLANT (Ours)/p@5", True),  # 3.51 hits, at most 5
        ("claim:awd-eurlex-p1", True),  # 89.92 - 88.41 = 1.51
        ("claim:awd-directions-over-table-2-3", False),  # 61.67 < 61.8
        ("claim:awd-wiki-p5-superior", False),  # 81.33 < 81.34
        ("claim:awd-few-micro-f1", False),  # 71.0 - 35.3 = 35.7
        ("claim:awd-rare50-macro-f1", True),  # 82.6 - 32.0 = 50.6
    ],
)
def test_relations_worked_out_by_hand(key: str, holds: bool) -> None:
    assert CHECKS[key].holds == holds


def test_three_averages_round_a_half_both_ways() -> None:
    means = {claim.id: claim for claim in VALUES.claims if claim.rule == "mean" and claim.id.startswith("ablation-")}
    assert len(means) == 21
    found = {name: sum(map(VALUES.number, claim.of)) / 2 - claim.says for name, claim in means.items()}
    assert Counter(found.values())[Decimal("-0.05")] == 8, "towards zero: all of them are drops"
    assert Counter(found.values())[Decimal("0.05")] == 7, "away from zero"
    halves = (means["ablation-focal-macro-f1"], means["ablation-term-frequency-p15"])
    assert {sum(map(VALUES.number, claim.of)) / 2 for claim in halves} == {Decimal("-3.35")}
    assert {claim.says for claim in halves} == {Decimal("-3.4"), Decimal("-3.3")}


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("values: [98.1, 99.9, 14.7, 64.1, 65.8], gains: [7.3", "values: [98.1, 99.9, 14.7, 64.1, 65.8], gains: [7.6",
         "gain:T9/mimic3_full/Mistral-7B + PLANT/macro_auc"),
        ("bold: all, values: [7.2, 0.8, 3.0, 2.2, 3.1]", "bold: all, values: [7.2, 0.8, 3.1, 2.2, 3.1]",
         "average:T2/mimic4_full/Avg. gain with PLANT/macro_f1"),
        ("values: [90.2, 98.7, 20.0", "values: [90.2, 98.7, 20.1",
         "repeated:T2/mimic4_full/Mistral-7B/macro_f1=T9/mimic4_full/Mistral-7B/macro_f1"),
        ("[[-7.2, -5.4]", "[[-7.2, -6.6]", "interval:T6/mimic4_full/Single-Stage BCE/macro_auc"),
        ("[0.08, 0.31]", "[0.31, 0.08]", "interval:T3/mimic4_full/PLANT (Ours)/macro_auc"),
        ("[30.2, 35.3, 27.9", "[30.2, 36.3, 27.9", "micro-f1:T4/mimic3_few/GP/micro_f1"),
        ("[89.54, 85.38, 81.34]", "[89.54, 85.38, 41.34]", "hits:T5/wiki10_31k/XRR/p@5"),
        ("[87.96, 78.88, 68.52]", "[87.96, 78.98, 68.52]", "versions:awd-T6/eurlex4k/XRR/p@3=T5/eurlex4k/XRR/p@3"),
        ("90.5, 3.1, 6.4]", "90.5, 3.2, 6.4]", "split:T7/mimic3_full/corpus/val_percent"),
    ],
)  # fmt: skip
def test_a_corrupted_number_is_found(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert CHECKS[key].holds
    assert not check_of(corrupted(tmp_path, old, new), key).holds


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("20.0, 57.0, 53.8]", "20.0, 57.0]", "T2/mimic4_full/Mistral-7B: expected 5 entries in each list"),
        ("values: [90.2, 98.7", "values: [90.25, 98.7", "at most 1 decimals, got 90.25"),
        ("a: T2/mimic4_full,", "a: T2/mimic3_full,", "a place that has cells"),
        ("T9/mimic3_full/LLaMA3-8B + PLANT/macro_f1, T9", "T9/mimic3_full/LLaMA/macro_f1, T9", "address of a number"),
        ("row: LLaMA3-8B + PLANT, s", "row: Mistral-7B + PLANT, s", "one cell per key"),
    ],
)
def test_a_wrong_form_is_one_clear_error(tmp_path: Path, old: str, new: str, expected: str) -> None:
    source = corrupted(tmp_path, old, new)
    with pytest.raises(InputError, match=expected.replace("[", r"\[")):
        check_all(load_values(source))


def test_no_yaml_key_is_given_twice() -> None:
    def mapping(node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            assert len(set(keys)) == len(keys), node.start_mark
        for child in node.value if isinstance(node, yaml.CollectionNode) else ():
            for part in child if isinstance(child, tuple) else (child,):
                mapping(part)

    mapping(yaml.compose(TRANSCRIPTION.read_text(encoding="utf-8"), Loader=yaml.SafeLoader))
