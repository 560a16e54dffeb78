"""The relevance files against scoring every pair, and what they must not depend on."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from plant.ground.errors import InputError
from plant.ground.seeds import generator
from plant.ground.settings import Relevance
from plant.relevance.measures import MEASURES as ALL
from plant.relevance.table import write_relevance

COLUMNS = {
    "label": pl.String, "token_id": pl.UInt32, "token": pl.String, "n_label": pl.UInt32, "n_token": pl.UInt32,
    "n_joint": pl.UInt32, "n_documents": pl.UInt32, "relevance": pl.Float32, "rank": pl.UInt32,
}  # fmt: skip

MEASURES = [measure for measure in ALL if measure != "description"]  # that one has tests of its own


def make(toy, folder: Path, measure="mig", *, compiled=True, **settings):
    """(table, arrays) of a toy corpus."""
    if not folder.exists():
        toy.write(folder)
    parquet, arrays = folder / f"{measure}.parquet", folder / f"{measure}.safetensors"
    chosen = Relevance(**({"k": 8} | settings))
    write_relevance(folder, folder / "tokens", measure, chosen, parquet=parquet, arrays=arrays, compiled=compiled)
    return pl.read_parquet(parquet), load_file(arrays)


def rows(table: pl.DataFrame, label: int) -> list[tuple]:
    return table.filter(pl.col("label") == f"label {label}").select("token_id", "n_joint", "relevance").rows()


@pytest.mark.parametrize(("sign", "special"), [("both", ()), ("positive", ()), ("both", (0, 1, 20))])
@pytest.mark.parametrize("measure", ["mig", "smoothed_mig", "pmi", "chi2", "term_frequency"])
def test_the_table_is_that_of_scoring_every_label_and_token_that_is_not_special(
    toy_corpus, oracle, tmp_path, measure, sign, special
):
    table, _ = make(replace(toy_corpus, special=special), tmp_path / "c", measure, sign=sign, k=8)
    train = [([token for token in words if token not in special], row) for words, row in toy_corpus.train]
    known = sorted({token for words, _ in train for token in words})
    for label in range(4):
        expected = oracle(train, known, label, measure=measure, k=8, sign=sign)
        assert [row[:2] for row in rows(table, label)] == [row[:2] for row in expected]
        np.testing.assert_allclose([row[2] for row in rows(table, label)], [row[2] for row in expected], atol=2**-24)


@pytest.mark.parametrize("measure", MEASURES)
def test_val_and_test_rows_have_no_influence(toy_corpus, tmp_path, measure):
    before, arrays = make(toy_corpus, tmp_path / "a", measure)
    documents, labels = toy_corpus.documents[:30] + [[29, 28, 1, 1]] * 10, toy_corpus.labels[:30] + [[0, 3, 5]] * 10
    other = replace(toy_corpus, documents=documents, labels=labels, split_sizes=(30, 2, 8))
    after, arrays_after = make(other, tmp_path / "b", measure)
    assert before.equals(after)
    assert all((arrays[name] == arrays_after[name]).all() for name in arrays)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_files_keep_their_contract(toy_corpus, tmp_path, measure):
    table, arrays = make(toy_corpus, tmp_path / "c", measure, k=8)
    assert dict(table.schema) == COLUMNS
    assert table.equals(table.sort("label", "rank")) and table.equals(
        table.sort("label", pl.col("relevance"), "token_id", descending=[False, True, False])
    )
    assert table["rank"].to_list() == list(range(1, 9)) * 4
    assert table["relevance"].is_between(0, 1).all()
    assert table.group_by("label").agg(pl.col("relevance").max())["relevance"].to_list() == [1.0] * 4
    assert (table["token"] == "t" + table["token_id"].cast(pl.String)).all()
    assert (table["n_documents"] == 30).all()
    for column, place, each in (("n_token", 0, "token_id"), ("n_label", 1, "label")):
        counts = Counter(one for document in toy_corpus.train for one in set(document[place]))
        assert table[column].to_list() == [counts[int(str(one).split()[-1])] for one in table[each]]
    assert arrays["indptr"].tolist() == [0, 8, 16, 24, 32, 32, 32]  # labels 4 and 5 have no training document
    dtypes = {name: array.dtype for name, array in arrays.items()}
    assert dtypes == {"indptr": "int64", "token_id": "int32", "relevance": "float32"}
    assert arrays["token_id"].tolist() == table["token_id"].to_list()
    assert arrays["relevance"].tolist() == table["relevance"].to_list()


@pytest.mark.parametrize("measure", ["mig", "shuffled"])
def test_the_compiled_and_the_plain_way_write_the_same_files(toy_corpus, tmp_path, measure):
    whole, arrays = make(toy_corpus, tmp_path / "c", measure)
    table, others = make(toy_corpus, tmp_path / "c", measure, compiled=False)
    assert table.equals(whole)
    assert all((others[name] == arrays[name]).all() for name in arrays)


@pytest.mark.parametrize("measure", ["mig", "pmi"])  # compiled and plain
def test_row_groups_end_where_a_label_ends(toy_corpus, tmp_path, measure):
    whole, _ = make(toy_corpus, tmp_path / "c", measure, k=8)
    cut, _ = make(toy_corpus, tmp_path / "c", measure, k=8, rows_in_memory=10)
    file = pq.ParquetFile(tmp_path / f"c/{measure}.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [16, 16]
    assert cut.equals(whole)


def test_shuffled_is_mig_after_the_label_rows_changed_places(toy_corpus, tmp_path):
    table, _ = make(toy_corpus, tmp_path / "a", "shuffled", seed=3)
    order = generator(3, "relevance", "shuffled").permutation(30)
    moved = list(toy_corpus.labels)
    for document, row in enumerate(toy_corpus.labels[:30]):
        moved[order[document]] = row
    expected, _ = make(replace(toy_corpus, labels=moved), tmp_path / "b", "mig")
    assert table.equals(expected)
    assert not table.equals(make(toy_corpus, tmp_path / "a", "mig")[0])


@pytest.mark.parametrize("sign", ["both", "positive"])
def test_constant_relevance_is_the_same_for_every_label(toy_corpus, tmp_path, sign):
    table, _ = make(toy_corpus, tmp_path / "c", "constant", k=8, sign=sign)
    lists = table.group_by("label").agg("token_id", "relevance")
    assert lists.height > 1 and lists["token_id"].n_unique() == 1
    assert set(table["relevance"]) == {1.0}


@pytest.mark.parametrize("measure", ["random", "shuffled"])
def test_the_seed_decides_the_controls(toy_corpus, tmp_path, measure):
    tables = [make(toy_corpus, tmp_path / "c", measure, seed=seed)[0] for seed in (0, 0, 1)]
    assert tables[0].equals(tables[1]) and not tables[0].equals(tables[2])


def test_random_relevance_is_blind_to_the_labels(toy_corpus, tmp_path):
    table, _ = make(toy_corpus, tmp_path / "a", "random")
    moved = replace(toy_corpus, labels=toy_corpus.labels[:30][::-1] + toy_corpus.labels[30:])
    other, _ = make(moved, tmp_path / "b", "random")
    kept = ["label", "token_id", "relevance", "rank"]
    assert table.select(kept).equals(other.select(kept))
    assert make(toy_corpus, tmp_path / "a", "random", sign="positive")[0].equals(table)


def test_a_label_keeps_every_token_where_there_are_fewer_than_k(toy_corpus, tmp_path):
    known = len({token for words, _ in toy_corpus.train for token in words})
    for measure in ("mig", "chi2", "random", "term_frequency"):
        whole, _ = make(toy_corpus, tmp_path / "c", measure, k=known)
        assert make(toy_corpus, tmp_path / "c", measure, k=known + 1000)[0].equals(whole)
        assert set(whole.group_by("label").len()["len"]) == {known}


def test_a_split_without_a_token_to_choose_is_one_clear_error(toy_corpus, tmp_path):
    with pytest.raises(InputError, match="tokens that occur in 999 or more training documents, got none"):
        make(toy_corpus, tmp_path / "c", min_documents=999)
    assert not list((tmp_path / "c").glob("*mig*"))


def test_tokens_of_another_corpus_are_refused(toy_corpus, tmp_path):
    shorter = {"documents": toy_corpus.documents[:-1], "labels": toy_corpus.labels[:-1], "split_sizes": (30, 5, 4)}
    corpus, _ = toy_corpus.write(tmp_path / "a")
    out = {"parquet": tmp_path / "x.parquet", "arrays": tmp_path / "x.safetensors"}
    for change, said in ((shorter, "expected tokens of the 40 documents"), ({"n_tokens": 20}, "a vocabulary of 20")):
        _, tokens = replace(toy_corpus, **change).write(tmp_path / said)
        with pytest.raises(InputError, match=said):
            write_relevance(corpus, tokens, "mig", Relevance(k=3), **out)
    assert not list(tmp_path.glob("*x.*"))


def test_no_training_documents_is_an_error(toy_corpus, tmp_path):
    with pytest.raises(InputError, match="expected training documents, got none"):
        make(replace(toy_corpus, split_sizes=(0, 35, 5)), tmp_path / "c")


def test_relevance_of_a_private_corpus_is_private(toy_corpus, tmp_path):
    corpus, _ = toy_corpus.write(tmp_path / "c")
    (corpus / "train.parquet").chmod(0o600)
    make(toy_corpus, corpus)
    assert {(corpus / name).stat().st_mode & 0o777 for name in ("mig.parquet", "mig.safetensors")} == {0o600}
