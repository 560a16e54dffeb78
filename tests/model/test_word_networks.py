"""Networks over words: states that do not depend on the batch, initial word vectors, and what is refused."""

import numpy as np
import pytest
import torch

from plant.ground.errors import InputError
from plant.ground.files import write_arrays
from plant.ground.settings import WordNetwork
from plant.model.assemble import load_training_data
from plant.model.registry import ENCODERS, build_backbone

CPU, WORDS, LENGTHS = torch.device("cpu"), 30, (11, 6, 1)


def settings(encoder="cnn", **options):
    sizes = {"embedding_size": 6, "hidden_size": 8, "attention_heads": 2, "kernel_sizes": [3], "dropout": 0.5}
    return WordNetwork.model_validate({"kind": "word_network", "encoder": encoder, **sizes, **options})


def network(chosen, source=""):
    torch.manual_seed(0)
    return build_backbone(chosen, source, vocabulary=WORDS, device=CPU)


def batch():
    torch.manual_seed(1)
    mask = torch.arange(max(LENGTHS))[None, :] < torch.tensor(LENGTHS)[:, None]
    return torch.randint(0, WORDS, mask.shape) * mask, mask


@pytest.mark.parametrize("encoder", ENCODERS.names())
def test_states_do_not_depend_on_the_batch_and_are_zero_at_padding(encoder):
    backbone = network(settings(encoder)).double().eval()
    ids, mask = batch()
    states = backbone(ids, mask)
    assert states.shape == (3, 11, backbone.hidden_size)
    for row, n in enumerate(LENGTHS):
        torch.testing.assert_close(backbone(ids[row : row + 1, :n], mask[row : row + 1, :n])[0], states[row, :n])
        assert (states[row, n:] == 0).all()


@pytest.mark.parametrize("encoder", ENCODERS.names())
def test_gradients_are_those_of_finite_differences(encoder):
    backbone = network(settings(encoder, dropout=0)).double()
    ids, mask = batch()
    backbone.embedding.sparse = False  # gradcheck reads dense gradients
    names = [name for name, _ in backbone.named_parameters()]

    def states(*weights):
        return torch.func.functional_call(backbone, dict(zip(names, weights, strict=True)), (ids, mask))

    assert torch.autograd.gradcheck(states, tuple(backbone.parameters()), fast_mode=True)


def test_the_gradient_of_the_vectors_has_the_rows_of_the_batch_alone():
    backbone, (ids, mask) = network(settings()), batch()
    backbone(ids, mask).square().sum().backward()
    gradient = backbone.embedding.weight.grad.coalesce()
    assert gradient.indices()[0].tolist() == sorted(set(ids[mask].tolist())) != list(range(WORDS))


def test_the_convolution_is_that_of_caml():
    backbone = network(settings(kernel_sizes=[4])).double().eval()
    ids, mask = batch()
    weight, bias = backbone.network.convolution.weight.detach().numpy(), backbone.network.convolution.bias.detach()
    states = backbone(ids, mask).detach().numpy()
    for row, n in enumerate(LENGTHS):
        x = np.pad(backbone.embedding.weight.detach().numpy()[ids[row, :n].numpy()], ((1, 2), (0, 0)))
        for j in range(n):
            total = sum(weight[:, :, part] @ x[j + part] for part in range(4)) + bias.numpy()
            np.testing.assert_allclose(states[row, j], np.tanh(total), rtol=1e-11)


@pytest.mark.parametrize("layers", [1, 2])
def test_multi_res_cnn_is_that_of_its_equations(layers):
    backbone = network(settings("multi_res_cnn", kernel_sizes=[3, 5], layers=layers)).double().eval()
    ids, mask = batch()
    states = backbone(ids, mask).detach().numpy()
    weights = {name: value.detach().numpy() for name, value in backbone.network.named_parameters()}
    for row, n in enumerate(LENGTHS):
        x = backbone.embedding.weight.detach().numpy()[ids[row, :n].numpy()]
        parts = []
        for place in range(2):
            f = np.tanh(convolved(x, weights[f"filters.{place}.weight"]) + weights[f"filters.{place}.bias"])
            for block in range(layers):
                first, second, shortcut = (weights[f"blocks.{place}.{block}.{name}.weight"]
                                           for name in ("first", "second", "shortcut"))  # fmt: skip
                f = np.tanh(convolved(np.tanh(convolved(f, first)), second) + convolved(f, shortcut))
            parts.append(f)
        np.testing.assert_allclose(states[row, :n], np.concatenate(parts, 1), rtol=1e-10)


def convolved(x, weight):
    """x (n, e), weight (filters, e, k), k odd -> (n, filters), by loops."""
    k = weight.shape[2]
    wide = np.pad(x, ((k // 2, k // 2), (0, 0)))
    return np.array([sum(weight[:, :, part] @ wide[j + part] for part in range(k)) for j in range(len(x))])


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("encoder", ["bilstm", "bigru"])
def test_recurrent_networks_are_those_of_pytorch_over_each_document_alone(encoder, layers):
    backbone, (ids, mask) = network(settings(encoder, layers=layers)).double().eval(), batch()
    states = backbone(ids, mask)
    x = backbone.embedding.weight[ids] * mask[..., None]
    torch.testing.assert_close(backbone.network.packed(x, mask), states)
    for row, n in enumerate(LENGTHS):
        torch.testing.assert_close(backbone.network.recurrent(x[row, :n])[0], states[row, :n])


@pytest.mark.parametrize("encoder", ["bilstm", "bigru"])
@pytest.mark.parametrize(("layers", "same"), [(1, True), (2, False)])
def test_recurrent_networks_drop_states_between_their_layers(encoder, layers, same):
    recurrent, mask = network(settings(encoder, layers=layers)).network.train(), batch()[1]
    states = torch.randn(*mask.shape, 6)
    assert torch.equal(recurrent(states, mask), recurrent(states, mask)) == same


def test_given_vectors_are_taken_and_words_without_one_start_at_random(tmp_path):
    given = np.random.default_rng(0).normal(size=(WORDS, 6)).astype(np.float32)
    given[7] = 0
    write_arrays(tmp_path / "v.safetensors", {"vectors": given})
    found = network(settings(), str(tmp_path / "v.safetensors")).embedding.weight
    assert found.requires_grad
    np.testing.assert_array_equal(found.detach().numpy()[given.any(1)], given[given.any(1)])
    assert found[7].abs().min() > 0


def test_vectors_of_another_vocabulary_or_size_are_refused(tmp_path):
    for shape in ((WORDS - 1, 6), (WORDS, 5)):
        write_arrays(tmp_path / "v.safetensors", {"vectors": np.ones(shape, np.float32)})
        with pytest.raises(InputError, match="6 numbers for 30 words"):
            network(settings(), str(tmp_path / "v.safetensors"))


@pytest.mark.parametrize(
    ("encoder", "options", "said"),
    [
        ("cnn", {"kernel_sizes": [3, 5]}, "one width for the encoder cnn"),
        ("multi_res_cnn", {"kernel_sizes": [3, 5, 7]}, "a multiple of 3, the number of kernel_sizes"),
        ("bilstm", {"hidden_size": 7, "attention": "laat"}, "an even number"),
    ],
)
def test_sizes_that_do_not_fit_an_encoder_are_refused(encoder, options, said):
    with pytest.raises(InputError, match=said):
        network(settings(encoder, **options))


@pytest.mark.parametrize(("lengths", "split"), [((0, 0, 2, 1), "train"), ((2, 1, 0, 1), "val")])
def test_a_split_whose_documents_have_no_words_is_refused_and_one_such_document_is_left_out(
    tmp_path, corpus_files, lengths, split
):
    def write(sizes):
        rows = [([0] * size, ["a"]) for size in sizes]
        corpus_files(tmp_path, {"train": rows[:2], "val": rows[2:3], "test": rows[3:]}, ["a"])

    write(lengths)
    with pytest.raises(InputError, match=f"{split} split: expected a document with a token, got none"):
        load_training_data(tmp_path, tmp_path)
    write((0, 3, 1, 0))
    assert load_training_data(tmp_path, tmp_path).corpus.documents("train").tolist() == [1]
