"""Every registered label attention against its paper's equations, written as loops over labels and words."""

import numpy as np
import pytest
import torch
from torch import nn

from plant.model.assemble import TrainingData, build_classifier
from plant.model.batches import pad_documents
from plant.model.classifier import Known, LabelClassifier
from plant.model.registry import ATTENTIONS

LABELS, HIDDEN, LENGTHS = 7, 12, (9, 4, 1)
SINGLE = sorted(set(ATTENTIONS.names()) - {"multi_head"})  # the paper's own has its oracle in test_label_attention.py


def made(name, **options):
    """A classifier with random weights in float64."""
    torch.manual_seed(0)
    sizes = {"heads": 3, "pool_size": 5} | ({"projection": 5} if name.startswith("laat") else {})
    model = LabelClassifier(None, n_labels=LABELS, hidden_size=HIDDEN, attention=name, **sizes, **options).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model


def batch():
    torch.manual_seed(1)
    mask = torch.arange(max(LENGTHS))[None, :] < torch.tensor(LENGTHS)[:, None]
    return torch.randn(*mask.shape, HIDDEN, dtype=torch.float64), mask


def per_label(weights, states, label):
    """Mullenbach et al. 2018, Eqs. 2 to 5: scores, and the logit of the attended state."""
    scores = [states[j] @ weights["embeddings"][label] for j in range(len(states))]
    return scores, states, lambda v: weights["weight"][label] @ v + weights["bias"][label]


def laat(weights, states, label):
    """Vu et al. 2020, Eqs. 6 to 9."""
    scores = [weights["embeddings"][label] @ np.tanh(weights["project.weight"] @ h) for h in states]
    return scores, states, lambda v: weights["weight"][label] @ v + weights["bias"][label]


def cross_attention(weights, states, label):
    """Edin et al. 2024: layer norm, and one output layer for all labels."""
    scores = [weights["embeddings"][label] @ (weights["key.weight"] @ h) for h in states]
    values = [weights["value.weight"] @ h + weights["value.bias"] for h in states]

    return scores, values, lambda v: weights["output.weight"][0] @ normalised(v, weights) + weights["output.bias"][0]


def normalised(v, weights):
    """Layer normalisation."""
    return (v - v.mean()) / np.sqrt(v.var() + 1e-5) * weights["norm.weight"] + weights["norm.bias"]


def laat_shared(weights, states, label):
    """LAAT's attention; the output layer has no row of its own for a label."""
    return *laat(weights, states, label)[:2], lambda v: weights["weight"][0] @ v + weights["bias"][0]


def cross_attention_own(weights, states, label):
    """PLM-CA's attention; each label has weights and a bias of its own."""
    scores, values, _ = cross_attention(weights, states, label)
    return (
        scores,
        values,
        lambda v: weights["output.weight"][label] @ normalised(v, weights) + weights["output.bias"][label],
    )


def cross_attention_states(weights, states, label):
    """PLM-CA's attention and output layer; the labels add up the states themselves."""
    scores = [weights["embeddings"][label] @ (weights["key.weight"] @ h) for h in states]
    return scores, states, lambda v: weights["output.weight"][0] @ normalised(v, weights) + weights["output.bias"][0]


def laat_values(weights, states, label):
    """LAAT's attention and output layer; the labels add up projected states."""
    scores, _, logit = laat(weights, states, label)
    return scores, [weights["value.weight"] @ h + weights["value.bias"] for h in states], logit


ORACLES = {
    each.__name__: each
    for each in (
        per_label,
        laat,
        laat_shared,
        laat_values,
        cross_attention,
        cross_attention_own,
        cross_attention_states,
    )
}


def by_loops(oracle, model, states, bias=None):
    """Probabilities (|L|, n) and logits (|L|) of one document (n, h)."""
    named = [*model.attention.named_parameters(), *model.head.named_parameters()]
    weights = {name: value.detach().numpy() for name, value in named}
    probabilities, logits = [], []
    for label in range(LABELS):
        scores, values, logit = oracle(weights, states.numpy(), label)
        scores = np.array(scores) + (0 if bias is None else bias[label].numpy())
        a = np.exp(scores - scores.max())
        a /= a.sum()
        probabilities.append(a)
        logits.append(logit(sum(a[j] * values[j] for j in range(len(values)))))
    return np.array(probabilities), np.array(logits)


@pytest.mark.usefixtures("both_devices")
@pytest.mark.parametrize("name", SINGLE)
def test_probabilities_and_logits_are_those_of_the_equations(name):
    model, (hidden, mask) = made(name), batch()
    bias = 2 * torch.rand(len(LENGTHS), LABELS, max(LENGTHS), dtype=torch.float64) * mask[:, None]
    everything = torch.arange(LABELS).expand(len(LENGTHS), -1)
    for given in (None, bias):
        s = model.attention.token_probabilities(hidden, everything, mask, given)
        known = {} if given is None else {"known": known_of(given)}
        logits = model.logits(hidden, mask, **known)
        asked = torch.tensor([[0, 5], [6, 6], [2, 1]])
        torch.testing.assert_close(model.logits(hidden, mask, asked, **known), logits.gather(1, asked))
        for row, n in enumerate(LENGTHS):
            probabilities, expected = by_loops(
                ORACLES[name], model, hidden[row, :n], None if given is None else given[row, :, :n]
            )
            np.testing.assert_allclose(s[row, :, :n].detach(), probabilities, rtol=1e-11)
            assert (s[row, :, n:] == 0).all()
            np.testing.assert_allclose(logits[row].detach(), expected, rtol=1e-10, atol=1e-11)


def known_of(bias):
    def of(row, labels):
        part = bias[row, :, : LENGTHS[row]]
        return part if labels is None else part[labels]

    return Known(of)


@pytest.mark.parametrize("name", SINGLE)
def test_token_logits_are_the_scores_before_the_softmax(name):
    model, (hidden, mask) = made(name), batch()
    labels = torch.tensor([[3, 0], [1, 1], [6, 2]])
    scores = model.attention.token_logits(hidden, labels).masked_fill(~mask[:, None], -torch.inf)
    torch.testing.assert_close(scores.softmax(-1), model.attention.token_probabilities(hidden, labels, mask))


@pytest.mark.usefixtures("both_devices")
@pytest.mark.parametrize("name", ATTENTIONS.names())
def test_gradients_are_those_of_finite_differences(monkeypatch, name):
    model, (hidden, mask) = made(name), batch()
    hidden.requires_grad_()
    names = [key for key, _ in model.named_parameters()]

    def logits(states, *weights):
        return torch.func.functional_call(model, dict(zip(names, weights, strict=True)), (states, mask))

    monkeypatch.setattr(LabelClassifier, "forward", LabelClassifier.logits, raising=False)
    assert torch.autograd.gradcheck(logits, (hidden, *model.parameters()), fast_mode=True)


@pytest.mark.parametrize("name", ATTENTIONS.names())
def test_scores_depend_on_the_planted_weights_and_on_no_others(name):
    model, (hidden, _) = made(name), batch()
    labels = torch.arange(LABELS).expand(len(LENGTHS), -1)
    every = [*model.attention.parameters(), *model.head.parameters()]
    weigh = torch.randn(len(LENGTHS), LABELS, max(LENGTHS), dtype=torch.float64)
    scores = (model.attention.token_logits(hidden, labels) * weigh).sum()
    moved = {id(w) for w, g in zip(every, torch.autograd.grad(scores, every, allow_unused=True), strict=True)
             if g is not None}  # fmt: skip
    assert moved == {id(weight) for weight in model.attention.planted}


@pytest.mark.parametrize("name", ATTENTIONS.names())
def test_a_transformer_takes_every_attention(backbone_folder, tiny, toy, name):
    settings = tiny(attention=name, attention_size=5)
    data, device = TrainingData(toy, np.arange(6), list("abcdef")), torch.device("cpu")
    model = build_classifier(settings, backbone_folder(settings), data, seed=0, device=device).eval()
    assert model.attention.embeddings.shape == (6, 5 if name.startswith("laat") else 16)
    together = model.predict(pad_documents(toy, [0, 3], device))
    torch.testing.assert_close(model.predict(pad_documents(toy, [3], device))[0], together[1], rtol=1e-4, atol=1e-5)
