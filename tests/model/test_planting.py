"""Stage 1 on every label attention: it learns the planted words, and touches nothing but what the scores come from."""

import numpy as np
import pytest
import torch

from plant.ground.settings import Pretraining, WordNetwork
from plant.model.batches import pad_documents
from plant.model.classifier import LabelClassifier
from plant.model.registry import ATTENTIONS, build_backbone
from plant.pretraining.lists import TopTokens
from plant.pretraining.pretrain import pretrain

CPU = torch.device("cpu")
RECIPE = {"epochs": 12, "patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.02,
          "head_learning_rate": 0.02, "negatives": 2}  # fmt: skip


def made(attention):
    """A word network whose states show their word: a convolution of width 1."""
    torch.manual_seed(0)
    sizes = {"embedding_size": 16, "hidden_size": 16, "kernel_sizes": [1], "attention_heads": 2, "dropout": 0}
    settings = WordNetwork.model_validate({"kind": "word_network", "encoder": "cnn", "attention": attention, **sizes})
    backbone = build_backbone(settings, "", vocabulary=200, device=CPU)
    torch.nn.init.normal_(backbone.embedding.weight)  # from far enough apart that twelve epochs are enough
    return LabelClassifier(backbone, n_labels=6, hidden_size=16, attention=attention, heads=2, pool_size=4)


def indicators():
    """T_l: the word of label l (fixture `toy`) with relevance 1, and twenty others below it."""
    random = np.random.default_rng(0)
    noise = np.stack([random.choice(np.arange(20, 200), 20, replace=False) for _ in range(6)])
    tokens = np.concatenate([10 + np.arange(6)[:, None], noise], 1)
    relevance = np.tile(np.linspace(1, 0.05, 21, dtype=np.float32), (6, 1))
    return TopTokens.from_csr(np.arange(7) * 21, tokens.ravel(), relevance.ravel(), k=100, vocabulary=200)


@pytest.mark.parametrize("attention", sorted(ATTENTIONS))
def test_stage_1_ranks_the_planted_word_first_and_trains_the_scores_alone(toy, tmp_path, attention):
    model = made(attention)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    pretrain(model, toy, indicators(), Pretraining(**RECIPE), seed=0, checkpoint=tmp_path, digest="d")
    model.eval()
    hits = []
    for document in toy.documents("train"):
        padded, labels = pad_documents(toy, [document], CPU), torch.from_numpy(toy.labels(document))[None]
        scores = model.attention.token_logits(model.hidden_states(padded), labels)[0]
        hits += (toy.tokens(document)[scores.argmax(-1).numpy()] == 10 + toy.labels(document)).tolist()
    assert np.mean(hits) > 0.8  # by chance about one in ten
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
    planted = {id(weight) for weight in model.attention.planted}
    names = {f"attention.{name}" for name, weight in model.attention.named_parameters() if id(weight) in planted}
    backbone = {name for name in before if name.startswith("backbone.")}
    assert names <= moved <= names | backbone
    assert all(weight.requires_grad for weight in model.parameters())
