"""The library by itself: docs/how-to/library.md as it is printed, and Stage 1 as a function."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from plant.ground.errors import InputError
from plant.ground.settings import Pretraining, Relevance
from plant.model.classifier import LabelClassifier
from plant.serving.library import plant_attention, static_planting

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "library.md"
RECIPE = Pretraining(
    epochs=6, patience=None, batch_size=4, accumulation=1, learning_rate=2e-3, head_learning_rate=2e-2, k=40
)


@pytest.fixture
def own(small_run) -> dict:
    """What the page calls yours."""
    run = small_run("all")
    texts = run.texts("train") + run.texts("val")
    labels = [sorted({int(number) for number in re.findall(r"Sign(\d)", text)}) for text in texts]
    return {"texts": texts, "labels": labels, "folder": str(run.backbone)}


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_runs_as_it_is_printed(own):
    space = dict(own)
    for block in blocks():
        exec(compile(block, str(PAGE), "exec"), space)
    assert len(blocks()) == 5
    assert space["logits"].shape == (8, 9)
    assert [row["epoch"] for row in space["history"]] == list(range(1, len(space["history"]) + 1))
    assert len(space["history"]) >= 3  # patience is 2
    assert space["history"][-1].keys() >= {"epoch", "loss", "ndcg_val"}
    assert 0 < space["loss"].item() < 10
    assert space["ndcg"] == pytest.approx(1.0)
    assert space["chosen"].objective == 1.0
    gains = 1 - 1 / np.log2(3), 1 - 1 / (1 + 1 / np.log2(3))  # of the two documents, by hand
    np.testing.assert_allclose(space["interval"], sorted(gains))
    assert (space["test"].statistic, space["test"].n, space["test"].p) == (0.0, 2, 0.5)


@pytest.fixture
def parts(own):
    """Token ids, labels, an encoder and a label attention."""
    torch.manual_seed(0)
    tokenizer, encoder = AutoTokenizer.from_pretrained(own["folder"]), AutoModel.from_pretrained(own["folder"])
    model = LabelClassifier(None, n_labels=9, hidden_size=32, heads=2)
    return tokenizer(own["texts"])["input_ids"], own["labels"], encoder, model


def test_planting_teaches_the_attention_which_token_tells_of_a_label(parts):
    """The mean attention of a label on the token that best parts its documents from the others, in documents of it."""
    tokens, labels, encoder, model = parts
    has = np.array([np.isin(np.arange(400), ids) for ids in tokens])
    own = np.array([np.isin(np.arange(9), some) for some in labels])
    sign = [int(np.argmax(has[own[:, label]].mean(0) - has[~own[:, label]].mean(0))) for label in range(9)]

    def share() -> float:
        found = []
        with torch.no_grad():
            for ids, some in zip(tokens, labels, strict=True):
                hidden = encoder(torch.tensor([ids])).last_hidden_state
                s = model.attention.token_probabilities(hidden, torch.tensor([some]), None)[0]
                found += [float(s[row, np.array(ids) == sign[label]].sum()) for row, label in enumerate(some)]
        return float(np.mean(found))

    before = share()
    history = plant_attention(model, tokens, labels, encoder=encoder, recipe=RECIPE)
    assert history[-1]["ndcg_val"] > history[0]["ndcg_val"] > 0
    assert share() > 1.5 * before


def test_only_what_ranks_is_trained_and_the_random_state_stays(parts):
    tokens, labels, encoder, model = parts
    encoder.requires_grad_(False)
    frozen = {name: one.clone() for name, one in encoder.state_dict().items()}
    head = {name: one.clone() for name, one in model.head.state_dict().items()}
    embeddings, state = model.attention.embeddings.detach().clone(), torch.get_rng_state()
    plant_attention(model, tokens, labels, encoder=encoder, recipe=RECIPE.model_copy(update={"epochs": 1}))
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training and model.attention.training and not encoder.training  # what a fresh model and encoder say
    assert all(torch.equal(one, frozen[name]) for name, one in encoder.state_dict().items())
    assert all(torch.equal(one, head[name]) for name, one in model.head.state_dict().items())
    assert not torch.equal(model.attention.embeddings, embeddings)
    assert model.backbone is None


@pytest.mark.parametrize(("change", "expected"), [
    ({"labels": [[0]]}, "1 lists of labels"),
    ({"labels": [[9], [-1], [0]] * 15}, "labels from 0 to 8"),
    ({"validation": 0.0}, "between 0 and 1"),
    ({"labels": [[]] * 45}, "label_min_documents"),
    ({"recipe": RECIPE.model_copy(update={"lists": "vocabulary"})}, "lists: vocabulary"),
    ({"recipe": RECIPE.model_copy(update={"measure": "description"})}, "got 'description'"),
    ({"recipe": RECIPE.model_copy(update={"measure": "migg"})}, "Did you mean 'mig'"),
])  # fmt: skip
def test_what_does_not_belong_together_is_one_error(parts, change, expected):
    tokens, labels, encoder, model = parts
    options = {"labels": labels, "recipe": RECIPE, **change}
    with pytest.raises(InputError, match=expected):
        plant_attention(model, tokens, options.pop("labels"), encoder=encoder, **options)


def by_hand(tokens: list[list[int]], labels: list[list[int]], label: int, ids: list[int]) -> np.ndarray:
    """Normalised mutual information of a label with each token of a document, where presence speaks for the label."""
    found = {}
    own = np.array([label in some for some in labels])
    for token in sorted({token for document in tokens for token in document}):
        has = np.array([token in document for document in tokens])
        value = 0.0
        for a, b in ((own, has), (own, ~has), (~own, has), (~own, ~has)):
            if (joint := (a & b).mean()) > 0:
                value += joint * np.log(joint / (a.mean() * b.mean()))
        found[token] = value
    return np.array([found.get(token, 0.0) / max(found.values()) for token in ids])


def test_static_planting_adds_the_mutual_information_of_the_training_documents():
    """Oracle: the definition, token by token. Relevance is a whole number of 2^-24; the padding gets nothing."""
    random = np.random.default_rng(0)
    tokens = [random.integers(5, 30, 12).tolist() for _ in range(40)]
    labels = [[label for label in range(3) if 5 + label in document] for document in tokens]
    new = torch.tensor([[5, 6, 9, 29, 999], [7, 7, 5, 0, 0]])  # 999 is in no training document
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    known = static_planting(tokens, labels, n_labels=3, strength=2.0, relevance=Relevance())(new, mask)
    assert known.bias is None
    for row, length in enumerate((5, 3)):
        added = known.weights(row, None)
        assert added.shape == (3, length)
        expected = [2 * by_hand(tokens, labels, label, new[row, :length].tolist()) for label in range(3)]
        np.testing.assert_allclose(added, expected, atol=1e-6)
        assert torch.equal(known.weights(row, torch.tensor([2, 0])), added[[2, 0]])


def test_static_planting_before_the_softmax_moves_the_attention_to_the_planted_token(parts):
    """With a large strength nearly all attention is on its places, so that the logit is that of these places alone."""
    tokens, labels, encoder, model = parts
    known = static_planting(tokens, labels, n_labels=9, strength=2000.0, place="scores")
    ids, mask = torch.tensor([tokens[0]]), torch.ones(1, len(tokens[0]), dtype=torch.bool)
    (label,) = labels[0][:1]
    bias = known(ids, mask).bias(0, None)[label]
    best = (bias == bias.max()).nonzero()[:, 0]
    with torch.no_grad():
        hidden = encoder(ids).last_hidden_state
        logit = model.logits(hidden, mask, known=known(ids, mask))[0, label]
        alone = model.logits(hidden[:, best], mask[:, best])[0, label]
    torch.testing.assert_close(logit, alone, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(("change", "expected"), [
    ({"strength": 0.0}, "a strength above 0"),
    ({"place": "keys"}, "'keys'"),
    ({"labels": [[]] * 45}, "a token in enough documents"),
])  # fmt: skip
def test_static_planting_with_nothing_to_plant_is_one_error(parts, change, expected):
    options = {"labels": parts[1], **change}
    with pytest.raises(InputError, match=expected):
        static_planting(parts[0], options.pop("labels"), n_labels=9, **options)


def test_shuffled_relevance_is_that_of_other_labels_and_the_same_again():
    tokens, labels = [[5, 6], [6, 7], [5, 8], [7, 9]] * 5, [[0], [1], [0], [1]] * 5
    ids, mask = torch.tensor([[5, 6, 7, 8, 9]]), torch.ones(1, 5)
    mig, one, again = (
        static_planting(tokens, labels, n_labels=2, measure=name)(ids, mask).weights(0, None)
        for name in ("mig", "shuffled", "shuffled")
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, mig)


def test_padding_before_the_tokens_is_refused():
    static = static_planting([[5, 6], [6, 7]] * 3, [[0], [1]] * 3, n_labels=2)
    ids, mask = torch.tensor([[0, 5, 6], [5, 6, 7]]), torch.tensor([[0, 1, 1], [1, 1, 1]])
    with pytest.raises(InputError, match="expected padding at the end, got padding before a token"):
        static(ids, mask)
    assert static(ids.flip(1), mask.flip(1)).weights(0, None).shape == (2, 2)
