"""The ranking model over the vocabulary: its scores by hand, its lists, and that it learns to rank."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from plant.ground.errors import InputError
from plant.ground.settings import Pretraining
from plant.model.fitting import TrainingRun
from plant.model.l2r import L2R, inattention
from plant.pretraining.lists import TopTokens
from plant.pretraining.losses.pairwise import pairwise_loss
from plant.pretraining.vocabulary import VocabularyLists, pretrain_l2r


def test_both_ways_score_the_concatenation_of_label_and_word(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr("plant.model.l2r.LABELS_TOGETHER", 3)  # of 4 labels
    model = L2R(4, 9, size=3, hidden=5).double()
    joined = torch.cat([model.of_label.weight, model.of_word.weight], dim=1)  # W_1 (r, 2d)

    def f(label: int, word: int) -> Tensor:
        x = torch.cat([model.labels[label], model.words[word]])
        return model.output.weight[0] @ (joined @ x + model.of_label.bias).relu() + model.output.bias[0]

    words = torch.tensor([2, 7, 2])
    expected = torch.stack([torch.stack([f(label, int(word)) for word in words]) for label in range(4)])
    torch.testing.assert_close(model.scores(None, words), expected)
    torch.testing.assert_close(model.scores(torch.tensor([3, 1]), words), expected[[3, 1]])
    torch.testing.assert_close(model.pairs(torch.arange(4), words.expand(4, -1)), expected)
    gradients = torch.autograd.grad(model.scores(None, words).square().sum(), model.words)[0]
    torch.testing.assert_close(gradients, torch.autograd.grad(expected.square().sum(), model.words)[0])


def test_inattention_as_printed_keeps_k_minus_1_scores_and_the_others_weigh_e_to_the_0() -> None:
    scores = torch.tensor([[2.0, 1.0, 3.0, -1.0]])
    printed = inattention(scores, 2, "zero")[0]
    weights = torch.tensor([1.0, 1.0, math.exp(3), 1.0])
    torch.testing.assert_close(printed, weights / weights.sum())
    option = inattention(scores, 2, "minus_infinity")[0]
    weights = torch.tensor([math.exp(2), 0, math.exp(3), 0])
    torch.testing.assert_close(option, weights / weights.sum())


@pytest.mark.parametrize("losers", ["zero", "minus_infinity"])
@pytest.mark.parametrize("k", [None, 5])
def test_without_a_threshold_it_is_the_softmax(k: int | None, losers: str) -> None:
    scores = torch.tensor([[2.0, 1.0, 3.0, -1.0]])
    assert torch.equal(inattention(scores, k, losers), scores.softmax(-1))


def top() -> TopTokens:
    """Three labels over 30 words; the third has no relevance at all."""
    return TopTokens.from_csr(
        np.array([0, 3, 5, 6]), np.array([4, 9, 1, 7, 4, 2], np.int32),
        np.array([1.0, 0.6, 0.3, 1.0, 0.2, 0.0], np.float32), k=10, vocabulary=30,
    )  # fmt: skip


def test_a_list_is_the_top_words_and_other_words_of_relevance_0() -> None:
    lists = VocabularyLists(top(), outside=8, seed=0)
    assert lists.labels.tolist() == [0, 1]
    words, relevance = lists.of(np.array([0, 1]), 1)
    assert words[0, :3].tolist() == [4, 9, 1]
    np.testing.assert_allclose(relevance[0, :3], [1, 0.6, 0.3], rtol=1e-6)
    for row, inside in enumerate(({4, 9, 1}, {7, 4})):
        others = words[row, len(inside) :][relevance[row, len(inside) :] == 0]
        assert 1 <= len(others) <= 8 and not inside & set(others.tolist()) and len(set(others.tolist())) == len(others)
    assert not np.array_equal(words, lists.of(np.array([0, 1]), 2)[0])
    assert np.array_equal(words, lists.of(np.array([0, 1]), 1)[0])


def trained(tmp_path: Path, tokens: TopTokens, **changes: object) -> tuple[SimpleNamespace, list[dict[str, float]]]:
    torch.manual_seed(0)
    attention = SimpleNamespace(embeddings=torch.zeros(3, 1))
    classifier = SimpleNamespace(attention=attention, n_labels=3)
    recipe = Pretraining.model_validate({
        "lists": "vocabulary", "outside": 20, "k": 3, "epochs": 150, "patience": None, "batch_size": 2,
        "accumulation": 1, "head_learning_rate": 0.02, "l2r_size": 8, "l2r_hidden": 16, **changes,
    })  # fmt: skip
    history = pretrain_l2r(classifier, tokens, recipe, TrainingRun(0, tmp_path / "c", "x"))  # type: ignore[arg-type]
    return classifier, history


def test_the_loss_is_that_of_the_lists_by_the_recipe(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = L2R(3, 30, size=8, hidden=16)  # as the training starts
    words, relevance = map(torch.from_numpy, VocabularyLists(top(), outside=20, seed=0).of(np.array([0, 1]), 1))
    scores = model.pairs(torch.tensor([0, 1]), words)
    expected = pairwise_loss(scores, relevance, k=2, sigma=3.0, gain="linear").mean()
    _, history = trained(tmp_path, top(), epochs=1, ndcg_k=2, sigma=3.0, gain="linear")
    assert history[0]["loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_the_words_of_a_label_are_ranked_first_after_training(tmp_path: Path) -> None:
    classifier, history = trained(tmp_path, top())
    assert history[-1]["ndcg_val"] > 0.99 > history[0]["ndcg_val"]
    with torch.no_grad():
        ranked = classifier.attention.l2r.scores(torch.tensor([0, 1]), torch.arange(30)).argsort(descending=True)
    assert ranked[0, :3].tolist() == [4, 9, 1] and ranked[1, :2].tolist() == [7, 4]


def test_relevance_that_says_nothing_is_refused(tmp_path: Path) -> None:
    nothing = TopTokens.from_csr(
        np.array([0, 1, 2, 3]), np.array([4, 9, 1], np.int32), np.zeros(3, np.float32), k=10, vocabulary=30
    )
    with pytest.raises(InputError, match="a label with a relevant word"):
        trained(tmp_path, nothing)
