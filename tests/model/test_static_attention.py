"""A bias on the scores of label attention: fast and plain way against the literal form with a dense additive mask."""

import numpy as np
import pytest
import torch
from torch import nn

from plant.kernels import attention as attention_kernel
from plant.kernels.attention import label_logits
from plant.model.batches import Corpus, pad_documents
from plant.model.classifier import Known, LabelClassifier
from plant.model.label_attention import pooling_matrix
from plant.model.literal import literal_logits

HIDDEN, HEADS, LABELS = 24, 4, 50
LENGTHS = (11, 1, 16, 37)


def make(dtype=torch.float64, **options):
    torch.manual_seed(0)
    model = LabelClassifier(None, n_labels=LABELS, hidden_size=HIDDEN, heads=HEADS, pool_size=7, **options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    model.head.pooling = pooling_matrix(HIDDEN, 7)  # the buffer is fp32
    return model.to(dtype)


def batch(dtype=torch.float64, strength=3.0, share=0.2):
    """Hidden states, mask, and a sparse bias as a dense array (B, |L|, n), 0 at padding."""
    torch.manual_seed(1)
    mask = torch.arange(max(LENGTHS))[None, :] < torch.tensor(LENGTHS)[:, None]
    hidden = torch.randn(len(LENGTHS), max(LENGTHS), HIDDEN, dtype=dtype).requires_grad_()
    values = strength * torch.rand(len(LENGTHS), LABELS, max(LENGTHS), dtype=dtype)
    return hidden, mask, values * (torch.rand_like(values) < share) * mask[:, None]


def lookup(dense):
    """The same as a function of document and labels: a document's own tokens alone."""

    def bias(row, labels):
        part = dense[row, :, : LENGTHS[row]]
        return part if labels is None else part[labels]

    return bias


def gradients(model, logits, weights, hidden):
    return torch.autograd.grad((logits * weights).sum(), [hidden, *model.parameters()], retain_graph=True)


def assert_same(first, second, tolerance=1e-11):
    for one, two in zip(first, second, strict=True):
        torch.testing.assert_close(one, two, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=[2**19, 1], ids=["one tile", "tiles of 32 labels"])
def tile(request, monkeypatch):
    monkeypatch.setattr(attention_kernel, "TILE", request.param)


@pytest.mark.parametrize("strength", [3.0, 200.0])
@pytest.mark.parametrize("mask_padding", [True, False])
def test_logits_and_gradients_equal_the_literal_form_with_a_dense_additive_mask(tile, mask_padding, strength):
    model = make(mask_padding=mask_padding)
    hidden, mask, dense = batch(strength=strength)
    ways = [
        model.logits_by_hand(hidden, mask, bias=lookup(dense)),
        model.attended_logits(hidden, mask, bias=lookup(dense)),
        literal_logits(model, hidden, mask if mask_padding else None, dense),
    ]
    weights = torch.randn_like(ways[0])
    by_hand, attended, literal = ([way, *gradients(model, way, weights, hidden)] for way in ways)
    assert_same(by_hand, literal)
    assert_same(attended, literal)
    moved = literal[0] - literal_logits(model, hidden, mask if mask_padding else None)
    assert (moved[[0, 2, 3]].abs().amax(1) > 0.01).all()  # not the document of one token


@pytest.mark.parametrize("m", [1, 17, 170])
def test_labels_of_each_document_get_their_own_rows_of_the_bias(tile, m):
    model = make()
    hidden, mask, dense = batch()
    labels = torch.randint(0, LABELS, (len(LENGTHS), m))  # some twice
    ways = [
        model.logits_by_hand(hidden, mask, labels, bias=lookup(dense)),
        model.attended_logits(hidden, mask, labels, bias=lookup(dense)),
        literal_logits(model, hidden, mask, dense).gather(1, labels),
    ]
    weights = torch.randn_like(ways[0])
    by_hand, attended, literal = ([way, *gradients(model, way, weights, hidden)] for way in ways)
    assert_same(by_hand, literal)
    assert_same(attended, literal)


def test_labels_without_gradient_are_asked_for_no_bias_in_the_backward_pass():
    model = make()
    hidden, mask, dense = batch()
    asked = []

    def bias(row, labels):
        asked.append((row, labels))
        return lookup(dense)(row, labels)

    logits = model.logits_by_hand(hidden, mask, bias=bias)
    assert [(row, labels is None) for row, labels in asked] == [(row, True) for row in range(4)]
    weights = torch.zeros_like(logits)
    weights[2, 7], weights[2, 9] = 1, -2
    asked.clear()
    found = gradients(model, logits, weights, hidden)
    assert [(row, set(labels.tolist())) for row, labels in asked] == [(2, {7, 9})]
    assert_same(found, gradients(model, literal_logits(model, hidden, mask, dense), weights, hidden))


def test_kernel_with_a_bias_passes_gradcheck():
    torch.manual_seed(0)
    queries, folded = (torch.randn(5, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    keys, values = (torch.randn(7, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    dense = 2 * torch.rand(2, 5, 3, dtype=torch.float64)

    def bias(row, labels):
        return dense[row] if labels is None else dense[row, labels]

    assert torch.autograd.gradcheck(
        lambda *x: label_logits(*x, lengths=[4, 3], heads=2, bias=bias), (queries, folded, keys, values)
    )


def test_single_precision_stands_a_bias_that_fp32_powers_do_not():
    exact, single = make(), make(torch.float32)
    hidden, mask, dense = batch(strength=400.0)
    rounded = hidden.detach().float().requires_grad_()
    expected = literal_logits(exact, hidden, mask, dense)
    found = single.logits_by_hand(rounded, mask, bias=lookup(dense.float()))
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-3)
    assert all(x.isfinite().all() for x in gradients(single, found, torch.randn_like(found), rounded))


def test_a_strong_bias_on_one_token_is_attention_on_that_token():
    model = make()
    hidden, mask, dense = batch()
    dense = torch.zeros_like(dense)
    dense[:, :, 0] = 1e3
    first = hidden[:, :1]
    expected = literal_logits(model, first, mask[:, :1])
    assert_same([model.logits_by_hand(hidden, mask, bias=lookup(dense))], [expected])
    labels = torch.arange(LABELS).expand(4, -1)
    s = model.attention.token_probabilities(hidden, labels, mask, dense)
    torch.testing.assert_close(s[:, :, 0], torch.ones_like(s[:, :, 0]))
    assert (s[0, :, 11:] == 0).all()


@pytest.mark.parametrize("few", [0, 2**40], ids=["by hand", "torch attention"])
def test_batches_carry_what_is_known_and_evidence_has_one_weight(monkeypatch, few):
    monkeypatch.setattr("plant.model.classifier.FEW", few)
    hidden, mask, dense = batch()
    evidence = torch.randn(4, LABELS, dtype=torch.float64)

    def known(documents, device):
        assert device == torch.device("cpu")
        rows = [int(document) for document in documents]
        return Known(lambda row, labels: lookup(dense)(rows[row], labels), evidence[rows])

    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    features = torch.cat([hidden[row, :length] for row, length in enumerate(LENGTHS)]).detach().numpy()
    corpus = Corpus(np.zeros(sum(LENGTHS), np.int32), offsets, np.zeros(5, np.int64), np.zeros(0, np.int64), {},
                    features, known)  # fmt: skip
    model = make()
    model.head.weigh_evidence()
    assert model.head.evidence.dtype == torch.float64
    plain = literal_logits(model, hidden, mask, dense)
    for beta in (0.0, -1.5):
        nn.init.constant_(model.head.evidence, beta)
        expected = plain + np.log1p(np.exp(beta)) * evidence
        padded = pad_documents(corpus, [2, 0], torch.device("cpu"))
        found = model.double().logits(padded.features.double(), padded.mask, known=padded.known)
        torch.testing.assert_close(found, expected[[2, 0]], rtol=1e-6, atol=1e-6)  # features come as fp32
        labels = torch.tensor([[3, 3, 9], [0, 49, 1]])
        some = model.logits(padded.features.double(), padded.mask, labels, known=padded.known)
        assert_same([some], [found.gather(1, labels)])
    (slope,) = torch.autograd.grad(found.sum(), [model.head.evidence])
    assert slope.item() == pytest.approx(float(evidence[[2, 0]].sum()) / (1 + np.exp(1.5)))


def test_the_weight_of_the_evidence_is_saved_with_the_head():
    model, other = make(torch.float32), make(torch.float32)
    assert "evidence" not in model.head.state_dict()
    model.head.weigh_evidence()
    nn.init.constant_(model.head.evidence, 0.7)
    with pytest.raises(RuntimeError, match="evidence"):
        other.head.load_state_dict(model.head.state_dict())
    other.head.weigh_evidence()
    other.head.load_state_dict(model.head.state_dict())
    assert other.head.evidence.item() == pytest.approx(0.7)
