"""One process of jobs in float64: a toy, whole and interrupted, and both stages. Started by test_parallel.py.

python shared_job.py <folder>      writes <folder>/<rank>.json and <folder>/<rank>.safetensors
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from toys import lookup

from plant.finetuning.candidates import Shortlist
from plant.finetuning.finetune import finetune
from plant.ground.checkpoints import save_tensors
from plant.ground.errors import Interrupted
from plant.ground.settings import Finetuning, Optimisation, Pretraining
from plant.model import fitting
from plant.model.batches import Corpus
from plant.model.classifier import LabelClassifier
from plant.model.fitting import Group, Task, TrainingRun, fit
from plant.model.parallel import processes
from plant.pretraining import pretrain as stage_1
from plant.pretraining.lists import TopTokens

DOCUMENTS, BATCH = 13, 3  # the last batch has one document: not every process has a share
STOP = (2, 1)  # epoch and batch in which the last process is asked to end
STAGE_1 = {
    "stage 1": {},
    "stage 1 sum": {"reduction": "sum"},
    "stage 1 ndcg": {"objective": "approx_ndcg", "keep_epochs": True},
}
STAGE_2 = {"stage 2": {}, "stage 2 shortlist": {"loss": "approx_ndcg"}}


class Toy(nn.Module):
    """`odd` gets a gradient from odd documents only, so not in every process; `late` trains from epoch 2 on.

    `rows` has a row for each document, and sparse gradients.
    """

    def __init__(self, dropout):
        super().__init__()
        torch.manual_seed(3)
        self.shared, self.late = nn.Linear(4, 3, dtype=torch.float64), nn.Linear(3, 1, dtype=torch.float64)
        self.rows = nn.Embedding(DOCUMENTS, 3, sparse=True, dtype=torch.float64)
        self.odd = nn.Parameter(torch.zeros(3, dtype=torch.float64))
        self.never = nn.Parameter(torch.ones(2, dtype=torch.float64))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, document):
        hidden = torch.tanh(self.shared(self.dropout(x))) + self.rows(torch.tensor(document))
        return self.late(hidden + self.odd if document % 2 else hidden).squeeze(-1)


def train(folder, *, dropout, stop=False):
    """History and weights. Document i has (i + 1) % 3 items, so the weight of a share may be 0."""
    model, together = Toy(dropout), processes()
    random = np.random.default_rng(0)
    items = [torch.from_numpy(random.normal(size=((i + 1) % 3, 4))) for i in range(DOCUMENTS)]

    def loss(batch, epoch):
        if stop and (epoch, int(batch[0])) == (STOP[0], STOP[1] * BATCH) and together.rank == together.count - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        mine = [int(batch[i]) for i in together.mine(len(batch))]
        parts = [(model(items[i], i) - 1).square().sum() for i in mine]
        return sum(parts, torch.zeros(())), float(sum(len(items[i]) for i in mine))

    def validate():
        values = np.zeros(DOCUMENTS)
        with torch.no_grad():
            for i in together.mine(DOCUMENTS):
                values[i] = model(items[i], i).sum().item()
        return {"value": float(together.sum(values).sum()), "rank": float(together.rank)}

    batches = [np.arange(start, min(start + BATCH, DOCUMENTS)) for start in range(0, DOCUMENTS, BATCH)]
    groups = [Group("all", [*model.shared.parameters(), model.rows.weight, model.odd, model.never], 0.05),
              Group("late", list(model.late.parameters()), 0.02, from_epoch=2)]  # fmt: skip
    task = Task("toy", groups, lambda epoch: batches, loss, validate, "value")
    settings = Optimisation(epochs=4, patience=None, accumulation=2)
    history = fit(model, task, settings, TrainingRun(1, folder, "d"))
    return history, model.state_dict()


def corpus():
    """25 documents, of which every fifth has no label."""
    random = np.random.default_rng(0)
    documents = [random.integers(10, 200, size=random.integers(3, 20)) for _ in range(25)]
    labels = [np.sort(random.choice(6, size=0 if i % 5 == 0 else 2, replace=False)) for i in range(25)]
    return Corpus.of(documents, labels, splits={"train": 19, "val": 6, "test": 0})


def stages(folder):
    """History and weights of Stage 1 and Stage 2, one after the other."""
    torch.manual_seed(0)
    model = LabelClassifier(lookup(), n_labels=6, hidden_size=16, heads=2, pool_size=4).double()
    tokens = np.tile(np.arange(10, 200, dtype=np.int32), 6)
    relevance = np.random.default_rng(1).random(len(tokens), dtype=np.float32)
    top = TopTokens.from_csr(np.arange(7) * 190, tokens, relevance, k=100, vocabulary=200)
    data, histories, tensors = corpus(), {}, {}
    common = {"epochs": 2, "patience": None, "batch_size": 3, "accumulation": 2, "learning_rate": 0.01,
              "head_learning_rate": 0.01}  # fmt: skip
    random = np.random.default_rng(2)
    rows = np.stack([random.permutation([*range(6), -1, -1])[:4] for _ in range(25)]).astype(np.int32)
    shortlist = Shortlist(rows, np.arange(6), 4)
    for name, recipe in STAGE_1.items():
        settings = Pretraining(**common, negatives=2, reweight=True, **recipe)
        histories[name] = stage_1.pretrain(model, data, top, settings, TrainingRun(0, folder / name, "d"))
        tensors |= {f"{name}/{key}": value.clone() for key, value in model.state_dict().items()}
    for name, recipe in STAGE_2.items():
        settings, listed = Finetuning(**common, hard_negatives=2, **recipe), None if name == "stage 2" else shortlist
        histories[name] = finetune(model, data, settings, TrainingRun(0, folder / name, "d"), shortlist=listed)
        tensors |= {f"{name}/{key}": value.clone() for key, value in model.state_dict().items()}
    return histories, tensors


def main():
    folder, together = Path(sys.argv[1]), processes()
    if together.rank:
        fitting.save_checkpoint = stage_1.save_weights = None  # a process that may not write fails if it tries
    tensors, facts = {}, {"count": together.count}
    for name, dropout in (("plain", 0.0), ("dropout", 0.5)):
        facts[name], weights = train(folder / name, dropout=dropout)
        tensors |= {f"{name}/{key}": value for key, value in weights.items()}
    try:
        train(folder / "part", dropout=0.5, stop=True)
    except Interrupted as stopped:
        facts["stopped"] = str(stopped)
    together.wait()
    facts["resumed"], weights = train(folder / "part", dropout=0.5)
    tensors |= {f"resumed/{key}": value for key, value in weights.items()}
    facts["stages"], weights = stages(folder)
    tensors |= weights
    facts["own"] = torch.initial_seed()  # of this process's dropout
    save_tensors(folder / f"{together.rank}.safetensors", tensors)
    (folder / f"{together.rank}.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
