"""The asymmetric loss against a loop, binary cross-entropy and finite differences."""

import math

import pytest
import torch
from torch.nn import functional as F

from plant.finetuning.asymmetric_loss import asymmetric_loss


def literal(logits, truth, selected, *, positive, negative, margin, n_labels):
    total = 0.0
    for z, y, kept in zip(logits, truth, selected, strict=True):
        p = 1 / (1 + math.exp(-z))
        shifted = max(p - margin, 0.0)
        term = (1 - p) ** positive * math.log(p) if y else shifted**negative * math.log(1 - shifted)
        total += term if kept else 0.0
    return -total / n_labels


@pytest.mark.parametrize("margin", [0.0, 0.05, 0.5])
@pytest.mark.parametrize(("positive", "negative"), [(0, 4), (1, 4), (2, 0.5), (0, 0)])
def test_loss_equals_the_formula_written_as_a_loop(positive, negative, margin):
    torch.manual_seed(0)
    logits, truth = torch.randn(4, 7, dtype=torch.float64) * 3, torch.rand(4, 7) < 0.3
    selected = torch.rand(4, 7) < 0.6
    expected = [literal(z.tolist(), y.tolist(), s.tolist(), positive=positive, negative=negative, margin=margin,
                        n_labels=11) for z, y, s in zip(logits, truth, selected, strict=True)]  # fmt: skip
    actual = asymmetric_loss(logits, truth, gamma_positive=positive, gamma_negative=negative, margin=margin,
                             n_labels=11, selected=selected)  # fmt: skip
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-12)


def test_gammas_0_and_margin_0_are_binary_cross_entropy():
    torch.manual_seed(0)
    logits, truth = torch.randn(3, 5), torch.rand(3, 5) < 0.4
    expected = F.binary_cross_entropy_with_logits(logits, truth.float(), reduction="none").mean(1)
    actual = asymmetric_loss(logits, truth, gamma_positive=0, gamma_negative=0, margin=0, n_labels=5)
    torch.testing.assert_close(actual, expected)


def test_negatives_below_the_margin_cost_and_pull_nothing():
    logits = torch.tensor([[-4.0, -2.0, 1.0]], requires_grad=True)  # p = .018, .119, .731
    truth = torch.zeros(1, 3, dtype=torch.bool)
    asymmetric_loss(logits, truth, gamma_positive=0, gamma_negative=0.5, margin=0.1, n_labels=1).sum().backward()
    assert logits.grad[0, 0] == 0
    assert (logits.grad[0, 1:] > 0).all()


@pytest.mark.parametrize(("gamma", "margin"), [(0.5, 0.05), (4, 0.05), (4, 0.0), (0, 0.3)])
def test_extreme_logits_give_finite_losses_and_gradients(gamma, margin):
    logits = torch.tensor([[200.0, -200.0, 200.0, -200.0]], requires_grad=True)
    truth = torch.tensor([[True, True, False, False]])
    loss = asymmetric_loss(logits, truth, gamma_positive=1, gamma_negative=gamma, margin=margin, n_labels=4)
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_gradient_agrees_with_finite_differences(margin):
    torch.manual_seed(0)
    logits = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    truth = torch.tensor([[True, False, False, True], [False, False, True, False]])
    assert torch.autograd.gradcheck(
        lambda z: asymmetric_loss(z, truth, gamma_positive=1, gamma_negative=4, margin=margin, n_labels=4), (logits,)
    )
