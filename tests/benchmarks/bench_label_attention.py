"""Stage 2 on a CPU. fast: `kernels.attention`; plain: the folded head around PyTorch's attention.

Documents have cached fp16 features of a frozen backbone, as in the runs on open text (hidden size 384, 461 tokens on
average, 10 labels each).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from run import Job

from plant.finetuning.finetune import batch_loss, parameter_groups
from plant.ground.seeds import generator
from plant.ground.settings import Finetuning
from plant.model.batches import Corpus
from plant.model.classifier import LabelClassifier

POSITIVES, BATCH = 10, 8
SMALL = {"labels": 1000, "documents": 8}
JOBS = {
    "Stage 2 epoch, CodiEsp (40 of 500 documents)": Job("epoch", {"labels": 1767, "documents": 40}, SMALL),
    "Stage 2 epoch, 8,929 labels (16 documents)": Job("epoch", {"labels": 8929, "documents": 16}, SMALL),
}


def epoch(way: str, labels: int, documents: int) -> Callable[[], float]:
    """An epoch with AdamW; its result is the sum of the losses."""
    torch.manual_seed(0)
    random = generator(0, "benchmark")
    lengths = np.sort(random.normal(461, 150, documents).clip(60, 900).astype(np.int64))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    features = random.standard_normal((offsets[-1], 384), dtype=np.float32).astype(np.float16)
    indices = random.integers(0, labels, documents * POSITIVES)
    corpus = Corpus(np.zeros(offsets[-1], np.int32), offsets, np.arange(documents + 1) * POSITIVES, indices,
                    {"train": (0, documents)}, features)  # fmt: skip
    classifier = LabelClassifier(None, n_labels=labels, hidden_size=384, heads=8, pool_size=128)
    if way == "plain":
        classifier.logits = lambda hidden, mask, labels=None, **_: classifier.attended_logits(hidden, mask, labels)
    settings = Finetuning(epochs=1, batch_size=BATCH, hard_negatives=min(1000, labels // 2))
    groups = [
        {"params": group.parameters, "lr": group.learning_rate} for group in parameter_groups(classifier, settings)
    ]
    optimiser = torch.optim.AdamW(groups)

    def work() -> float:
        total = 0.0
        for start in range(0, documents, BATCH):
            loss, weight = batch_loss(classifier, corpus, np.arange(start, start + BATCH), settings)
            (loss / weight).backward()
            optimiser.step()
            optimiser.zero_grad()
            total += float(loss.detach())
        return total

    work()  # oneDNN compiles each shape once; an epoch of all documents meets few new ones
    return work
