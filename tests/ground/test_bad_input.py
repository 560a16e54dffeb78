"""Every kind of bad input that the project promises to meet with one clear error, and the test that holds it."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CORPUS = "corpus/test_bad_input.py"
PROMISES = {
    "missing file": (CORPUS, "notes missing"),
    "wrong file (III for IV)": (CORPUS, "MIMIC-III folder for IV"),
    "wrong file (IV for III)": (CORPUS, "MIMIC-IV folder for III"),
    "missing column": (CORPUS, "column missing"),
    "truncated .gz": (CORPUS, "truncated gz"),
    "empty corpus": (CORPUS, "empty table"),
    "a document without text": (CORPUS, "text missing"),
    "a document without labels": ("corpus/test_build.py", "test_a_document_without_labels_is_dropped_and_counted"),
    "codes that lost their leading zeros": (CORPUS, "codes read as integers"),
    "duplicate ids": (CORPUS, "duplicate ids"),
    "unknown split ids": (CORPUS, "unknown split ids"),
    "a patient in two splits": (CORPUS, "patient in two splits"),
    "labels in test that are absent from train": (
        "corpus/test_build.py",
        "test_labels_of_test_that_train_lacks_are_kept_and_counted",
    ),
    "k larger than the vocabulary": (
        "relevance/test_table.py",
        "test_a_split_without_a_token_to_choose_is_one_clear_error",
    ),
    "a misspelt config key": (
        "ground/test_settings.py",
        "test_a_misspelt_key_is_answered_with_the_nearest_of_its_section",
    ),
    "a value out of range": ("ground/test_settings.py", "test_a_value_that_cannot_be_is_refused"),
    "an unknown dataset, backbone or variant": (
        "ground/test_settings.py",
        "test_a_name_that_nothing_declares_is_refused",
    ),
    "an unknown metric": ("workflow/test_workflow.py", "test_an_unknown_metric_stops_before_the_first_job"),
    "a backbone folder without tokenizer": ("model/test_backbone.py", "test_a_folder_without_a_tokenizer_is_refused"),
    "LoRA targets that match nothing": ("model/test_backbone.py", "test_lora_targets_that_match_nothing_are_refused"),
    "a NaN loss": (
        "model/test_fitting.py",
        "test_a_loss_that_is_not_a_number_stops_with_epoch_and_step_and_keeps_the_checkpoint",
    ),
    "not enough memory for the dense scores": ("metrics/test_scores.py", "test_memory_is_refused_before_it_is_taken"),
    "an interrupted run": ("model/test_fitting.py", "test_a_resumed_run_has_the_bits_of_an_uninterrupted_one"),
    "one error and no traceback from a script": (
        "ground/test_commandline.py",
        "test_an_input_error_is_one_line_without_a_traceback_and_exit_status_2",
    ),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_names_a_test_that_exists(promise):
    file, name = PROMISES[promise]
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    cases = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert name in functions | cases
