"""CAML and BiGRU beside LibMultiLabel: a training epoch on the same documents, with the same sizes and start weights.

fast: this project. plain: LibMultiLabel, in an environment of its own (`OUTSIDE`). Both have one thread, batches of 16,
dropout .2 on word vectors and AdamW. Of LibMultiLabel its network, its loss and its optimiser run, without the trainer
around them. Both must give the same loss on the first batch, whose documents have one length, so that no score depends
on padding. Documents are made up; sizes are those of US bills.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from run import Job

MAKE = "python3.11 -m venv lml; lml/bin/pip install 'libmultilabel[nn]' 'setuptools<81'"
OUTSIDE = ("LIBMULTILABEL_PYTHON", f"{MAKE}; export LIBMULTILABEL_PYTHON=$PWD/lml/bin/python")
"""Variable with the Python of the other environment, and how to make it."""
BATCH, POSITIVES, WORDS, LONGEST, EMBEDDING, DROPOUT, RATE, DECAY = 16, 10, 13_769, 256, 100, 0.2, 1e-3, 0.01
SIZES = {"caml": {"hidden": 50, "kernel": 9}, "bigru": {"hidden": 512}}
SMALL = {"documents": 32, "labels": 50}
JOBS = {
    f"{title}, epoch of {documents} documents, 1,040 labels": Job(
        "epoch", {"system": system, "documents": documents, "labels": 1040}, {"system": system, **SMALL},
        outside=OUTSIDE, turns=2,
    )
    for title, system, documents in (("CAML", "caml", 320), ("BiGRU", "bigru", 64))
}  # fmt: skip
_SAME = {
    "caml": {
        "backbone.embedding.weight": "embedding.weight", "backbone.network.convolution": "conv",
        "attention.embeddings": "Q.weight", "head": "output",
    },
    "bigru": {
        "backbone.embedding.weight": "embedding.embedding.weight", "backbone.network.recurrent": "encoder.rnn",
        "attention.embeddings": "attention.attention.weight", "head": "output.output",
    },
}  # fmt: skip
"""Start of the name of a weight here -> there (docs/explanation/encoders.md)."""


def epoch(way: str, system: str, documents: int, labels: int) -> Callable[[], float]:
    """An epoch; its result is the loss on the first batch before training."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    lengths = random.normal(200, 50, documents).clip(30, LONGEST).astype(np.int64)
    lengths[:BATCH] = LONGEST
    words = [np.minimum(random.zipf(1.2, length), WORDS) - 1 for length in lengths]
    true = random.integers(0, labels, (documents, POSITIVES))
    make = theirs if way == "plain" else ours
    model, optimiser, loss_of = make(system, words, true, labels)
    model.eval()
    with torch.no_grad():
        first = float(loss_of(np.arange(BATCH)))

    def work() -> float:
        model.train()
        for start in range(0, documents, BATCH):
            loss_of(np.arange(start, min(documents, start + BATCH))).backward()
            optimiser.step()
            optimiser.zero_grad()
        return first

    return work


Trained = tuple[Any, Any, Callable[[np.ndarray], Any]]
"""Model, optimiser, and the mean loss of some documents."""


def ours(system: str, words: list[np.ndarray], true: np.ndarray, labels: int) -> Trained:
    """The network of this project."""
    from plant.finetuning.finetune import batch_loss
    from plant.ground.settings import Finetuning, WordNetwork
    from plant.model.batches import Corpus
    from plant.model.classifier import LabelClassifier
    from plant.model.registry import build_backbone
    from plant.model.row_adamw import RowAdamW

    sizes = SIZES[system]
    encoder = {"encoder": "bigru"} if system == "bigru" else {"encoder": "cnn", "kernel_sizes": (sizes["kernel"],)}
    settings = WordNetwork.model_validate({
        "kind": "word_network", "attention": "per_label", "embedding_size": EMBEDDING, "hidden_size": sizes["hidden"],
        "dropout": DROPOUT, **encoder,
    })  # fmt: skip
    backbone = build_backbone(settings, "", vocabulary=WORDS, device=torch.device("cpu"))
    model = LabelClassifier(backbone, n_labels=labels, hidden_size=sizes["hidden"], attention="per_label")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(start_of(name, tuple(parameter.shape)))
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in words])])
    corpus = Corpus(np.concatenate(words).astype(np.int32), offsets, np.arange(len(words) + 1) * POSITIVES,
                    true.ravel(), {"train": (0, len(words))})  # fmt: skip
    recipe = Finetuning(gamma=0, epsilon=0, hard_negatives=None)

    def loss_of(batch: np.ndarray) -> Any:
        total, weight = batch_loss(model, corpus, batch, recipe)
        return total / weight

    return model, RowAdamW(model.parameters(), lr=RATE, weight_decay=DECAY), loss_of


def theirs(system: str, words: list[np.ndarray], true: np.ndarray, labels: int) -> Trained:
    """The network of LibMultiLabel. Its id 0 is padding."""
    from libmultilabel.nn.model import Model
    from libmultilabel.nn.networks import CAML, BiGRULWAN

    vectors, sizes = torch.zeros(WORDS + 1, EMBEDDING), SIZES[system]
    network = (
        BiGRULWAN(vectors, labels, rnn_dim=sizes["hidden"], embed_dropout=DROPOUT)
        if system == "bigru"
        else CAML(vectors, labels, [sizes["kernel"]], sizes["hidden"], embed_dropout=DROPOUT)
    )
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            own = next((name.replace(b, a, 1) for a, b in _SAME[system].items() if name.startswith(b)), None)
            if own == "backbone.embedding.weight":
                parameter[1:] = start_of(own, (WORDS, EMBEDDING))
            elif own is not None:
                parameter.copy_(start_of(own, tuple(parameter.shape)))
    model = Model(list(map(str, range(labels))), network, learning_rate=RATE, optimizer="adamw", weight_decay=DECAY)
    ids = [torch.from_numpy(each + 1) for each in words]

    def loss_of(batch: np.ndarray) -> Any:
        part = [ids[place] for place in batch]
        truth = torch.zeros(len(batch), labels).scatter_(1, torch.from_numpy(true[batch]), 1)
        text = torch.nn.utils.rnn.pad_sequence(part, batch_first=True)
        length = torch.tensor([len(each) for each in part])
        return model.shared_step({"text": text, "length": length, "label": truth})[0]

    return model, model.configure_optimizers(), loss_of


def start_of(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The weight of this name before training: the same in both environments."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return torch.from_numpy(random.standard_normal(shape, dtype=np.float32) * 0.05)
