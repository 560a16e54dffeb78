"""One process of both stages on a toy corpus in float64. Started by test_processes.py.

python stages_job.py <folder>      writes <folder>/<rank>.json: the histories of both stages and sums of the weights
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from plant.finetuning.candidates import Shortlist
from plant.finetuning.finetune import finetune
from plant.ground.settings import Finetuning, Pretraining
from plant.model import fitting
from plant.model.batches import Corpus
from plant.model.classifier import LabelClassifier
from plant.model.parallel import processes
from plant.pretraining import pretrain as stage_1
from plant.pretraining.lists import TopTokens

LABELS, DOCUMENTS = 6, 23
RECIPE = {"epochs": 2, "patience": None, "batch_size": 3, "accumulation": 2, "learning_rate": 0.02,
          "head_learning_rate": 0.02}  # fmt: skip
STAGES = {
    "plain": ({}, {"hard_negatives": 2}, False),
    "sampled": ({"reweight": True, "negatives": 1, "objective": "approx_ndcg", "keep_epochs": True},
                {"hard_negatives": 1, "loss": "approx_ndcg"}, True),
}  # fmt: skip


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(60, 8)

    def forward(self, input_ids, mask):
        return self.table(input_ids) * mask[..., None]


def toy():
    """Documents of unequal length, some without a label; T_l of every label; shortlists of unequal length."""
    random = np.random.default_rng(0)
    lengths, counts = random.integers(2, 9, DOCUMENTS), random.integers(0, 3, DOCUMENTS)
    offsets, indptr = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (lengths, counts))
    labels = np.concatenate([np.sort(random.choice(LABELS, size=n, replace=False)) for n in counts])
    ids = random.integers(0, 30, lengths.sum()).astype(np.int32)
    corpus = Corpus(ids, offsets, indptr, labels, {"train": (0, 14), "val": (14, 20), "test": (20, 23)})
    tokens = np.concatenate([random.choice(30, 12, replace=False) for _ in range(LABELS)])
    relevance = np.tile(np.linspace(1, 0.05, 12, dtype=np.float32), LABELS)
    top = TopTokens.from_csr(np.arange(LABELS + 1) * 12, tokens, relevance, k=12, vocabulary=60)
    rows = np.stack([random.permutation([*range(LABELS), -1, -1])[:4] for _ in range(DOCUMENTS)]).astype(np.int32)
    return corpus, top, Shortlist(rows, np.arange(LABELS), 4)


def run(folder, name):
    torch.manual_seed(0)
    model = LabelClassifier(Embedding(), n_labels=LABELS, hidden_size=8, heads=2, pool_size=4).double()
    corpus, top, shortlist = toy()
    first, second, listed = STAGES[name]
    history = stage_1.pretrain(
        model, corpus, top, Pretraining(**RECIPE, **first), seed=3, checkpoint=folder / f"{name}1", digest="d"
    )
    again = finetune(model, corpus, Finetuning(**RECIPE, **second), seed=3, checkpoint=folder / f"{name}2",
                     digest="d", shortlist=shortlist if listed else None)  # fmt: skip
    return {"stage 1": history, "stage 2": again, "weights": [p.sum().item() for p in model.parameters()]}


def main():
    folder, together = Path(sys.argv[1]), processes()
    if together.rank:  # a process that may not write fails if it tries
        fitting.save_checkpoint = stage_1.save_weights = None
    found = {name: run(folder, name) for name in STAGES}
    (folder / f"{together.rank}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
