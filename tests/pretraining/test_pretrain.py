"""Stage 1 as a whole: planted pairs come first, only the planted parts move, labels are sampled as asked."""

import numpy as np
import pytest
import torch
from torch import nn

from plant.model.batches import pad_documents
from plant.model.classifier import LabelClassifier
from plant.pretraining.lists import TopTokens
from plant.pretraining.pretrain import Ranking, pretrain
from plant.settings import Pretraining


class Embedding(nn.Module):
    """A backbone that looks tokens up."""

    def __init__(self, size=16):
        super().__init__()
        self.table = nn.Embedding(200, size)

    def forward(self, input_ids, mask):
        return self.table(input_ids) * mask[..., None]


def make(seed=0):
    torch.manual_seed(seed)
    return LabelClassifier(Embedding(), n_labels=6, hidden_size=16, heads=2, pool_size=4)


def indicators():
    """T_l: the indicator of label l with relevance 1, and twenty tokens of noise below it."""
    random = np.random.default_rng(0)
    noise = np.stack([random.choice(np.arange(20, 200), 20, replace=False) for _ in range(6)])
    tokens = np.concatenate([10 + np.arange(6)[:, None], noise], 1)
    relevance = np.tile(np.linspace(1, 0.05, 21, dtype=np.float32), (6, 1))
    return TopTokens.from_csr(np.arange(7) * 21, tokens.ravel(), relevance.ravel(), k=100, vocabulary=200)


RECIPE = {"epochs": 12, "patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.02,
          "head_learning_rate": 0.02, "negatives": 2}  # fmt: skip


@pytest.mark.parametrize("change", [{}, {"objective": "mse"}, {"scores": "probabilities", "sigma": 20.0}], ids=str)
def test_stage_1_ranks_the_planted_token_first(toy, tmp_path, change):
    model, settings = make(), Pretraining(**RECIPE, **change)
    before = Ranking(model, toy, indicators(), settings=settings, seed=0).measure(toy.documents("train"))
    history = pretrain(model, toy, indicators(), settings, seed=0, checkpoint=tmp_path, digest="d")
    after = Ranking(model, toy, indicators(), settings=settings, seed=0).measure(toy.documents("train"))
    assert after["ndcg"] > before["ndcg"] + 0.08
    assert len(history) == 12
    hits = []
    for document in toy.documents("train"):
        padded = pad_documents(toy, [document], torch.device("cpu"))
        labels = torch.from_numpy(toy.labels(document))[None]
        best = model.attention.token_logits(model.hidden_states(padded), labels)[0].argmax(-1).numpy()
        hits += (toy.tokens(document)[best] == 10 + toy.labels(document)).tolist()
    assert np.mean(hits) > (0.6 if change.get("objective") == "mse" else 0.9)


def test_stage_1_leaves_value_output_and_head_as_they_were(toy, tmp_path):
    model = make()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    pretrain(model, toy, indicators(), Pretraining(**RECIPE | {"epochs": 1}), seed=0, checkpoint=tmp_path, digest="d")
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert {"attention.embeddings", "attention.query.weight", "attention.key.weight", "backbone.table.weight"} <= moved
    assert not {name for name in moved if name.startswith(("head", "attention.value", "attention.output"))}
    assert all(p.requires_grad for p in model.parameters())


def test_stage_1_never_reads_the_test_split(toy, tmp_path):
    weights = []
    for shift in (0, 1):
        ids = toy.input_ids.copy()
        ids[toy.offsets[toy.splits["test"][0]] :] += shift
        changed = type(toy)(ids, toy.offsets, toy.indptr, toy.indices, toy.splits)
        model = make()
        pretrain(model, changed, indicators(), Pretraining(**RECIPE | {"epochs": 2}), seed=0,
                 checkpoint=tmp_path / str(shift), digest="d")  # fmt: skip
        weights.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(one, two) for one, two in zip(*weights, strict=True))


def test_loss_is_the_mean_over_lists_or_the_sum_over_a_documents_lists(toy):
    model, batch = make(), np.array([0, 1, 2])
    losses = {}
    for reduction in ("mean", "sum"):
        settings = Pretraining(**RECIPE, reduction=reduction)
        losses[reduction] = Ranking(model, toy, indicators(), settings=settings, seed=0).loss(batch, 1).item()
    alone = []
    settings = Pretraining(**RECIPE | {"negatives": 0}, reduction="sum")
    ranking = Ranking(model, toy, indicators(), settings=settings, seed=0)
    for document in batch:
        alone.append(ranking.loss(np.array([document]), 1).item())
    together = ranking.loss(batch, 1).item()
    assert together == pytest.approx(np.mean(alone), rel=1e-5)
    lists = sum(len(toy.labels(document)) + 2 for document in batch)
    assert losses["sum"] / losses["mean"] == pytest.approx(lists / len(batch), rel=0.35)


def test_attention_mass_and_entropy_stay_in_range(toy):
    found = Ranking(make(), toy, indicators(), settings=Pretraining(**RECIPE), seed=0).measure(toy.documents("val"))
    assert set(found) == {"ndcg", "mass", "entropy"}
    assert all(0 <= value <= 1 for value in found.values())
