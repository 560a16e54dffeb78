"""Eq. 3 against a literal loop, binary cross-entropy, and hard negatives against a sort."""

import math

import pytest
import torch
from torch.nn import functional as F

from plant.finetuning.focal_loss import focal_loss
from plant.finetuning.hard_negatives import hard_labels


def literal(logits, truth, gamma, epsilon, selected, n_labels):
    total = 0.0
    for z, y, kept in zip(logits, truth, selected, strict=True):
        if kept:
            p = 1 / (1 + math.exp(-z))
            smooth = (1 - epsilon) ** y * epsilon ** (1 - y)
            total += smooth * (1 - p) ** gamma * math.log(p) + (1 - smooth) * p**gamma * math.log(1 - p)
    return -total / n_labels


@pytest.mark.parametrize(("gamma", "epsilon"), [(2, 0.1), (0, 0.1), (1.5, 0.05), (2, 1e-9)])
def test_focal_loss_equals_eq_3_written_as_a_loop(gamma, epsilon):
    torch.manual_seed(0)
    logits, truth = torch.randn(4, 7, dtype=torch.float64) * 3, torch.rand(4, 7) < 0.3
    selected = torch.rand(4, 7) < 0.6
    expected = [literal(z.tolist(), y.int().tolist(), gamma, epsilon, s.tolist(), 11)
                for z, y, s in zip(logits, truth, selected, strict=True)]  # fmt: skip
    actual = focal_loss(logits, truth, gamma=gamma, epsilon=epsilon, n_labels=11, selected=selected)
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-12)


def test_gamma_0_and_epsilon_0_is_binary_cross_entropy():
    torch.manual_seed(0)
    logits, truth = torch.randn(3, 5, requires_grad=True), torch.rand(3, 5) < 0.4
    expected = F.binary_cross_entropy_with_logits(logits, truth.float(), reduction="none").mean(1)
    torch.testing.assert_close(focal_loss(logits, truth, gamma=0, epsilon=0, n_labels=5), expected)


def test_extreme_logits_give_finite_losses_and_gradients():
    logits = torch.tensor([[200.0, -200.0, 200.0, -200.0]], requires_grad=True)
    truth = torch.tensor([[True, True, False, False]])
    loss = focal_loss(logits, truth, gamma=2, epsilon=0.1, n_labels=4)
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert torch.isfinite(logits.grad).all()


def test_gradient_agrees_with_finite_differences():
    torch.manual_seed(0)
    logits = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    truth = torch.tensor([[True, False, False, True], [False, False, True, False]])
    assert torch.autograd.gradcheck(lambda z: focal_loss(z, truth, gamma=2, epsilon=0.1, n_labels=4), (logits,))


@pytest.mark.parametrize("m", [1, 3, 50])
def test_hard_labels_are_all_positives_and_the_highest_negatives(m):
    torch.manual_seed(0)
    logits, truth = torch.randn(6, 12), torch.rand(6, 12) < 0.25
    labels, inside = hard_labels(logits, truth, m)
    for row in range(6):
        negatives = [label for label in logits[row].argsort(descending=True).tolist() if not truth[row, label]]
        expected = set(truth[row].nonzero()[:, 0].tolist()) | set(negatives[:m])
        chosen = labels[row][inside[row]].tolist()
        assert set(chosen) == expected
        assert len(chosen) == len(expected)


def test_mining_all_labels_gives_the_loss_over_all_labels():
    torch.manual_seed(0)
    logits, truth = torch.randn(3, 8), torch.rand(3, 8) < 0.3
    labels, inside = hard_labels(logits, truth, 100)
    mined = focal_loss(logits.gather(1, labels), truth.gather(1, labels), gamma=2, epsilon=0.1, n_labels=8,
                       selected=inside)  # fmt: skip
    torch.testing.assert_close(mined, focal_loss(logits, truth, gamma=2, epsilon=0.1, n_labels=8))
