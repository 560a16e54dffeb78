"""Scores on two splits or over two label spaces are never compared, whatever told them apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from plant.ground.errors import InputError
from plant.ground.settings import Evaluation
from plant.metrics.scores import Scores, read_scores, require_comparable, write_scores

IDS, LABELS = ["d1", "d2", "d3"], ["a", "b"]
TRUTH = np.array([[1, 0], [0, 1], [1, 1]], dtype=bool)


@pytest.fixture
def scores(tmp_path: Path) -> Callable[..., Scores]:
    """Scores that were written and read again, with some of their properties changed."""

    def make(name: str = "one", split: str = "test", **changed: Any) -> Scores:
        ids, labels = changed.get("ids", IDS), changed.get("labels", LABELS)
        truth = sp.csr_array(changed.get("truth", TRUTH))
        write_scores(
            tmp_path / name, split, document_ids=ids, label_names=labels, truth=truth,
            scores=np.arange(len(ids) * len(labels), dtype=np.float32).reshape(len(ids), -1), natural_threshold=0.0,
            settings=Evaluation(top=5, at=(1, 3, 5)), names=changed.get("names", (None, None)),
        )  # fmt: skip
        return read_scores(tmp_path / name, split)

    return make


@pytest.mark.parametrize(
    ("one", "other"),
    [((None, None), (None, None)), (("edin", None), ("edin", "full")), (("edin", "full"), (None, None))],
)
def test_the_same_contents_can_be_compared_unless_both_are_named_otherwise(scores, one, other) -> None:
    first, second = scores(names=one), scores("two", names=other)
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
def test_another_split_label_space_or_truth_is_refused(scores, changed, says: str) -> None:
    first, second = scores(names=("edin", "full")), scores("two", **changed)
    with pytest.raises(InputError, match=says) as caught:
        require_comparable(first, second, "plant and base")
    assert "plant and base" in str(caught.value)


def test_files_without_names_are_still_read(scores, tmp_path: Path) -> None:
    before = scores(names=("edin", "full"))
    path = tmp_path / "one" / "test.scores.parquet"
    table = pq.read_table(path)
    metadata = table.schema.metadata
    details = {key: value for key, value in json.loads(metadata[b"plant"]).items() if not key.endswith("_name")}
    pq.write_table(table.replace_schema_metadata({**metadata, b"plant": json.dumps(details)}), path)
    after = read_scores(tmp_path / "one", "test")
    assert after.names == (None, None)
    assert after.document_ids == before.document_ids
