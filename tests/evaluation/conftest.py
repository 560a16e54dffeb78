"""Made-up scores: random, with ties, labels that the system cannot score, and labels without a positive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from plant.evaluation.scores import write_scores
from plant.files import write_arrays
from plant.settings import Evaluation

TRAINING_DOCUMENTS = 500


@dataclass(frozen=True)
class Case:
    """Scores (N, L) that fp16 holds exactly, truth (N, L), and training documents of each label."""

    scores: np.ndarray
    truth: np.ndarray
    n_train: np.ndarray


def make_case(seed: int, documents: int = 40, labels: int = 25) -> Case:
    rng = np.random.default_rng(seed)
    prior = np.minimum(0.4, 2 / np.arange(1, labels + 1))
    n_train = rng.binomial(TRAINING_DOCUMENTS, prior / 4)
    n_train[-2:] = 0
    truth = rng.random((documents, labels)) < prior
    truth[np.arange(documents), rng.integers(labels, size=documents)] = True
    truth[:, 3] = False  # a label without a positive
    scores = np.round(4 * (np.log(prior) + 2 * truth + rng.normal(size=(documents, labels)))) / 4  # ties
    scores[:, n_train == 0] = -np.inf
    return Case(scores.astype(np.float32), truth, n_train)


def write_corpus(folder: Path, n_train: np.ndarray) -> Path:
    """labels.parquet and labels.safetensors, as far as this room reads them."""
    table = pa.table({"label": names(n_train.size), "n_train": pa.array(n_train.astype(np.uint32))})
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "labels.parquet")
    write_arrays(folder / "labels.safetensors", {"split_sizes": np.array([TRAINING_DOCUMENTS, 40, 40])})
    return folder / "labels.parquet"


def names(labels: int) -> list[str]:
    return [f"label {label:03d}" for label in range(labels)]


def write_split(
    folder: Path, split: str, case: Case, *, settings: Evaluation | None = None, natural: float | None = 0.0
) -> None:
    write_scores(
        folder, split, document_ids=[f"{split} {n}" for n in range(len(case.scores))],
        label_names=names(case.truth.shape[1]), truth=sp.csr_array(case.truth), scores=case.scores,
        natural_threshold=natural, settings=settings or Evaluation(),
    )  # fmt: skip


@pytest.fixture
def case() -> Callable[..., Case]:
    return make_case


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Write a run (validation from another seed) and its corpus; returns both paths."""

    def write(
        seed: int = 0, *, test: Case | None = None, settings: Evaluation | None = None, natural: float | None = 0.0
    ) -> tuple[Path, Path]:
        test = test or make_case(seed)
        validation = make_case(seed + 1000, labels=test.truth.shape[1])
        folder = tmp_path / "run" / "seed0"
        write_split(folder, "val", validation, settings=settings, natural=natural)
        write_split(folder, "test", test, settings=settings, natural=natural)
        return folder, write_corpus(tmp_path / "corpus", test.n_train)

    return write


@pytest.fixture
def split_writer() -> Callable[..., None]:
    return write_split
