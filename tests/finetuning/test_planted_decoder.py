"""The decoder of the earlier version: Eq. 7 by hand, segments with a state, unfreezing layer by layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from plant.finetuning.finetune import parameter_groups
from plant.finetuning.kept_evidence import keep_evidence
from plant.ground.settings import Finetuning, WordNetwork
from plant.model.assemble import TrainingData, load_weights, save_weights
from plant.model.batches import Corpus, pad_documents
from plant.model.classifier import Documents, LabelClassifier
from plant.model.l2r import L2R
from plant.model.registry import build_backbone

LABELS, WORDS, CPU = 3, 10, torch.device("cpu")
RELEVANCE = np.zeros((LABELS, WORDS), dtype=np.float32)
RELEVANCE[0, [2, 5]] = 1.0, 0.25
RELEVANCE[1, 7] = 1.0
RELEVANCE[2, [1, 2]] = 0.5, 1.0


def data() -> TrainingData:
    corpus = Corpus.of([[2, 5, 2, 8, 1], [7, 3]], [[0, 2], [1]], splits={"train": 2})
    return TrainingData(corpus, np.arange(LABELS), ["a", "b", "c"])


def classifier(*, l2r: bool = True, attention: str = "per_label") -> LabelClassifier:
    settings = WordNetwork.model_validate({
        "kind": "word_network", "encoder": "awd_lstm", "embedding_size": 6, "hidden_size": 8, "layers": 2,
        "dropout": 0.0, "attention": attention, "attention_heads": 2,
    })  # fmt: skip
    torch.manual_seed(0)
    backbone = build_backbone(settings, "", vocabulary=WORDS, device=CPU)
    model = LabelClassifier(backbone, n_labels=LABELS, hidden_size=6, attention=attention, heads=2, pool_size=2)
    if l2r:
        model.attention.l2r = L2R(LABELS, WORDS, size=4, hidden=5)
    return model


@pytest.fixture
def relevance(tmp_path, relevance_file):
    rows = {(int(i), int(j)): RELEVANCE[i, j] for i, j in zip(*RELEVANCE.nonzero(), strict=True)}
    return relevance_file(tmp_path / "mig.safetensors", rows, labels=LABELS)


def logits(model: LabelClassifier, recipe: Finetuning, relevance: object) -> tuple[Tensor, Documents]:
    whole = keep_evidence(data(), model, recipe, static=relevance, residual=None, whole=True)  # type: ignore[arg-type]
    model.eval()
    documents = pad_documents(whole.corpus, np.array([0, 1]), CPU)
    return model.logits(model.hidden_states(documents), documents.mask, known=documents.known), documents


def equation_7(model: LabelClassifier, document: int, *, static: float, differentiable: float, k: int | None) -> Tensor:
    """The logits of one document, label by label: A, S and P as loops over tokens."""
    corpus = data().corpus
    ids = torch.from_numpy(corpus.tokens(document).astype(np.int64))
    hidden = model.backbone(ids[None], torch.ones(1, len(ids), dtype=torch.bool))[0]  # type: ignore[misc]
    out = []
    for label in range(LABELS):
        a = (hidden @ model.attention.embeddings[label]).softmax(0)
        s = torch.tensor([RELEVANCE[label, int(word)] for word in ids])
        f = model.attention.l2r.scores(torch.tensor([label]), ids)[0]
        if k is not None and k <= len(f):
            f = torch.where(f >= f.sort(descending=True).values[k - 1], f, -torch.inf)
        weights = a + static * s + differentiable * f.softmax(0)
        v = (weights[:, None] * hidden).sum(0) * model.head.weight[label]
        out.append(v.sum() + model.head.bias[label])
    return torch.stack(out)


@pytest.mark.parametrize(
    ("static", "differentiable", "k"), [(1.0, 1.0, None), (1.0, 1.0, 2), (0.0, 1.0, 2), (2.0, 0.0, None)]
)
def test_the_logits_are_those_of_equation_7(relevance: object, static: float, differentiable: float, k: int) -> None:
    model = classifier()
    recipe = Finetuning.model_validate({
        "static_attention": static, "static_place": "weights", "differentiable_attention": differentiable,
        "inattention": k,
    })  # fmt: skip
    got, _ = logits(model, recipe, relevance)
    for document in range(2):
        expected = equation_7(model, document, static=static, differentiable=differentiable, k=k)
        torch.testing.assert_close(got[document], expected, atol=1e-6, rtol=1e-5)


def test_the_ranking_model_learns_from_the_loss_and_relevance_does_not(relevance: object) -> None:
    model = classifier()
    recipe = Finetuning.model_validate({"differentiable_attention": 1.0, "inattention": 2})
    got, _ = logits(model, recipe, relevance)
    got.sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.attention.l2r.parameters())


def test_static_weights_work_on_the_attention_of_the_paper_too(relevance: object) -> None:
    """Eq. 7 with the heads of Eq. 1: S weighs the values of every head."""
    model = classifier(l2r=False, attention="multi_head")
    recipe = Finetuning.model_validate({"static_attention": 1.0, "static_place": "weights"})
    got, documents = logits(model, recipe, relevance)
    plain = model.logits(model.hidden_states(documents), documents.mask)
    values = model.attention.value(model.hidden_states(documents))  # (B, n, h)
    s = torch.zeros(2, LABELS, documents.mask.shape[1])
    for row in range(2):
        words = data().corpus.tokens(row)
        s[row, :, : len(words)] = torch.from_numpy(RELEVANCE[:, words])
    vectors, _ = model.head.label_vectors(model.attention)
    expected = plain + ((s @ values) * vectors).sum(-1)
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("state", ["sum", "tanh"])
@pytest.mark.parametrize("segment", [2, 3, 72])
def test_segments_are_attended_one_after_the_other_and_their_state_goes_on(
    relevance: object, state: str, segment: int
) -> None:
    model = classifier()
    recipe = Finetuning.model_validate({
        "segment": segment, "decoder_state": state, "static_attention": 1.0, "static_place": "weights",
    })  # fmt: skip
    got, documents = logits(model, recipe, relevance)
    hidden = model.hidden_states(documents)
    for row, n in enumerate(documents.mask.sum(1).tolist()):
        words = data().corpus.tokens(row)
        for label in range(LABELS):
            d = torch.zeros(6)
            for start in range(0, n, segment):
                part = hidden[row, start : min(start + segment, n)]
                weights = (part @ model.attention.embeddings[label]).softmax(0)
                weights = weights + torch.from_numpy(RELEVANCE[label, words[start : start + segment]])
                d = d + (weights[:, None] * part).sum(0) * model.head.weight[label]
                d = d if state == "sum" else d.tanh()
            expected = d.sum() + model.head.bias[label]
            torch.testing.assert_close(got[row, label], expected, atol=1e-6, rtol=1e-5)


def test_only_the_ranking_model_has_the_slower_rate() -> None:
    model = classifier()
    groups = {g.name: g for g in parameter_groups(model, Finetuning(head_learning_rate=0.3, attention_rate=1 / 3))}
    assert {id(p) for p in groups["planted"].parameters} == {id(p) for p in model.attention.l2r.parameters()}
    assert groups["planted"].learning_rate == pytest.approx(0.1)
    assert id(model.attention.embeddings) in {id(p) for p in groups["head"].parameters}


def test_layers_begin_to_train_one_epoch_after_the_other() -> None:
    model = classifier()
    groups = parameter_groups(model, Finetuning(unfreezing="gradual", backbone_from_epoch=2))[2:]
    assert [group.from_epoch for group in groups] == [2, 3, 4]
    network, embedding = model.backbone.network, model.backbone.embedding  # type: ignore[union-attr]
    assert groups[0].parameters[0] is network.layers[1].w_x and groups[-1].parameters == [embedding.weight]
    assert sum(len(group.parameters) for group in groups) == len([*model.backbone.parameters()])  # type: ignore[union-attr]


def test_a_saved_ranking_model_comes_back_with_the_attention(tmp_path) -> None:  # type: ignore[no-untyped-def]
    first, second = classifier(), classifier(l2r=False)
    save_weights(first, tmp_path, head=True)
    load_weights(second, tmp_path, head=True)
    assert torch.equal(second.attention.l2r.words, first.attention.l2r.words)
