"""For all tests: no network, one thread, the same examples every time."""

import os

os.environ.update(
    {
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
)  # before any of these libraries is imported

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True, max_examples=50, print_blob=True)
settings.load_profile("house")


@pytest.fixture
def toy():
    """30 documents of 3 to 20 tokens, 6 labels: token 10 + l shows label l."""
    random = np.random.default_rng(0)
    documents, labels = [], []
    for _ in range(30):
        chosen = np.sort(random.choice(6, size=random.integers(1, 3), replace=False))
        noise = random.integers(20, 200, size=random.integers(2, 18))
        documents.append(random.permutation(np.concatenate([noise, 10 + chosen])))
        labels.append(chosen)
    offsets = np.concatenate([[0], np.cumsum([len(d) for d in documents])])
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in labels])])
    splits = {"train": (0, 20), "val": (20, 25), "test": (25, 30)}
    from plant.model.batches import Corpus

    return Corpus(np.concatenate(documents).astype(np.int32), offsets, indptr, np.concatenate(labels), splits)
