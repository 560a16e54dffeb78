"""Logits by hand against the paper's literal form and PyTorch's attention: values, gradients, what is left undone."""

import pytest
import torch
from torch import nn

from plant.kernels import attention as attention_kernel
from plant.kernels.attention import affine, label_logits, product
from plant.model import classifier
from plant.model.attentions.multi_head import pooling_matrix
from plant.model.classifier import LabelClassifier

HIDDEN, HEADS, LABELS = 24, 4, 50
LENGTHS = (11, 1, 16, 37)


def make(dtype=torch.float64, pool=7, **options):
    torch.manual_seed(0)
    sizes = {"n_labels": LABELS, "hidden_size": HIDDEN, "heads": HEADS, "pool_size": pool}
    model = LabelClassifier(None, **(sizes | options))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    model.head.pooling = pooling_matrix(HIDDEN, pool)  # the buffer is fp32
    return model.to(dtype)


def batch(lengths=LENGTHS, dtype=torch.float64):
    """Hidden states that ask for a gradient, and the mask."""
    torch.manual_seed(1)
    mask = torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), HIDDEN, dtype=dtype).requires_grad_(), mask


def sparse_bias(strength):
    """A bias of a fifth of all pairs: dense (B, |L|, n) and 0 at padding, and as a function of document and labels."""
    if strength == 0:
        return None, None
    torch.manual_seed(2)
    shape = (len(LENGTHS), LABELS, max(LENGTHS))
    dense = strength * torch.rand(shape, dtype=torch.float64) * (torch.rand(shape) < 0.2) * batch()[1][:, None]

    def bias(row, labels):
        part = dense[row, :, : LENGTHS[row]]  # a document's own tokens alone
        return part if labels is None else part[labels]

    return dense, bias


def gradients(model, logits, weights, hidden):
    """By hidden states and all parameters."""
    return torch.autograd.grad((logits * weights).sum(), [hidden, *model.parameters()], retain_graph=True)


def assert_same(first, second, tolerance=1e-11):
    for one, two in zip(first, second, strict=True):
        torch.testing.assert_close(one, two, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=[2**19, 1], ids=["one tile", "tiles of 32 labels"])
def tile(request, monkeypatch):
    monkeypatch.setattr(attention_kernel, "TILE", request.param)


@pytest.mark.parametrize("strength", [0, 3.0, 200.0], ids=["no bias", "bias", "strong bias"])
@pytest.mark.parametrize("m", [None, 1, 17, 170])
@pytest.mark.parametrize("mask_padding", [True, False])
def test_logits_and_gradients_of_both_ways_are_those_of_the_literal_form(
    tile, literal_logits, mask_padding, m, strength
):
    model, (hidden, mask), (dense, bias) = make(mask_padding=mask_padding), batch(), sparse_bias(strength)
    labels = None if m is None else torch.randint(0, LABELS, (4, m))  # of each document its own, some twice
    literal = literal_logits(model, hidden, mask if mask_padding else None, dense)
    if strength:
        moved = literal - literal_logits(model, hidden, mask if mask_padding else None)
        assert (moved[[0, 2, 3]].abs().amax(1) > 0.01).all()  # not the document of one token
    literal = literal if labels is None else literal.gather(1, labels)
    weights = torch.randn_like(literal)
    expected = [literal, *gradients(model, literal, weights, hidden)]
    for way in (model.logits_by_hand, model.attended_logits):
        logits = way(hidden, mask, labels, bias=bias)
        assert_same([logits, *gradients(model, logits, weights, hidden)], expected)


@pytest.mark.parametrize(("n_labels", "heads"), [(50, 1), (1, 4), (1, 1)])
@pytest.mark.parametrize("chosen", [False, True])
def test_one_head_or_one_label_gives_the_literal_form_twice_in_a_row(tile, literal_logits, n_labels, heads, chosen):
    """There the queries by head are a view of the caller's queries, which the kernel may not change."""
    model, (hidden, mask) = make(n_labels=n_labels, heads=heads), batch()
    labels = torch.zeros(4, 1, dtype=torch.long) if chosen else None
    literal = literal_logits(model, hidden, mask)
    literal = literal[:, :1] if chosen else literal
    weights = torch.randn_like(literal)
    expected = [literal, *gradients(model, literal, weights, hidden)]
    for _ in range(2):
        logits = model.logits_by_hand(hidden, mask, labels)
        assert_same([logits, *gradients(model, logits, weights, hidden)], expected)
    queries, folded, keys, values = (torch.randn(count, HIDDEN) for count in (n_labels, n_labels, 7, 7))
    before = [part.clone() for part in (queries, folded, keys, values)]
    label_logits(queries, folded, keys, values, lengths=[4, 3, 0, 0], heads=heads, labels=labels)
    assert_same((queries, folded, keys, values), before, 0)


def test_a_mask_may_leave_out_tokens_anywhere(literal_logits):
    model, (hidden, _) = make(), batch()
    mask = torch.rand(hidden.shape[:2]) < 0.5
    assert_same([model.logits_by_hand(hidden, mask)], [literal_logits(model, hidden, mask)])


def test_frozen_hidden_states_cost_no_gradient(monkeypatch):
    model, (hidden, mask) = make(), batch()
    weights = torch.randn(4, LABELS, dtype=torch.float64)
    made = []
    monkeypatch.setattr(attention_kernel, "product", lambda *args: made.append(args) or product(*args))

    def backward(states):
        loss = (model.logits_by_hand(states, mask) * weights).sum()
        made.clear()
        return torch.autograd.grad(loss, list(model.parameters())), len(made)

    frozen, few = backward(hidden.detach())
    trained, more = backward(hidden)
    assert_same(frozen, trained, 0)
    assert more == few + 2  # W_K and W_V times their gradients


def test_labels_without_gradient_cost_nothing_backward_and_change_nothing(monkeypatch, literal_logits):
    model, (hidden, mask), (dense, bias) = make(), batch(), sparse_bias(3.0)
    weights = torch.randn(4, LABELS, dtype=torch.float64)
    weights[0] = 0
    weights[1:, 5:] = 0
    expected = gradients(model, literal_logits(model, hidden, mask, dense), weights, hidden)
    shapes, asked = [], []
    monkeypatch.setattr(attention_kernel, "product", lambda *args: shapes.append(args[0].shape) or product(*args))

    def recorded(row, labels):
        asked.append((row, labels if labels is None else set(labels.tolist())))
        return bias(row, labels)

    logits = model.logits_by_hand(hidden, mask, bias=recorded)
    assert asked == [(row, None) for row in range(4)]
    shapes.clear()
    asked.clear()
    assert_same(gradients(model, logits, weights, hidden), expected)
    again = [shape for shape in shapes if shape[1] == HIDDEN // HEADS + 1]  # Q K^T and U V^T
    assert again == [(attention_kernel.STEP, HIDDEN // HEADS + 1)] * 2 * 3 * HEADS  # 5 labels, rounded up
    assert asked == [(row, {0, 1, 2, 3, 4}) for row in (1, 2, 3)]


def test_kernel_and_affine_map_pass_gradcheck():
    torch.manual_seed(0)
    queries, folded = (torch.randn(5, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    keys, values = (torch.randn(7, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    dense = 2 * torch.rand(2, 5, 3, dtype=torch.float64)
    for options in (
        {},
        {"labels": torch.tensor([[0, 4, 4], [2, 1, 0]])},
        {"bias": lambda row, labels: dense[row] if labels is None else dense[row, labels]},
    ):
        assert torch.autograd.gradcheck(
            lambda *x, options=options: label_logits(*x, lengths=[4, 3], heads=2, **options),
            (queries, folded, keys, values),
        )
    bias = torch.randn(7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(affine, (queries, keys, bias))


@pytest.mark.parametrize("onednn", [True, False])
def test_single_precision_is_as_close_to_double_as_torch_attention_is(monkeypatch, onednn):
    if not onednn:
        monkeypatch.setattr(attention_kernel, "ONEDNN", None)
    exact, single, (hidden, mask) = make(), make(torch.float32), batch()
    rounded = hidden.detach().float().requires_grad_()
    weights = torch.randn(4, LABELS, dtype=torch.float64)
    true, by_hand, attended = (
        [way(states, mask), *gradients(model, way(states, mask), weights.to(states.dtype), states)]
        for model, states, way in [
            (exact, hidden, exact.attended_logits),
            (single, rounded, single.logits_by_hand),
            (single, rounded, single.attended_logits),
        ]
    )
    for value, one, two in zip(true, by_hand, attended, strict=True):
        assert (one - value).abs().max() < 4 * (two - value).abs().max() + 1e-6


@pytest.mark.parametrize(("factor", "strength"), [(1, 0), (100, 0), (1e4, 0), (1, 400.0)])
def test_scores_may_be_of_any_size_in_any_head(literal_logits, factor, strength):
    """Also where their powers of 2 are beyond fp32: by large weights of the first head, or by a bias."""
    exact, single, (hidden, mask), (dense, bias) = make(), make(torch.float32), batch(), sparse_bias(strength)
    for model in (exact, single):
        with torch.no_grad():
            model.attention.query.weight[: HIDDEN // HEADS] *= factor
    expected = literal_logits(exact, hidden, mask, dense)
    logits = exact.logits_by_hand(hidden, mask, bias=bias)
    torch.testing.assert_close(logits, expected, rtol=1e-10, atol=1e-10)
    weights = torch.randn_like(expected)
    found = gradients(exact, logits, weights, hidden)
    assert_same(found, gradients(exact, expected, weights, hidden), 1e-9 * factor)
    rounded = hidden.detach().float().requires_grad_()
    logits = single.logits_by_hand(rounded, mask, bias=bias and (lambda row, labels: bias(row, labels).float()))
    if strength:
        torch.testing.assert_close(logits.double(), expected, rtol=1e-3, atol=1e-3)
    assert all(x.isfinite().all() for x in [logits, *gradients(single, logits, weights.float(), rounded)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_take_any_strides(dtype):
    torch.manual_seed(0)
    a, b, bias = (torch.randn(size, dtype=dtype) for size in [(40, 60), (50, 60), (17,)])
    for left in (a[:, :20], a[:20].T[:20].T, a[::2, 20:40]):
        for right in (b[:17, :20], b[:17, 20:40].contiguous(), b[:17, :20].T.contiguous().T):
            torch.testing.assert_close(product(left, right), left @ right.T)
            torch.testing.assert_close(product(left, right, bias), left @ right.T + bias)


def test_the_same_weights_and_documents_give_the_same_bits():
    """In a second forward pass, a second backward pass, and with the labels' vectors made once for many batches."""
    model, (hidden, mask) = make(torch.float32), batch(dtype=torch.float32)
    weights = torch.randn(4, LABELS)
    first, second = model.logits_by_hand(hidden, mask), model.logits_by_hand(hidden, mask)
    runs = [gradients(model, logits, weights, hidden) for logits in (first, first, second)]
    assert torch.equal(first, second)
    assert torch.equal(first, model.logits_by_hand(hidden, mask, vectors=model.label_vectors()))
    assert all(torch.equal(one, two) and torch.equal(one, three) for one, two, three in zip(*runs, strict=True))


def test_what_is_kept_for_the_backward_pass_has_no_labels_by_tokens_array():
    model = make()

    def kept(n):
        storages = {}

        def pack(x):
            storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes() // 8
            return x

        hidden = torch.randn(2, n, HIDDEN, dtype=torch.float64)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            held = model.logits_by_hand(hidden, torch.ones(2, n, dtype=torch.bool))
        assert held.requires_grad
        return sum(storages.values())

    assert kept(256) - kept(128) == 3 * 2 * 128 * HIDDEN  # tokens, keys and values of both documents, nothing else


def test_a_document_without_a_token_has_the_bias_as_logits_and_no_gradient():
    model, (hidden, mask) = make(), batch((5, 0, 3))
    logits = model.logits_by_hand(hidden, mask)
    torch.testing.assert_close(logits[1], model.label_vectors().bias)
    found = gradients(model, logits, torch.ones_like(logits), hidden)
    assert all(x.isfinite().all() for x in found)
    assert (found[0][1] == 0).all()


def test_large_products_go_by_hand_and_small_ones_by_torch_attention(monkeypatch):
    model, (hidden, mask) = make(), batch()
    scores = LABELS * hidden.shape[1] * HIDDEN // HEADS
    for few, way in ((scores, "logits_by_hand"), (scores + 1, "attended_logits")):
        with monkeypatch.context() as patch:
            patch.setattr(classifier, "FEW", few)
            patch.setattr(model, way, lambda *args, way=way, **kwargs: way)
            assert model.logits(hidden, mask) == way
