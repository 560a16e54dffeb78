"""Focal and asymmetric loss against a loop, binary cross-entropy, finite differences; hard negatives against a sort."""

import math
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from plant.finetuning import losses
from plant.finetuning.finetune import hard_labels
from plant.finetuning.losses import STAGE_2_LOSSES, find_loss
from plant.finetuning.losses.asymmetric import asymmetric_loss
from plant.finetuning.losses.focal import focal_loss
from plant.ground.errors import InputError
from plant.ground.settings import Finetuning


def focal_term(p, y, *, gamma, epsilon):
    smooth = 1 - epsilon if y else epsilon
    return smooth * (1 - p) ** gamma * math.log(p) + (1 - smooth) * p**gamma * math.log(1 - p)


def asymmetric_term(p, y, *, gamma_positive, gamma_negative, margin):
    shifted = max(p - margin, 0.0)
    return (1 - p) ** gamma_positive * math.log(p) if y else shifted**gamma_negative * math.log(1 - shifted)


FOCAL = [(focal_loss, focal_term, {"gamma": gamma, "epsilon": epsilon})
         for gamma, epsilon in ((2, 0.1), (0, 0.1), (1.5, 0.05), (2, 1e-9))]  # fmt: skip
ASYMMETRIC = [
    (asymmetric_loss, asymmetric_term, {"gamma_positive": positive, "gamma_negative": negative, "margin": margin})
    for margin in (0.0, 0.05, 0.5) for positive, negative in ((0, 4), (1, 4), (2, 0.5), (0, 0))
]  # fmt: skip
LOSSES = [pytest.param(*case, id=f"{case[0].__name__} {case[2]}") for case in FOCAL + ASYMMETRIC]


@pytest.mark.parametrize(("loss", "term", "options"), LOSSES)
def test_loss_equals_the_formula_written_as_a_loop(loss, term, options):
    torch.manual_seed(0)
    logits, truth = torch.randn(4, 7, dtype=torch.float64) * 3, torch.rand(4, 7) < 0.3
    selected = torch.rand(4, 7) < 0.6
    expected = [
        -sum(term(1 / (1 + math.exp(-logits[i, j])), truth[i, j], **options) for j in range(7) if selected[i, j]) / 11
        for i in range(4)
    ]
    actual = loss(logits, truth, n_labels=11, selected=selected, **options)
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-12)


PLAIN = [
    partial(focal_loss, gamma=0, epsilon=0),
    partial(asymmetric_loss, gamma_positive=0, gamma_negative=0, margin=0),
]


@pytest.mark.parametrize("loss", PLAIN, ids=["focal", "asymmetric"])
def test_without_its_parameters_a_loss_is_binary_cross_entropy(loss):
    torch.manual_seed(0)
    logits, truth = torch.randn(3, 5), torch.rand(3, 5) < 0.4
    expected = F.binary_cross_entropy_with_logits(logits, truth.float(), reduction="none").mean(1)
    torch.testing.assert_close(loss(logits, truth, n_labels=5), expected)


DIFFERENT = [partial(focal_loss, gamma=2, epsilon=0.1)]
DIFFERENT += [
    partial(asymmetric_loss, gamma_positive=1, gamma_negative=gamma, margin=margin)
    for gamma, margin in ((0.5, 0.05), (4, 0.05), (4, 0.0), (0, 0.3))
]


@pytest.mark.parametrize("loss", DIFFERENT, ids=str)
def test_extreme_logits_give_finite_losses_and_gradients(loss):
    logits = torch.tensor([[200.0, -200.0, 200.0, -200.0]], requires_grad=True)
    value = loss(logits, torch.tensor([[True, True, False, False]]), n_labels=4)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("loss", DIFFERENT, ids=str)
def test_gradient_agrees_with_finite_differences(loss):
    torch.manual_seed(0)
    logits = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    truth = torch.tensor([[True, False, False, True], [False, False, True, False]])
    assert torch.autograd.gradcheck(lambda z: loss(z, truth, n_labels=4), (logits,))


def test_negatives_below_the_margin_cost_and_pull_nothing():
    logits = torch.tensor([[-4.0, -2.0, 1.0]], requires_grad=True)  # p = .018, .119, .731
    truth = torch.zeros(1, 3, dtype=torch.bool)
    asymmetric_loss(logits, truth, gamma_positive=0, gamma_negative=0.5, margin=0.1, n_labels=1).sum().backward()
    assert logits.grad[0, 0] == 0
    assert (logits.grad[0, 1:] > 0).all()


@pytest.mark.parametrize("lengths", [[12] * 6, [12, 7, 1, 3, 0, 12]], ids=["all labels", "lists of unequal length"])
@pytest.mark.parametrize("m", [1, 3, 50])
def test_hard_labels_are_all_positives_and_the_highest_negatives(m, lengths):
    torch.manual_seed(0)
    logits, inside = torch.randn(6, 12), torch.arange(12)[None, :] < torch.tensor(lengths)[:, None]
    truth = (torch.rand(6, 12) < 0.25) & inside
    columns, chosen = hard_labels(logits, truth, m, inside if min(lengths) < 12 else None)
    for row, n in enumerate(lengths):
        negatives = [c for c in logits[row, :n].argsort(descending=True).tolist() if not truth[row, c]]
        expected = set(truth[row].nonzero()[:, 0].tolist()) | set(negatives[:m])
        found = columns[row][chosen[row]].tolist()
        assert set(found) == expected
        assert len(found) == len(expected)


@pytest.fixture
def toy(tmp_path, extend):
    """A loss that is one more module of the folder: the squared error, times a weight of its own."""
    code = "def toy_loss(logits, truth, *, weight, gamma, n_labels, selected=None):\n"
    code += "    return weight * gamma * (logits - truth.to(logits)).square().sum(-1) / n_labels\n"
    (tmp_path / "toy.py").write_text(code, encoding="utf-8")
    extend(losses, tmp_path)


def test_a_new_loss_is_one_module_with_its_own_parameters(toy):
    recipe = Finetuning(loss="toy", loss_options={"weight": 0.5}, gamma=4)
    assert {"toy", "focal", "asymmetric", "approx_ndcg"} <= set(STAGE_2_LOSSES.folder.names())
    STAGE_2_LOSSES.check({"new": recipe})
    logits, truth = torch.tensor([[3.0, 1.0]]), torch.tensor([[True, False]])
    assert find_loss(recipe)(logits, truth, n_labels=2).tolist() == [0.5 * 4 * (4 + 1) / 2]


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ({"loss": "toy"}, "got none. Name weight too"),
        ({"loss": "toy", "loss_options": {"weight": 1, "wait": 1}}, "expected some of weight, gamma, got weight, wait"),
        ({"loss": "focal", "loss_options": {"margin": 1}}, "expected some of gamma, epsilon, got margin"),
        ({"loss": "focal", "loss_options": {"gamma": 5}}, "that have no key of their own, got gamma"),
    ],
)
def test_parameters_that_a_loss_lacks_or_does_not_have_are_named(toy, recipe, said):
    with pytest.raises(InputError, match=said):
        find_loss(Finetuning(**recipe))
    with pytest.raises(InputError, match=rf"^finetunings\.a\.loss_options .*{said}"):  # and before anything runs
        STAGE_2_LOSSES.check({"a": Finetuning(**recipe)})


def test_an_unknown_loss_names_the_nearest():
    with pytest.raises(InputError, match=r"finetunings.a.loss: expected one of .* Did you mean 'focal'"):
        STAGE_2_LOSSES.check({"a": Finetuning(loss="focall")})
