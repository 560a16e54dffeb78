"""The scores contract: what is written comes back, what cannot be right is refused."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors import safe_open

from plant.ground.errors import InputError
from plant.ground.settings import Evaluation
from plant.metrics.scores import read_scores, require_comparable, write_scores
from plant.metrics.top import top_labels


def write(folder, scores, truth=None, *, ids=None, labels=None, natural=0.0, names=(None, None), **settings):
    shape = scores.shape
    truth = np.eye(*shape, dtype=bool) if truth is None else truth
    write_scores(
        folder, "test", document_ids=ids or [f"document {n}" for n in range(shape[0])],
        label_names=labels or [f"label {chr(97 + c)}" for c in range(shape[1])], truth=sp.csr_array(truth),
        scores=scores, natural_threshold=natural, settings=Evaluation(at=(1,), **settings), names=names,
    )  # fmt: skip


def test_dense_scores_come_back_as_fp16_rounds_them_and_at_most_as_its_largest_value(tmp_path: Path, case) -> None:
    made = case(0)
    scores = made.scores + np.float32(1 / 3)
    scores[0, :2] = 65504, -65504
    expected = scores.astype(np.float16)
    scores[0, :2] = 1e6, -1e6
    write(tmp_path, scores, made.truth)
    read = read_scores(tmp_path, "test")
    assert np.array_equal(read.dense, expected)
    assert np.array_equal(read.truth.toarray(), made.truth)
    assert read.document_ids == tuple(f"document {n}" for n in range(40))
    assert read.label_names[:2] == ("label a", "label b")


def test_the_table_holds_the_top_scores_and_every_true_label(tmp_path: Path, case) -> None:
    made = case(1)
    write(tmp_path, made.scores, made.truth, top=5)
    table = pl.read_parquet(tmp_path / "test.scores.parquet")
    assert table.schema == {"document_id": pl.String, "label": pl.String, "score": pl.Float32, "truth": pl.Boolean}
    noted = pl.read_parquet_metadata(tmp_path / "test.scores.parquet")["plant"]  # no text can be in the files
    names = {"split", "documents", "top", "dense", "labels", "split_name", "label_space_name"}
    assert json.loads(noted).keys() == names
    for n, ((identifier,), rows) in enumerate(table.group_by("document_id", maintain_order=True)):
        assert identifier == f"document {n}"
        order = np.lexsort((np.arange(25), -made.scores[n]))
        kept = [c for place, c in enumerate(order) if made.truth[n, c] or (place < 5 and made.scores[n, c] > -np.inf)]
        assert rows["label"].to_list() == [f"label {chr(97 + c)}" for c in kept]
        assert rows["score"].to_list() == made.scores[n, kept].tolist()
        assert rows["truth"].to_list() == made.truth[n, kept].tolist()


def test_the_natural_threshold_is_in_the_metadata_of_both_files(tmp_path: Path, case) -> None:
    for natural, text in ((0.0, "0"), (None, "none"), (0.25, "0.25")):
        write(tmp_path, case(0).scores, natural=natural)
        with safe_open(tmp_path / "test.scores.safetensors", framework="numpy") as handle:
            assert handle.metadata()["natural_threshold"] == text
            assert handle.get_tensor("scores").dtype == np.float16
        assert pl.read_parquet_metadata(tmp_path / "test.scores.parquet")["natural_threshold"] == text
        assert read_scores(tmp_path, "test").natural_threshold == natural


def test_a_sparse_array_gives_the_same_table_as_the_dense_one(tmp_path: Path, case) -> None:
    made = case(2)
    finite = np.isfinite(made.scores)
    rows, columns = np.nonzero(finite)
    sparse = sp.csr_array((made.scores[finite], (rows, columns)), shape=made.scores.shape)  # stores zeros too
    write(tmp_path / "dense", made.scores, made.truth, top=4)
    write(tmp_path / "sparse", sparse, made.truth, top=4)
    tables = [pl.read_parquet(tmp_path / kind / "test.scores.parquet") for kind in ("dense", "sparse")]
    assert tables[0].equals(tables[1])
    assert not (tmp_path / "sparse" / "test.scores.safetensors").exists()
    assert read_scores(tmp_path / "sparse", "test").dense is None


def test_stored_zeros_of_a_truth_are_no_labels_and_stay_in_the_array_of_the_caller(tmp_path: Path) -> None:
    truth = sp.csr_array((np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([0, 2, 3])), shape=(2, 3))
    write_scores(
        tmp_path, "test", document_ids=["a", "b"], label_names=["x", "y", "z"], truth=truth,
        scores=np.zeros((2, 3), np.float32), natural_threshold=0.0, settings=Evaluation(at=(1,)),
    )  # fmt: skip
    expected = [[False, True, False], [False, False, True]]
    assert read_scores(tmp_path, "test").truth.toarray().tolist() == truth.toarray().tolist() == expected


def test_more_labels_than_the_limit_leave_no_dense_file(tmp_path: Path, case) -> None:
    write(tmp_path, case(0).scores)
    assert (tmp_path / "test.scores.safetensors").exists()
    write(tmp_path, case(0).scores, dense_limit=24)
    assert not (tmp_path / "test.scores.safetensors").exists()
    assert read_scores(tmp_path, "test").dense is None


@pytest.mark.parametrize(
    ("scores", "ids", "settings", "message"),
    [
        (np.array([[0.0, np.nan]]), None, {}, "1 NaN"),
        (np.array([[0.0, np.inf]]), None, {}, r"1 \+inf"),
        (np.zeros((2, 2)), ["same", "same"], {}, "1 repeated"),
        (np.zeros((2, 2)), ["only one"], {}, "1 documents x 2 labels, got 2 x 2"),
        (np.zeros((1000, 300)), None, {"memory_gb": 0.001}, "memory_gb = 0.001 GB, got 0.0012 GB for 1000 documents"),
    ],
)
def test_bad_scores_are_refused_and_nothing_is_written(tmp_path: Path, scores, ids, settings, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write(tmp_path / "out", scores, ids=ids, **settings)
    assert not (tmp_path / "out").exists()


def test_a_document_with_neither_score_nor_label_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither for document 2 of 2"):
        write(tmp_path, np.array([[0.0, 1.0], [-np.inf, -np.inf]]), np.array([[True, False], [False, False]]))


def test_missing_and_damaged_score_files_are_named(tmp_path: Path, case) -> None:
    with pytest.raises(InputError, match="expected a file"):
        read_scores(tmp_path, "test")
    path = tmp_path / "test.scores.parquet"
    path.write_bytes(b"not a table")
    with pytest.raises(InputError, match="expected a scores table"):
        read_scores(tmp_path, "test")
    pl.DataFrame({"label": ["a"]}).write_parquet(path)
    with pytest.raises(InputError, match="expected a scores table"):
        read_scores(tmp_path, "test")
    write(tmp_path, case(0).scores)
    (tmp_path / "test.scores.safetensors").write_bytes(b"\0" * 20)
    with pytest.raises(InputError, match="safetensors"):
        read_scores(tmp_path, "test")


# Scores on two splits or over two label spaces are never compared, whatever tells them apart.

TRUTH = np.array([[1, 0], [0, 1], [1, 1]], dtype=bool)


@pytest.fixture
def scored(tmp_path):
    """(folder, properties) -> scores of documents d1 to d3 for labels a and b, written and read again."""

    def make(name="one", *, truth=TRUTH, ids=("d1", "d2", "d3"), labels=("a", "b"), **changed):
        scores = np.arange(6, dtype=np.float32).reshape(3, 2)
        write(tmp_path / name, scores, truth, ids=list(ids), labels=list(labels), **changed)
        return read_scores(tmp_path / name, "test")

    return make


@pytest.mark.parametrize(
    ("one", "other"),
    [((None, None), (None, None)), (("edin", None), ("edin", "full")), (("edin", "full"), (None, None))],
)
def test_the_same_contents_can_be_compared_unless_both_are_named_otherwise(scored, one, other) -> None:
    first, second = scored(names=one), scored("two", names=other)
    assert (first.names, second.names) == (one, other)
    assert require_comparable(first, second, "here") is None


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"names": ("caml", "full")}, r"the same documents .* got two: edin \(3, \w{8}\) and caml \(3, \w{8}\)"),
        ({"names": ("edin", "top50")}, r"one label space, got two: full \(2, \w{8}\) and top50 \(2, \w{8}\)"),
        ({"ids": ["d1", "d2", "d4"]}, r"the same documents .* one without a name"),
        ({"ids": ["d1", "d3", "d2"]}, "the same documents"),
        ({"labels": ["a", "c"]}, "one label space"),
        ({"truth": ~TRUTH}, "the same true labels"),
    ],
)
def test_another_split_label_space_or_truth_is_refused(scored, changed, says: str) -> None:
    first, second = scored(names=("edin", "full")), scored("two", **changed)
    with pytest.raises(InputError, match=f"^plant and base: expected .*{says}"):
        require_comparable(first, second, "plant and base")


@given(
    arrays(np.float32, (5, 7), elements=st.one_of(st.integers(-2, 2).map(float), st.just(-np.inf))), st.integers(1, 9)
)
def test_the_best_labels_are_those_of_a_stable_sort(scores: np.ndarray, k: int) -> None:
    best = top_labels(scores, k)
    for row, found in zip(scores, best, strict=True):
        order = [c for c in sorted(range(7), key=lambda c: (-row[c], c)) if row[c] > -np.inf][:k]
        assert found.tolist() == order + [-1] * (k - len(order))
    rows, columns = np.nonzero(scores > -np.inf)
    stored = sp.csr_array((scores[rows, columns], (rows, columns)), shape=scores.shape)
    assert np.array_equal(top_labels(stored, k), best)
