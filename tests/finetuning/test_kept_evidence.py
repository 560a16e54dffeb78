"""Evidence kept in Stage 2: look-up by token against loops, training and prediction alike, files that do not fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from plant.finetuning.candidates import Shortlist
from plant.finetuning.finetune import batch_loss, finetune
from plant.finetuning.kept_evidence import by_token, keep_evidence
from plant.finetuning.losses import find_loss
from plant.finetuning.scoring import predict_candidates, predict_logits
from plant.ground.errors import InputError
from plant.ground.files import write_arrays
from plant.ground.settings import Finetuning
from plant.model.assemble import TrainingData, load_weights, save_weights
from plant.model.batches import multi_hot, pad_documents
from plant.model.fitting import TrainingRun
from plant.pretraining.lists import load_top_tokens

CPU = torch.device("cpu")
RECIPE = {"epochs": 12, "patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.02,
          "head_learning_rate": 0.02, "hard_negatives": 3}  # fmt: skip


# a full list of 9 labels, of which 1, 4 and 8 are not trained
TRAINED = np.array([0, 2, 3, 5, 6, 7])
_random = np.random.default_rng(2)
ROWS = {(int(_random.integers(9)), int(_random.integers(200))): float(_random.random()) for _ in range(400)}
ROWS |= {(int(label), 10 + i): 1.0 for i, label in enumerate(TRAINED)} | {(0, 150): 0.0}


@pytest.fixture
def data(toy):
    return TrainingData(toy, TRAINED, list("abcdefghi"))


def dense(toy, documents):
    """r of every trained label at every position, by loops; 0 at padding."""
    width = max(len(toy.tokens(document)) for document in documents)
    out = torch.zeros(len(documents), 6, width)
    for row, document in enumerate(documents):
        for j, token in enumerate(toy.tokens(document)):
            for i, label in enumerate(TRAINED):
                out[row, i, j] = ROWS.get((int(label), int(token)), 0.0)
    return out


@pytest.mark.parametrize("labels", [None, [5, 5, 0], []])
def test_relevance_by_token_is_that_of_loops_and_of_the_lists(data, tmp_path, labels, relevance_file):
    top = load_top_tokens(relevance_file(tmp_path / "mig.safetensors", ROWS), data, k=None)
    static = by_token(top, 2)
    asked = None if labels is None else np.array(labels, dtype=np.int64)
    rows = range(6) if labels is None else labels
    for document in range(30):
        tokens = data.corpus.tokens(document)
        found = static(asked, tokens) / 2
        np.testing.assert_array_equal(found, dense(data.corpus, [document])[0][list(rows)].numpy())
        listed = np.maximum(top.relevance_of(np.array(rows, dtype=np.int64), tokens), 0)
        np.testing.assert_array_equal(found, listed)


@pytest.fixture
def kept(data, tmp_path, relevance_file):
    """(model, whole, recipe) -> data with evidence, settings, log-odds of the trained labels."""
    static = relevance_file(tmp_path / "mig.safetensors", ROWS)
    odds = np.random.default_rng(1).normal(size=30 * 9).astype(np.float16)
    write_arrays(tmp_path / "r.safetensors", {"log_odds": odds})

    def keep(model, whole=True, **recipe):
        settings, files = Finetuning(**RECIPE | recipe), {"static": static, "residual": tmp_path / "r.safetensors"}
        found = keep_evidence(data, model, settings, **files, whole=whole)
        return found, settings, torch.from_numpy(odds.reshape(30, 9)[:, TRAINED].astype(np.float32))

    return keep


@pytest.mark.usefixtures("both_devices")
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("recipe", [{"static_attention": 2.5}, {"residual": 3}, {"static_attention": 1, "residual": 3}])
def test_prediction_and_loss_are_those_of_the_literal_form(kept, whole, recipe, literal_logits, make):
    model = make()
    data, settings, odds = kept(model, whole, **recipe)
    documents = np.array([7, 2, 9, 0])
    padded = pad_documents(data.corpus, documents, CPU)
    hidden = model.hidden_states(padded)
    expected = literal_logits(model, hidden, padded.mask, settings.static_attention * dense(data.corpus, documents))
    if settings.residual:
        assert model.head.evidence.item() == 0
        torch.nn.init.constant_(model.head.evidence, -1.5)
        expected = expected + np.log1p(np.exp(-1.5)) * odds[documents]
    found = predict_logits(model, data.corpus, documents, batch_size=2)
    np.testing.assert_allclose(found, expected.detach(), rtol=1e-4, atol=1e-5)
    assert not np.allclose(found, literal_logits(model, hidden, padded.mask).detach(), atol=1e-3)
    states = model.backbone.table.weight.detach().numpy()[data.corpus.input_ids].astype(np.float16)
    cached = replace(data.corpus, features=states)
    np.testing.assert_allclose(predict_logits(model, cached, documents, batch_size=2), found, atol=5e-3)

    shortlist = Shortlist(np.tile(np.array([5, 1, 3], np.int32), (30, 1)), np.arange(6), 3)
    lists, some = predict_candidates(model, data.corpus, documents, shortlist, batch_size=2)
    np.testing.assert_allclose(some, np.take_along_axis(found, lists.labels, 1), rtol=1e-4, atol=1e-5)

    value, _ = batch_loss(model, data.corpus, documents, settings.model_copy(update={"hard_negatives": None}))
    truth = multi_hot(data.corpus, documents, 6, CPU)
    losses = find_loss(settings)(expected, truth, n_labels=6)
    assert value.item() == pytest.approx(losses.sum().item(), rel=1e-4)


@pytest.mark.parametrize("m", [1, 2])
def test_two_passes_of_mining_keep_the_evidence(kept, monkeypatch, m, make):
    two, one = make(), make()
    kept_data, settings, _ = kept(two, static_attention=2, residual=3, hard_negatives=m)
    one.head.weigh_evidence()
    batch, values = np.array([0, 3, 5, 11]), []
    for model, passes in ((two, 1), (one, 4)):
        monkeypatch.setattr("plant.finetuning.finetune.ONE_PASS", passes)
        value, _ = batch_loss(model, kept_data.corpus, batch, settings)
        value.backward()
        values.append(value.item())
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    for a, b in zip(two.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)
    assert two.head.evidence.grad.abs() > 0


def test_the_weight_is_trained_saved_and_read_again(data, tmp_path, make):
    model = make()
    settings = Finetuning(**RECIPE | {"hard_negatives": None, "gamma": 0, "epsilon": 0, "residual": 3})
    # evidence that is right: the truth itself
    table = np.full((30, 9), -1, np.float16)
    for document in range(30):
        table[document, TRAINED[data.corpus.labels(document)]] = 1
    write_arrays(tmp_path / "r.safetensors", {"log_odds": table.ravel()})
    kept_data = keep_evidence(data, model, settings, static=None, residual=tmp_path / "r.safetensors", whole=True)
    finetune(model, kept_data.corpus, settings, TrainingRun(0, tmp_path / "c", "d"))
    assert model.head.evidence.item() > 0.05
    save_weights(model, tmp_path / "w", head=True)
    again = make(seed=1)
    kept_again = keep_evidence(data, again, settings, static=None, residual=tmp_path / "r.safetensors", whole=True)
    load_weights(again, tmp_path / "w", head=True)
    again.backbone.load_state_dict(model.backbone.state_dict())
    documents = data.corpus.documents("test")
    np.testing.assert_array_equal(
        predict_logits(model, kept_data.corpus, documents, batch_size=4),
        predict_logits(again, kept_again.corpus, documents, batch_size=4),
    )


def test_a_recipe_that_keeps_nothing_changes_nothing(data, make):
    model = make()
    assert keep_evidence(data, model, Finetuning(), static=None, residual=None, whole=True) is data
    assert model.head.evidence is None


MISFITS = {
    "log-odds of another corpus": ({"residual": 2}, "residual", "30 documents and 9 labels, got 261 numbers"),
    "relevance of other labels": ({"static_attention": 1}, "static", "expected 9 labels, got 10"),
}


@pytest.mark.parametrize(("recipe", "given", "message"), MISFITS.values(), ids=MISFITS)
def test_a_file_that_does_not_fit_is_one_clear_error(data, tmp_path, make, relevance_file, recipe, given, message):
    relevance_file(tmp_path / "static", ROWS | {(9, 3): 1.0})
    write_arrays(tmp_path / "residual", {"log_odds": np.zeros(29 * 9, np.float16)})
    files = {"static": None, "residual": None, given: tmp_path / given}
    with pytest.raises(InputError, match=message):
        keep_evidence(data, make(), Finetuning(**recipe), **files, whole=True)
