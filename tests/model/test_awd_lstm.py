"""The AWD-LSTM: a naive loop as oracle, segments, directions, dropout; and the language model it starts from."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from plant.ground.checkpoints import save_tensors
from plant.ground.errors import InputError
from plant.ground.settings import LanguageModel, WordNetwork
from plant.model.batches import Corpus
from plant.model.encoders.awd_lstm import AwdLstm, AwdLstmBackbone, LSTMLayer
from plant.model.fitting import TrainingRun
from plant.model.language_model import NextToken, load_language_model, start_encoder, train_language_model
from plant.model.registry import build_backbone

CPU = torch.device("cpu")


def settings(**changes: object) -> WordNetwork:
    base = {"kind": "word_network", "encoder": "awd_lstm", "embedding_size": 6, "hidden_size": 10, "layers": 3}
    return WordNetwork.model_validate({**base, "attention": "per_label", "dropout": 0.0, **changes})


def backbone(seed: int = 0, **changes: object) -> AwdLstmBackbone:
    torch.manual_seed(seed)
    return build_backbone(settings(**changes), "", vocabulary=12, device=CPU)


def batch() -> tuple[Tensor, Tensor]:
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 0, 0, 0, 0]])
    mask = torch.tensor([[True] * 7, [True] * 3 + [False] * 4])
    return ids, mask


def by_hand(layer: LSTMLayer, inputs: Tensor) -> Tensor:
    """One LSTM layer over one document (n, e), gate by gate, as in Hochreiter's equations with a forget gate."""
    h, c, out = torch.zeros(layer.hidden).double(), torch.zeros(layer.hidden).double(), []
    w_x, w_h, b = layer.w_x.double(), layer.w_h.double(), (layer.b_x + layer.b_h).double()
    for x in inputs.double():
        i, f, g, o = (w_x @ x + w_h @ h + b).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        out.append(h)
    return torch.stack(out)


def test_the_states_are_those_of_a_loop_over_tokens_layer_by_layer() -> None:
    model = backbone().eval()
    ids, mask = batch()
    states = model(ids, mask)
    for row, n in enumerate(mask.sum(1)):
        expected = model.embedding.weight[ids[row, :n]].double()
        for layer in model.network.layers:  # type: ignore[union-attr]
            expected = by_hand(layer, expected)
        torch.testing.assert_close(states[row, :n].double(), expected, atol=1e-6, rtol=1e-5)
        assert not states[row, n:].any()


@pytest.mark.parametrize("segment", [1, 2, 3, 100])
def test_segments_change_no_state_and_cut_the_gradient(segment: int) -> None:
    ids, mask = batch()
    whole, cut = backbone().eval(), backbone(options={"segment": segment}).eval()
    torch.testing.assert_close(cut(ids, mask), whole(ids, mask), atol=1e-6, rtol=1e-5)
    cut(ids[:1], mask[:1])[0, -1].sum().backward()
    reached = cut.embedding.weight.grad.to_dense().any(1)
    last = ids[0, (7 - 1) // segment * segment :] if segment < 7 else ids[0]
    assert set(reached.nonzero()[:, 0].tolist()) == set(last.tolist())


def test_backward_reading_is_forward_reading_of_the_reversed_document() -> None:
    ids, mask = batch()
    forward, backward = backbone().eval(), backbone(options={"backward": True}).eval()
    states = backward(ids, mask)
    for row, n in enumerate(mask.sum(1)):
        turned = forward(ids[row : row + 1, :n].flip(1), mask[row : row + 1, :n])
        torch.testing.assert_close(states[row : row + 1, :n], turned.flip(1), atol=1e-6, rtol=1e-5)


def test_what_drops_out_is_the_same_for_all_tokens_of_a_document() -> None:
    torch.manual_seed(0)
    words = build_backbone(settings(options={"word_dropout": 0.5}), "", vocabulary=1000, device=CPU).train()
    twice = words.embed(torch.arange(1000).expand(2, -1))
    assert torch.equal(twice[0], twice[1])
    assert 0.4 < (twice[0] == 0).all(1).float().mean() < 0.6
    layer = LSTMLayer(4, 50, dropout=0.5).train()
    dropped = layer.recurrent_weights() == 0
    assert 0.4 < dropped.float().mean() < 0.6
    assert torch.equal(layer.eval().recurrent_weights(), layer.w_h)
    network = AwdLstm(400, 400, 2, segment=9, dropouts={"input": 0.5, "hidden": 0.25, "weight": 0.0}, backward=False)
    seen: list[Tensor] = []
    for each in network.layers:
        each.register_forward_pre_hook(lambda _, given: seen.append(given[0] == 0))
    network(torch.ones(2, 5, 400), torch.ones(2, 5, dtype=torch.bool))
    for zeros, rate in zip(seen, (0.5, 0.25), strict=True):
        assert (zeros == zeros[:, :1]).all() and not torch.equal(zeros[0], zeros[1])
        assert zeros.float().mean().item() == pytest.approx(rate, abs=0.08)


@pytest.mark.parametrize("backward", [False, True])
def test_the_likelihood_is_the_sum_over_pairs_of_neighbours(backward: bool) -> None:
    model = NextToken(backbone(options={"backward": backward})).eval()
    with torch.no_grad():
        model.bias.normal_()
        ids, mask = batch()
        total, count = model.log_likelihood(ids, mask)
        states, expected = model.backbone(ids, mask).double(), 0.0
        for row, n in enumerate(mask.sum(1).tolist()):
            for j in range(n - 1):
                known, asked = (j + 1, j) if backward else (j, j + 1)
                logits = model.backbone.embedding.weight.double() @ states[row, known] + model.bias.double()
                expected += float(logits.log_softmax(0)[ids[row, asked]])
    assert count == 6 + 2
    assert float(total) == pytest.approx(expected, rel=1e-5)


def chain(documents: int = 40, length: int = 20) -> Corpus:
    """Documents that count upwards modulo 12: a token says the next one for certain."""
    random = np.random.default_rng(0)
    ids = (random.integers(0, 12, (documents, 1)) + np.arange(length)) % 12
    return Corpus.of(ids, splits={"train": 30, "val": 5, "test": 5})


def test_the_language_model_learns_a_chain_and_its_weights_come_back(tmp_path: Path) -> None:
    model = backbone()
    how = LanguageModel(epochs=25, patience=None, batch_size=5, accumulation=1, learning_rate=0.02)
    history = train_language_model(model, chain(), how, TrainingRun(0, tmp_path / "checkpoint", "x"), device=CPU)
    assert history[0]["perplexity"] > 6
    assert min(row["perplexity"] for row in history) < 2.5  # of 12: chance is 12
    assert all(row["perplexity"] == pytest.approx(math.exp(-row["log_likelihood"])) for row in history)
    save_tensors(tmp_path / "lm.safetensors", model.state_dict())
    other = backbone(seed=1)
    load_language_model(other, tmp_path / "lm.safetensors")
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters(), strict=True))


def test_a_language_model_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    save_tensors(tmp_path / "lm.safetensors", backbone().state_dict())
    torch.manual_seed(0)
    larger = build_backbone(settings(), "", vocabulary=13, device=CPU)
    with pytest.raises(InputError, match=r"of this vocabulary .* embedding.weight: .*12, 6.*13, 6"):
        load_language_model(larger, tmp_path / "lm.safetensors")


def test_published_weights_come_by_word_and_unknown_words_get_the_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    given = build_backbone(settings(), "", vocabulary=4, device=CPU)
    words = torch.tensor([*b"fever\nof\nunknown\norigin"], dtype=torch.uint8)
    save_tensors(tmp_path / "start.safetensors", {**given.state_dict(), "words": words})
    tokens = SimpleNamespace(vocabulary=["cough", "fever", "origin"])
    monkeypatch.setattr("plant.model.language_model.load_tokens", lambda _: tokens)
    how = settings(language_model={"start": str(tmp_path / "start.safetensors")})
    model, facts = start_encoder(how, tmp_path)
    vectors = given.embedding.weight
    torch.testing.assert_close(model.embedding.weight, torch.stack([vectors.mean(0), vectors[0], vectors[3]]))
    assert torch.equal(model.network.layers[1].w_h, given.network.layers[1].w_h)  # type: ignore[index, union-attr]
    assert facts == {"words": 3, "words_in_start": 2}
    tokens.vocabulary = ["fiebre", "tos"]
    with pytest.raises(InputError, match="words of this corpus, in lower case, got none"):
        start_encoder(how, tmp_path)


OPTIONS = [{"segment": 0}, {"segment": 2.5}, {"backward": "false"}, {"frozen": 1}, {"input_dropout": 1},
           {"word_dropout": "x"}]  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_a_value_that_an_option_cannot_have_is_one_clear_error(option: dict[str, object]) -> None:
    """Words are true for Python: `backward: "false"` was read backward."""
    (name,) = option
    with pytest.raises(InputError, match=rf"backbone: options\.{name}: expected "):
        backbone(options=option)
