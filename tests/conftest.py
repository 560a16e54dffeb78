"""For all tests: no network, one thread, the same examples every time."""

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
from types import SimpleNamespace
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    MPLBACKEND="Agg",
    OMP_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
)  # before any of these libraries is imported

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
import yaml
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from toys import both_devices, corpus_files, indicators, literal_logits, make, relevance_file, torch_as_it_was, toy  # noqa: F401 (fixtures)

from plant.ground.files import write_arrays
from plant.ground.settings import Evaluation
from plant.metrics.scores import read_scores, write_scores


@pytest.fixture(autouse=True)
def subnormal_numbers():
    """Keep numbers below 1e-38: a job that ran inside a test made them 0 (`plant.model.determinism`)."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


@pytest.fixture
def extend() -> Iterator[Callable[[Any, Path], None]]:
    """A function that adds a folder of modules to a package, until the end of the test."""
    added: list[tuple[list[str], str]] = []

    def add(package: Any, folder: Path) -> None:
        package.__path__.append(str(folder))
        added.append((package.__path__, str(folder)))

    yield add
    for path, folder in added:
        path.remove(folder)


settings.register_profile("house", deadline=None, derandomize=True, max_examples=50, print_blob=True)
settings.load_profile("house")

ROOT = Path(__file__).resolve().parents[1]
TRAINING_DOCUMENTS = 500


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


def write_corpus(folder: Path, n_train: np.ndarray, documents: int = 40) -> Path:
    """The files of a corpus, as far as metrics and statistics read them. Each test document is a group of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    table = {"label": names(n_train.size), "n_train": n_train.astype(np.uint32)}
    pl.DataFrame(table).write_parquet(folder / "labels.parquet")
    pl.DataFrame({"group_id": list(map(str, range(documents)))}).write_parquet(folder / "test.parquet")
    write_arrays(folder / "labels.safetensors", {"split_sizes": np.array([TRAINING_DOCUMENTS, 40, documents])})
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
def score_files() -> SimpleNamespace:
    """How a run is written: `Case`, `write_split` and `write_corpus`."""
    return SimpleNamespace(Case=Case, write_split=write_split, write_corpus=write_corpus)


# A corpus of own rows: documents whose labels show as words.


@pytest.fixture(scope="session")
def sign_documents() -> Callable[..., dict[str, list[dict]]]:
    """Documents of each split: label l shows as the word sign{l}, 5 is on all, 6 on no training document."""

    def documents(
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

    return documents


@pytest.fixture(scope="session")
def table_corpus() -> Callable[..., Path]:
    """Build the corpus of some rows (id, text, labels), its words, and the relevance of `relevance` words per label."""
    from plant.corpus.build import build_corpus
    from plant.corpus.tokens import tokenize_corpus
    from plant.ground.settings import OwnTable, Relevance, Words
    from plant.relevance.table import write_relevance

    def build(made: dict[str, list[dict]], folder: Path, *, relevance: int = 0, **table: str | None) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        files = {}
        for split, rows in made.items():
            files[split] = str(folder / f"raw_{split}.parquet")
            pl.DataFrame(rows).write_parquet(files[split])
        build_corpus(OwnTable(source="table", files=files, **table), folder)
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


# The pipeline as users start it.


def start(folder: Path, config: dict, *arguments: str, cores: str = "2", **options) -> subprocess.Popen:
    """Snakemake in `folder` on `config`, in a session of its own."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder,
               "--configfile", path, "--cores", cores, *arguments]  # fmt: skip
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **options}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, start_new_session=True, **options)


def run(folder: Path, config: dict, *arguments: str, cores: str = "2") -> subprocess.CompletedProcess:
    process = start(folder, config, *arguments, cores=cores)
    said, _ = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said)


@pytest.fixture(scope="session")
def snakemake() -> Callable[..., subprocess.CompletedProcess]:
    """(folder, config, *arguments, cores) -> the run; stdout holds both streams."""
    return run


@pytest.fixture(scope="session")
def start_snakemake() -> Callable[..., subprocess.Popen]:
    """The same without waiting for its end."""
    return start


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
