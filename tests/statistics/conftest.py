"""Small systems on the same test documents, in memory and as files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from plant.evaluation.runs import Run
from plant.ground.settings import Evaluation
from plant.metrics.groups import LabelSpace
from plant.metrics.scores import Scores
from plant.metrics.thresholds import TunedThreshold

DOCUMENTS, LABELS = 30, 12
N_TRAIN = np.array([200, 120, 60, 40, 20, 12, 9, 6, 4, 2, 1, 0])


def make_scores(truth: np.ndarray, seed: int, strength: float) -> np.ndarray:
    """Scores that fp16 holds exactly, with ties; the last label has none."""
    rng = np.random.default_rng(seed)
    prior = np.log((N_TRAIN + 0.5) / 300)
    scores = np.round(8 * (prior + strength * truth + rng.normal(size=truth.shape))) / 8
    scores[:, N_TRAIN == 0] = -np.inf
    return scores.astype(np.float32)


def make_truth(seed: int, documents: int = DOCUMENTS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = rng.random((documents, LABELS)) < np.maximum(N_TRAIN / 400, 0.06)
    truth[np.arange(documents), rng.integers(LABELS, size=documents)] = True
    return truth


def make_run(scores: np.ndarray, truth: np.ndarray, threshold: float = -1.0, n_train: np.ndarray = N_TRAIN) -> Run:
    ids, names = tuple(map(str, range(len(truth)))), tuple(map(str, range(truth.shape[1])))
    space, true = LabelSpace(names, n_train, 300, Evaluation(at=(1, 3, 5))), sp.csr_array(truth)
    known = Scores(ids, names, true, true, scores.astype(np.float32), 100, 0.0)
    return Run(known, space, {"tuned": TunedThreshold(threshold, "macro_f1_present", 0.5)}.__getitem__)


@pytest.fixture
def run() -> Callable[..., Run]:
    """A run on the same test documents as every other; seed and strength make the system."""

    def make(seed: int = 0, strength: float = 2.0, documents: int = DOCUMENTS) -> Run:
        truth = make_truth(99, documents)
        return make_run(make_scores(truth, seed, strength), truth)

    return make


@pytest.fixture
def run_of() -> Callable[..., Run]:
    return make_run


@pytest.fixture
def take() -> Callable[[Run, np.ndarray], Run]:
    """The run on some of its documents (repeats allowed), at the same threshold."""

    def drawn(run: Run, rows: np.ndarray) -> Run:
        truth, ids = sp.csr_array(run.truth[rows]), tuple(map(str, rows))
        part = replace(run.scores, document_ids=ids, truth=truth, kept=truth, dense=run.scores.dense[rows])
        return Run(part, run.labels, run.thresholds)

    return drawn


@pytest.fixture(scope="session")
def write_systems(score_files) -> Callable[..., tuple[dict[str, list[Path]], Path]]:
    """Write systems, name -> (strength, seeds), and their corpus; `test` is the seed of the test documents."""

    def write(
        root: Path, strengths: dict[str, tuple[float, tuple[int, ...]]], *, test: int = 99,
        settings: Evaluation | None = None,
    ) -> tuple[dict[str, list[Path]], Path]:  # fmt: skip
        folders: dict[str, list[Path]] = {}
        for name, (strength, seeds) in strengths.items():
            for seed in seeds:
                folder = root / name / f"seed{seed}"
                folders.setdefault(name, []).append(folder)
                for split, truth in (("val", make_truth(7)), ("test", make_truth(test))):
                    scores = make_scores(truth, seed + (split == "val") * 50, strength)
                    score_files.write_split(folder, split, score_files.Case(scores, truth, N_TRAIN), settings=settings)
        return folders, score_files.write_corpus(root, N_TRAIN, DOCUMENTS)

    return write
