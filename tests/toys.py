"""Fixtures of a toy: its corpus, classifier and relevance, and the oracle of label attention."""

import numpy as np
import pytest


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
    from plant.model.batches import Corpus

    return Corpus.of(documents, labels, splits={"train": 20, "val": 5, "test": 5})


@pytest.fixture(scope="session")
def corpus_files():
    """Write the files of a corpus and of its tokens: split -> (input ids, labels) of each document."""
    import polars as pl

    from plant.ground.files import write_arrays
    from plant.model.batches import joined

    def write(folder, documents, names, descriptions=None):
        rows = [row for part in documents.values() for row in part]
        ids, offsets = joined([tokens for tokens, _ in rows])
        numbers = {
            split: [[names.index(label) for label in own] for _, own in part] for split, part in documents.items()
        }
        indices, indptr = joined([own for part in numbers.values() for own in part])
        counts = np.array([np.bincount(joined(part)[0], minlength=len(names)) for part in numbers.values()])
        sizes = np.array([len(part) for part in documents.values()])
        arrays = {"indptr": indptr, "indices": indices, "split_sizes": sizes, "counts": counts}
        write_arrays(folder / "labels.safetensors", arrays)
        table = {"label": names, "description": descriptions or [None] * len(names), "n_train": counts[0]}
        pl.DataFrame(table, schema_overrides={"description": pl.String}).write_parquet(folder / "labels.parquet")
        for split, part in documents.items():
            ids_of = [f"{split}{i}" for i in range(len(part))]
            table = {"document_id": ids_of, "group_id": ids_of, "text": "", "labels": [own for _, own in part]}
            pl.DataFrame(table).write_parquet(folder / f"{split}.parquet")
        spans = {"starts": np.zeros_like(ids), "ends": np.ones_like(ids)}
        write_arrays(folder / "tokens.safetensors", {"input_ids": ids, "offsets": offsets, **spans})
        return folder

    return write


@pytest.fixture(scope="session")
def relevance_file():
    """Write {(label of the full list, token): relevance} as the relevance room does."""
    from plant.ground.files import write_arrays

    def write(path, rows, labels=9):
        order = sorted(rows, key=lambda pair: (pair[0], -rows[pair], pair[1]))
        counts = np.bincount([label for label, _ in order], minlength=labels)
        token, value = [token for _, token in order], [rows[pair] for pair in order]
        arrays = {"token_id": np.array(token, np.int32), "relevance": np.array(value, np.float32)}
        write_arrays(path, {"indptr": np.concatenate([[0], np.cumsum(counts)]), **arrays})
        return path

    return write


def lookup(words=200, size=16):
    """A backbone that looks tokens up."""
    import torch

    class Lookup(torch.nn.Module):
        hidden_size = size

        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(words, size)

        def forward(self, input_ids, mask):
            return self.table(input_ids) * mask[..., None]

        def place(self, device):
            return self.to(device)

    return Lookup()


@pytest.fixture
def make():
    """(seed, attention) -> a classifier of the 6 labels of `toy` on a look-up of tokens."""
    import torch

    from plant.model.classifier import LabelClassifier

    def classifier(seed=0, attention="multi_head"):
        torch.manual_seed(seed)
        sizes = {"heads": 2, "pool_size": 4, "projection": 16}
        return LabelClassifier(lookup(), n_labels=6, hidden_size=16, attention=attention, **sizes)

    return classifier


@pytest.fixture
def torch_as_it_was(monkeypatch):
    """Leave torch's switches and the workspace of cuBLAS as they were."""
    import torch

    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "left alone")
    threads, cudnn = torch.get_num_threads(), torch.backends.cudnn.deterministic
    yield
    torch.set_num_threads(threads)
    torch.backends.cudnn.deterministic = cudnn
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def indicators():
    """T_l of the labels of `toy`: token 10 + l with relevance 1, and twenty other tokens below it."""
    from plant.pretraining.lists import TopTokens

    random = np.random.default_rng(0)
    noise = np.stack([random.choice(np.arange(20, 200), 20, replace=False) for _ in range(6)])
    tokens = np.concatenate([10 + np.arange(6)[:, None], noise], 1)
    relevance = np.tile(np.linspace(1, 0.05, 21, dtype=np.float32), (6, 1))
    return TopTokens.from_csr(np.arange(7) * 21, tokens.ravel(), relevance.ravel(), k=100, vocabulary=200)


@pytest.fixture(params=["document by document", "padded batch"])
def both_devices(request, monkeypatch):
    """Label attention as on a CPU, and as on a GPU."""
    if request.param == "padded batch":
        monkeypatch.setattr("plant.model.classifier.one_by_one", lambda _: False)


@pytest.fixture(scope="session")
def literal_logits():
    """Section 2 of the paper word for word, every matrix that it names: the oracle of all label attention.

    (classifier, H (B, n, h), mask (B, n) or None, bias (B, |L|, n) or None) -> logits (B, |L|). Without a mask padding
    is attended to; a bias is added to the scores of every head (choice C26).
    """
    import torch

    def logits(classifier, hidden, mask, bias=None):
        attention, head = classifier.attention, classifier.head
        batch, n, h = hidden.shape
        heads, d = attention.heads, h // attention.heads
        q = attention.query(attention.embeddings).view(-1, heads, d)  # (L, G, d)
        k = attention.key(hidden).view(batch, n, heads, d)
        v = attention.value(hidden).view(batch, n, heads, d)
        scores = torch.einsum("lgd,bngd->bgln", q, k) / d**0.5
        if bias is not None:
            scores = scores + bias[:, None]
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        s = scores.softmax(-1)
        a = attention.output(torch.einsum("bgln,bngd->blgd", s, v).reshape(batch, -1, h))  # A (B, L, h)
        a_boost = head.boost_add + a * head.boost_mul
        pooled = torch.nn.functional.adaptive_avg_pool1d(a_boost, head.project.in_features)  # (B, L, p)
        return head.project(pooled).squeeze(-1)

    return logits
