"""The folded head against the paper's literal form, torch's own multi-head attention, and evidence of counts."""

import pytest
import torch
from torch import nn

from plant.ground.errors import InputError
from plant.model.attentions.multi_head import LabelAttention, pooling_matrix
from plant.model.classifier import Known, LabelClassifier


def classifier(hidden=24, heads=4, pool=7, labels=9, **options):
    torch.manual_seed(0)
    made = LabelClassifier(None, n_labels=labels, hidden_size=hidden, heads=heads, pool_size=pool, **options)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    made.double()
    made.head.pooling = pooling_matrix(hidden, pool)  # the buffer is fp32
    return made


LENGTHS = (11, 6, 1)


def batch():
    torch.manual_seed(1)
    mask = torch.arange(11)[None, :] < torch.tensor(LENGTHS)[:, None]
    return torch.randn(3, 11, 24, dtype=torch.float64), mask


def gradients(model, logits, weights, hidden):
    """By hidden states and all parameters."""
    return torch.autograd.grad((logits * weights).sum(), [hidden, *model.parameters()])


def sparse_bias(strength):
    """A bias of a fifth of all pairs: dense (B, |L|, n) and 0 at padding, and as a function of document and labels."""
    torch.manual_seed(2)
    mask = batch()[1]
    shape = (len(LENGTHS), 9, max(LENGTHS))
    dense = strength * torch.rand(shape, dtype=torch.float64) * (torch.rand(shape) < 0.2) * mask[:, None]

    def bias(row, labels):
        part = dense[row, :, : LENGTHS[row]]  # a document's own tokens alone
        return part if labels is None else part[labels]

    return (dense, Known(bias)) if strength else (None, Known())


@pytest.mark.usefixtures("both_devices")
@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("strength", [0, 3.0, 200.0], ids=["no bias", "bias", "strong bias"])
@pytest.mark.parametrize("m", [None, 1, 17])
@pytest.mark.parametrize("mask_padding", [True, False])
@pytest.mark.parametrize("pool", [1, 7, 24, 40], ids=lambda p: f"p={p}")
def test_selected_labels_biases_and_padding_have_logits_and_gradients_of_the_literal_form(
    literal_logits, pool, mask_padding, m, strength, heads
):
    model, (hidden, mask), (dense, known) = (
        classifier(heads=heads, pool=pool, mask_padding=mask_padding),
        batch(),
        sparse_bias(strength),
    )
    hidden.requires_grad_()
    labels = None if m is None else torch.randint(0, 9, (3, m))  # of each document its own, some twice
    literal = literal_logits(model, hidden, mask if mask_padding else None, dense)
    if strength:
        moved = literal - literal_logits(model, hidden, mask if mask_padding else None)
        assert (moved[:2].abs().amax(1) > 0.01).all()  # not the document of one token
    literal = literal if labels is None else literal.gather(1, labels)
    weights = torch.randn_like(literal)
    expected = gradients(model, literal, weights, hidden)
    logits = model.logits(hidden, mask, labels, known=known)
    torch.testing.assert_close(logits, literal, rtol=1e-11, atol=1e-11)
    for one, two in zip(gradients(model, logits, weights, hidden), expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("both_devices")
def test_a_mask_may_leave_out_tokens_anywhere(literal_logits):
    model, (hidden, _) = classifier(), batch()
    mask = torch.rand(hidden.shape[:2]) < 0.5
    torch.testing.assert_close(model.logits(hidden, mask), literal_logits(model, hidden, mask))


@pytest.mark.usefixtures("both_devices")
@pytest.mark.parametrize(("factor", "strength"), [(1e4, 0), (1, 400.0)])
def test_scores_may_be_of_any_size_in_fp32(literal_logits, factor, strength):
    """Also where their powers are beyond fp32: by large weights of the first head, or by a bias."""
    exact, single, (hidden, mask), (dense, known) = classifier(), classifier(), batch(), sparse_bias(strength)
    for model in (exact, single):
        with torch.no_grad():
            model.attention.query.weight[:6] *= factor
    states = hidden.float().requires_grad_()
    logits = single.float().logits(states, mask, known=known)
    found = gradients(single, logits, torch.ones_like(logits), states)
    assert all(x.isfinite().all() for x in [logits, *found])
    if strength:  # large weights make rounding errors of the scores large
        expected = literal_logits(exact, hidden, mask, dense)
        torch.testing.assert_close(logits.double(), expected, rtol=1e-3, atol=1e-3)


def test_no_labels_by_tokens_array_is_kept_for_the_backward_pass():
    model = classifier(labels=50)

    def kept(n):
        storages = {}

        def pack(x):
            storages[x.untyped_storage().data_ptr()] = (x.untyped_storage().nbytes() // 8, x)
            return x

        hidden = torch.randn(2, n, 24, dtype=torch.float64)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            held = model.logits(hidden, torch.ones(2, n, dtype=torch.bool))
        assert held.requires_grad
        return sum(numbers for numbers, _ in storages.values())

    assert kept(256) - kept(128) == 3 * 2 * 128 * 24  # tokens, keys and values of both documents, nothing else


@pytest.mark.parametrize("name", ["multi_head", "per_label"])
def test_the_same_weights_and_documents_give_the_same_bits(name):
    """In a second pass, alone or in a batch, and with the labels' vectors made once for many batches."""
    torch.manual_seed(0)
    model = LabelClassifier(None, n_labels=50, hidden_size=24, attention=name, heads=4, pool_size=7)
    hidden, mask = batch()
    hidden = hidden.float().requires_grad_()
    runs = [model.logits(hidden, mask) for _ in range(2)] + [model.logits(hidden, mask, vectors=model.label_vectors())]
    slopes = [gradients(model, logits, torch.ones_like(logits), hidden) for logits in runs]
    assert all(torch.equal(runs[0], other) for other in runs[1:])
    assert all(torch.equal(one, two) for other in slopes[1:] for one, two in zip(slopes[0], other, strict=True))
    for row, n in enumerate(LENGTHS):
        alone = model.logits(hidden[row : row + 1, :n], mask[row : row + 1, :n])
        assert torch.equal(alone[0], runs[0][row])


@pytest.mark.parametrize("name", ["multi_head", "per_label"])
def test_a_document_without_a_token_has_the_labels_bias_as_logits_and_no_gradient(name):
    model, (hidden, mask) = classifier(attention=name), batch()
    hidden.requires_grad_()
    mask[1] = False
    logits = model.logits(hidden, mask)
    torch.testing.assert_close(logits[1], model.label_vectors()[-1])
    found = gradients(model, logits, torch.ones_like(logits), hidden)
    assert all(x.isfinite().all() for x in found)
    assert (found[0][1] == 0).all() and (found[0][0] != 0).any()


def test_attention_equals_torch_multi_head_attention():
    torch.manual_seed(0)
    ours = LabelAttention(9, 24, 4).double()
    theirs = nn.MultiheadAttention(24, 4, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    hidden, mask = batch()
    embeddings = ours.embeddings[None].expand(3, -1, -1)
    a, s = theirs(embeddings, hidden, hidden, key_padding_mask=~mask, average_attn_weights=True)
    torch.testing.assert_close(ours.output(ours.attend(ours.queries().expand(3, -1, -1), hidden, mask)), a)
    everything = torch.arange(9).expand(3, -1)
    torch.testing.assert_close(ours.token_probabilities(hidden, everything, mask).double(), s, rtol=1e-5, atol=1e-7)


def test_token_logits_are_the_mean_over_heads_of_scaled_products():
    torch.manual_seed(0)
    attention = LabelAttention(5, 24, 4).double()
    hidden, _ = batch()
    q = attention.query(attention.embeddings).view(5, 4, 6)
    k = attention.key(hidden).view(3, -1, 4, 6)
    expected = torch.einsum("lgd,bngd->bgln", q, k).div(6**0.5).mean(1)
    everything = torch.arange(5).expand(3, -1)
    torch.testing.assert_close(attention.token_logits(hidden, everything), expected)


def test_heads_that_do_not_divide_the_hidden_size_are_refused():
    with pytest.raises(InputError, match="divides the hidden size 24"):
        LabelAttention(3, 24, 5)
