"""CAML and BiGRU beside LibMultiLabel: a training epoch on the same documents, with the same sizes and start weights.

fast: this project. plain: LibMultiLabel, in an environment of its own (`OUTSIDE`). Each side trains as its users do,
with its own batches and training loop. Common are one thread, batches of 16, as many updates, dropout .2 on word
vectors, AdamW, and no validation. Before training, both must give the same loss on the same 16 documents of one length,
so that no score depends on padding.

The documents are made up, in the sizes of US bills. The variable LIBMULTILABEL_CORPUS names a file to read instead, in
LibMultiLabel's form: a line a document, with labels, tab, text; both parted by spaces. LIBMULTILABEL_WORDS is how many
words of a document are read.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch._dynamo  # what a first optimiser loads: both sides before the clock starts
from run import Job

MAKE = "python3.11 -m venv lml; lml/bin/pip install 'libmultilabel[nn]' 'setuptools<81'"
OUTSIDE = ("LIBMULTILABEL_PYTHON", f"{MAKE}; export LIBMULTILABEL_PYTHON=$PWD/lml/bin/python")
"""Variable with the Python of the other environment, and how to make it."""
BATCH, POSITIVES, WORDS, EMBEDDING, DROPOUT, RATE, DECAY = 16, 10, 13_769, 100, 0.2, 1e-3, 0.01
LONGEST = int(os.environ.get("LIBMULTILABEL_WORDS", "256"))
RARE = 3  # a word counts if so many documents of a given file have it
SIZES = {"caml": {"hidden": 50, "kernel": 9}, "bigru": {"hidden": 512}}
SMALL = {"documents": 32, "labels": 50}
JOBS = {
    f"{title}, epoch of {documents:,} documents": Job(
        "epoch", {"system": system, "documents": documents, "labels": 1040}, {"system": system, **SMALL},
        outside=OUTSIDE, turns=2,
    )
    for title, system, documents in (("CAML", "caml", 1024), ("BiGRU", "bigru", 256))
}  # fmt: skip
_OURS = ("backbone.embedding.weight", "backbone.network.{}", "attention.embeddings", "head")
_THEIRS = {
    "caml": ("embedding.weight", "conv", "Q.weight", "output"),
    "bigru": ("embedding.embedding.weight", "encoder.rnn", "attention.attention.weight", "output.output"),
}
_SAME = {
    system: dict(zip((name.format(part) for name in _OURS), _THEIRS[system], strict=True))
    for system, part in (("caml", "convolution"), ("bigru", "recurrent"))
}
"""Start of the name of a weight here -> there (docs/evidence/beside-libmultilabel.md)."""


class Texts(NamedTuple):
    """Documents: the ids of their words and of their labels, both from 0, and how many words and labels there are."""

    words: list[np.ndarray]
    true: list[np.ndarray]
    vocabulary: int
    labels: int


Start = tuple[Callable[[Texts], float], Callable[[], None]]
"""A network before training: the mean loss of documents of one length, and what trains it on all texts."""


def epoch(way: str, system: str, documents: int, labels: int) -> Callable[[], float]:
    """An epoch; its result is the loss of some documents before training."""
    path = os.environ.get("LIBMULTILABEL_CORPUS")
    texts = read_texts(Path(path), documents) if path else made_up(documents, labels)
    longest = sorted(range(len(texts.words)), key=lambda place: -len(texts.words[place]))[:BATCH]
    width = len(texts.words[longest[-1]])
    same = Texts([texts.words[i][:width] for i in longest], [texts.true[i] for i in longest], 0, 0)
    loss, train = (theirs if way == "plain" else ours)(system, texts)
    first = loss(same)

    def work() -> float:
        train()
        return first

    return work


def made_up(documents: int, labels: int) -> Texts:
    """Documents of random words, as long as US bills and with as many labels each."""
    random = np.random.default_rng(0)
    lengths = random.normal(200, 50, documents).clip(30, LONGEST).astype(np.int64)
    words = [np.minimum(random.zipf(1.2, length), WORDS) - 1 for length in lengths]
    true = [np.sort(random.permutation(labels)[:POSITIVES]) for _ in range(documents)]
    return Texts(words, true, WORDS, labels)


def read_texts(path: Path, documents: int) -> Texts:
    """The first documents of a file, with all their labels and the words that are not rare."""
    lines = path.read_text(encoding="utf-8").splitlines()[:documents]
    labelled, texts = zip(*(line.rsplit("\t", 1) for line in lines), strict=True)
    split = [text.lower().split()[:LONGEST] for text in texts]
    counts = Counter(word for words in split for word in set(words))
    ids = {word: i for i, word in enumerate(sorted(word for word, count in counts.items() if count >= RARE))}
    names = {name: i for i, name in enumerate(sorted({name for each in labelled for name in each.split()}))}
    words = [np.array([ids[word] for word in each if word in ids], dtype=np.int64) for each in split]
    true = [np.array(sorted(names[name] for name in each.split()), dtype=np.int64) for each in labelled]
    return Texts(words, true, len(ids), len(names))


def ours(system: str, texts: Texts) -> Start:
    """The network of this project in its training loop."""
    from plant.finetuning.finetune import batch_loss, parameter_groups
    from plant.ground.settings import Finetuning, WordNetwork
    from plant.model.batches import Corpus, shuffled_batches
    from plant.model.classifier import LabelClassifier
    from plant.model.determinism import set_up
    from plant.model.fitting import Task, TrainingRun, fit
    from plant.model.registry import build_backbone

    set_up({"device": "cpu", "threads": 1})  # as every job does
    sizes = SIZES[system]
    encoder = {"encoder": "bigru"} if system == "bigru" else {"encoder": "cnn", "kernel_sizes": (sizes["kernel"],)}
    settings = WordNetwork.model_validate({
        "kind": "word_network", "attention": "per_label", "embedding_size": EMBEDDING, "hidden_size": sizes["hidden"],
        "dropout": DROPOUT, **encoder,
    })  # fmt: skip
    backbone = build_backbone(settings, "", vocabulary=texts.vocabulary, device=torch.device("cpu"))
    model = LabelClassifier(backbone, n_labels=texts.labels, hidden_size=sizes["hidden"], attention="per_label")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(start_of(name, tuple(parameter.shape)))
    recipe = Finetuning(
        epochs=1, batch_size=BATCH, accumulation=1, learning_rate=RATE, head_learning_rate=RATE,
        weight_decay=DECAY, patience=None, gamma=0, epsilon=0, hard_negatives=None,
    )  # fmt: skip

    def corpus_of(words: list[np.ndarray], true: list[np.ndarray]) -> Corpus:
        offsets, indptr = (np.cumsum([0, *map(len, rows)]) for rows in (words, true))
        every = {"train": (0, len(words))}
        return Corpus(np.concatenate(words).astype(np.int32), offsets, indptr, np.concatenate(true), every)

    @torch.no_grad()
    def loss(some: Texts) -> float:
        model.eval()
        total, weight = batch_loss(model, corpus_of(some.words, some.true), np.arange(len(some.words)), recipe)
        return float(total / weight)

    def train() -> None:
        corpus = corpus_of(texts.words, texts.true)
        done = count(1.0)  # what is monitored rises, so the weights of the last epoch are kept
        task = Task(
            name="Stage 2", groups=parameter_groups(model, recipe), validate=lambda: {"number": next(done)},
            monitor="number", loss=lambda batch, _: batch_loss(model, corpus, batch, recipe),
            batches=lambda n: shuffled_batches(corpus, corpus.documents("train"), BATCH, seed=0, epoch=n),
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            fit(model, task, recipe, TrainingRun(0, Path(folder), ""))

    return loss, train


def theirs(system: str, texts: Texts) -> Start:
    """The network of LibMultiLabel with its data loader and trainer. Its word id 0 is padding."""
    from libmultilabel.nn.data_utils import PAD, UNK, get_dataset_loader
    from libmultilabel.nn.nn_utils import init_model, init_trainer, set_seed

    warnings.simplefilter("ignore")  # of its libraries; they fill the screen
    set_seed(0)
    sizes, classes = SIZES[system], [f"{label:06d}" for label in range(texts.labels)]  # it orders them as texts
    name, config = "BiGRULWAN", {"rnn_dim": sizes["hidden"]}
    if system == "caml":
        name, config = "CAML", {"filter_sizes": [sizes["kernel"]], "num_filter_per_size": sizes["hidden"]}
    model = init_model(
        name, config | {"embed_dropout": DROPOUT}, classes, torch.zeros(texts.vocabulary + 1, EMBEDDING),
        learning_rate=RATE, optimizer="adamw", weight_decay=DECAY, silent=True,
    )  # fmt: skip
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            own = next((name.replace(b, a, 1) for a, b in _SAME[system].items() if name.startswith(b)), None)
            if own == "backbone.embedding.weight":
                parameter[1:] = start_of(own, (texts.vocabulary, EMBEDDING))
            elif own is not None:
                parameter.copy_(start_of(own, tuple(parameter.shape)))
    known = {PAD: 0, UNK: 0} | {str(i): i + 1 for i in range(texts.vocabulary)}

    def loader(some: Texts, *, shuffle: bool = False, size: int = BATCH) -> Any:
        items = [
            {"text": list(map(str, words)), "label": [classes[label] for label in labels]}
            for words, labels in zip(some.words, some.true, strict=True)
        ]
        return get_dataset_loader(items, classes, torch.device("cpu"), LONGEST, size, shuffle, 0, word_dict=known)

    every = loader(texts, shuffle=True)

    @torch.no_grad()
    def loss(some: Texts) -> float:
        model.eval()
        return float(model.shared_step(next(iter(loader(some, size=len(some.words)))))[0])

    def train() -> None:
        model.train()  # its trainer leaves the mode as it is, and `loss` has switched dropout off
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # a checkpoint is written there
            init_trainer("", epochs=1, silent=True, use_cpu=True, save_checkpoints=False).fit(model, every)

    return loss, train


def start_of(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The weight of this name before training: the same in both environments."""
    random = np.random.default_rng([zlib.crc32(name.encode()), 0])
    return torch.from_numpy(random.standard_normal(shape, dtype=np.float32) * 0.05)
