"""The scale that is fitted after Stage 1 (choice C39)."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from torch.nn.functional import dropout

from plant.ground.settings import Pretraining
from plant.model.batches import pad_documents
from plant.model.fitting import TrainingRun
from plant.pretraining.pretrain import TokenRanking, pretrain
from plant.pretraining.scale import fit_scale, scale_attention

SETTINGS = Pretraining(batch_size=4)


def cross_entropies(model, corpus, top, scales):
    """Mean of - p log softmax(c s) over documents and labels, one list at a time, for each scale."""
    sums, count = np.zeros(len(scales)), 0
    for document in corpus.documents("train"):
        labels = corpus.labels(document)
        padded = pad_documents(corpus, np.array([document]), torch.device("cpu"))
        hidden = model.hidden_states(padded)
        scores = model.attention.token_logits(hidden, torch.from_numpy(labels)[None]).detach().double().numpy()[0]
        for row, relevance in zip(scores, top.relevance_of(labels, corpus.tokens(document)), strict=True):
            r = np.maximum(relevance, 0).astype(float)
            if r.sum():
                sums -= [(r / r.sum()) @ log_softmax(c * row) for c in scales]
                count += 1
    return sums / count


def test_the_scale_has_the_least_cross_entropy_of_a_fine_grid(toy, indicators, make) -> None:
    model, top = make(), indicators
    with torch.no_grad():  # scores that rank the indicator first, and are almost flat
        keys = model.attention.key(model.backbone.table.weight[10:16])
        model.attention.query.weight.zero_()
        model.attention.query.bias.zero_()
        model.attention.query.weight[:, :6] = 0.3 * keys.T
        model.attention.embeddings.zero_()
        model.attention.embeddings[:, :6] = torch.eye(6)
    scale = fit_scale(TokenRanking(model, toy, top, settings=SETTINGS, seed=0))
    grid = np.geomspace(1e-2, 1e3, 400)
    costs = cross_entropies(model, toy, top, [*grid, scale])
    assert costs[-1] <= costs[:-1].min() + 1e-6
    assert 1 < scale < 1e3


@pytest.mark.parametrize("attention", ["multi_head", "laat", "cross_attention"])
def test_scaling_multiplies_all_scores_and_keeps_the_order(toy, attention, indicators, make) -> None:
    model = make(attention=attention)
    documents = pad_documents(toy, toy.documents("train")[:4], torch.device("cpu"))
    hidden, labels = model.hidden_states(documents), torch.arange(6).expand(4, 6)
    before = model.attention.token_logits(hidden, labels)
    scale = scale_attention(TokenRanking(model, toy, indicators, settings=SETTINGS, seed=0))
    torch.testing.assert_close(model.attention.token_logits(hidden, labels), scale * before)


def test_a_run_that_died_before_the_scale_was_fitted_ends_with_the_same_bits(
    toy, tmp_path, monkeypatch, indicators, make
):
    """The resumed run has no epoch left, so nothing but the fit itself switches dropout off."""
    recipe = Pretraining(epochs=1, batch_size=4, scale="fitted")

    def run(folder):
        model = make()
        model.backbone.register_forward_hook(lambda module, _, states: dropout(states, 0.5, module.training))
        pretrain(model, toy, indicators, recipe, TrainingRun(0, folder, "d"))
        return model.attention.query.weight

    def killed(_):
        raise KeyboardInterrupt

    whole = run(tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("plant.pretraining.pretrain.scale_attention", killed)
        run(tmp_path / "part")
    assert torch.equal(run(tmp_path / "part"), whole)


def test_without_relevance_the_scale_is_1(toy, indicators, make) -> None:
    ranking = TokenRanking(make(), toy, indicators, settings=SETTINGS, seed=0)
    ranking.top.relevance[:] = 0
    assert fit_scale(ranking) == 1.0


@pytest.mark.parametrize("keys", [{"keep_epochs": True}, {"lists": "vocabulary"}], ids=str)
def test_a_scale_that_cannot_be_fitted_is_refused(keys) -> None:
    with pytest.raises(ValueError, match="scale: fitted"):
        Pretraining(scale="fitted", **keys)
