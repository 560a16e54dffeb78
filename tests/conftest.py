"""For all tests: no network, one thread, the same examples every time."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import settings

from plant.ground.files import write_arrays
from plant.ground.settings import Evaluation
from plant.metrics.scores import read_scores, write_scores

settings.register_profile("house", deadline=None, derandomize=True, max_examples=50, print_blob=True)
settings.load_profile("house")

TRAINING_DOCUMENTS = 500


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


@pytest.fixture
def make():
    """(seed, attention) -> a classifier of the 6 labels of `toy` on a look-up of tokens."""
    import torch

    from plant.model.classifier import LabelClassifier

    class Lookup(torch.nn.Module):
        """A backbone that looks tokens up."""

        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(200, 16)

        def forward(self, input_ids, mask):
            return self.table(input_ids) * mask[..., None]

    def classifier(seed=0, attention="multi_head"):
        torch.manual_seed(seed)
        sizes = {"heads": 2, "pool_size": 4, "projection": 16}
        return LabelClassifier(Lookup(), n_labels=6, hidden_size=16, attention=attention, **sizes)

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


# Made-up scores: random, with ties, labels that the system cannot score, and labels without a positive.


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


@pytest.fixture(scope="session")
def case_class() -> type[Case]:
    return Case


@pytest.fixture(scope="session")
def split_writer() -> Callable[..., None]:
    return write_split


@pytest.fixture(scope="session")
def corpus_writer() -> Callable[..., Path]:
    return write_corpus


# A corpus of own rows: documents whose labels show as words.


@pytest.fixture(scope="session")
def sign_documents() -> Callable[..., dict[str, list[dict]]]:
    """Documents of each split: label l shows as the word sign{l}, 5 is on all, 6 on no training document."""

    def make(
        sizes: dict[str, int], shares: tuple[float, ...], shown: float, *, seed: int = 0, groups: bool = False
    ) -> dict[str, list[dict]]:
        random = np.random.default_rng(seed)
        made: dict[str, list[dict]] = {}
        for split, size in sizes.items():
            made[split] = []
            for i in range(size):
                labels = np.flatnonzero(random.random(5) < shares).tolist()
                words = [f"noise{w}" for w in random.integers(0, 40, size=12)]
                words += [f"sign{label}" for label in labels if random.random() < shown]
                labels += [5] if split == "train" or i else [5, 6]
                row = {"id": f"{split}{i}", "text": " ".join(random.permutation(words))}
                row["labels"] = [f"label {label}" for label in labels]
                made[split].append(row | ({"group": f"{split} patient {i // 2}"} if groups else {}))
        return made

    return make


@pytest.fixture(scope="session")
def table_corpus() -> Callable[..., Path]:
    """Build the corpus of some rows (id, text, labels), its words, and the relevance of `relevance` words per label."""
    from plant.corpus.build import build_corpus
    from plant.corpus.tokens import tokenize_corpus
    from plant.ground.settings import Relevance, Table, Words
    from plant.relevance.table import write_relevance

    def build(made: dict[str, list[dict]], folder: Path, *, relevance: int = 0, **table: str | None) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        files = {}
        for split, rows in made.items():
            files[split] = str(folder / f"raw_{split}.parquet")
            pl.DataFrame(rows).write_parquet(files[split])
        build_corpus(Table(source="table", files=files, **table), folder)
        tokenize_corpus(folder, Words(kind="words"), tokenizer=None, out=folder / "words")
        if relevance:
            out = {"parquet": folder / "mig.parquet", "arrays": folder / "mig.safetensors"}
            write_relevance(folder, folder / "words", "mig", Relevance(k=relevance), **out)
        return folder

    return build


@pytest.fixture(scope="session")
def read_reasons() -> Callable[[Path], pl.DataFrame]:
    """reasons.parquet of a system of Stage 3. Its contributions must add up to the scores in the system's files."""

    def read(folder: Path) -> pl.DataFrame:
        told, scores = pl.read_parquet(folder / "reasons.parquet"), read_scores(folder, "test")
        sums = told.group_by("document_id", "label", maintain_order=True)
        sums = sums.agg(pl.col("contribution").sum(), pl.col("score", "truth").first())
        assert (sums["contribution"] - sums["score"]).abs().max() < 1e-9
        for row in sums.iter_rows(named=True):
            place, label = scores.document_ids.index(row["document_id"]), scores.label_names.index(row["label"])
            assert row["score"] == pytest.approx(scores.dense[place, label], rel=2e-3, abs=2e-3)
            assert row["truth"] == scores.truth[place, label]
        return told

    return read


# A headless browser, driven by its own protocol over two pipes: no driver, no library, no port.

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PIPES = """import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])"""
"""The browser reads commands from 3 and writes answers to 4."""
KEYS = {"Tab": 9, "Enter": 13, " ": 32}


class Browser:
    """One page. `errors` holds what the console said and what failed."""

    def __init__(self, profile: Path) -> None:
        read, self._commands = os.pipe()
        self._answers, write = os.pipe()
        command = [sys.executable, "-c", PIPES, str(read), str(write), str(CHROMIUM), "--headless", "--no-sandbox",
                   "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={profile}"]  # fmt: skip
        self._process = subprocess.Popen(
            command, pass_fds=(read, write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._buffer, self._number, self._loaded, self.errors = b"", 0, False, []
        self._session: dict[str, str] = {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": params, **self._session}
        os.write(self._commands, json.dumps(order).encode() + b"\0")
        while (message := self._next()).get("id") != self._number:
            pass
        assert "error" not in message, message
        return message["result"]

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + 60
        while b"\0" not in self._buffer:
            assert select.select([self._answers], [], [], max(0, until - time.monotonic()))[0], "no answer in time"
            piece = os.read(self._answers, 1 << 20)
            assert piece, "the browser has ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._loaded |= message.get("method") == "Page.loadEventFired"
        if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(message["params"])
        return message

    def open(self, url: str, *, width: int, dark: bool = False, script: bool = True) -> None:
        """Load a page in a window of this width, in pixels of the style sheet."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self._loaded = False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._next()

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is, awaited."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key as a person does."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def write(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def picture(self, target: Path, *, whole: bool = False) -> None:
        """A PNG of the window, or of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        target.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        os.close(self._commands)
        self._process.terminate()
        self._process.wait(30)
        os.close(self._answers)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A page of a headless Chromium; without one the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    page = Browser(tmp_path / "browser")
    yield page
    page.close()
