"""Stage 1 as a whole: planted pairs come first, only the planted parts move, labels are sampled as asked."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from plant.ground.errors import InputError
from plant.ground.settings import Pretraining, WordNetwork
from plant.model.batches import Corpus, pad_documents
from plant.model.classifier import LabelClassifier
from plant.model.fitting import TrainingRun
from plant.model.registry import build_backbone
from plant.pretraining import losses
from plant.pretraining.lists import TopTokens
from plant.pretraining.losses import STAGE_1_LOSSES
from plant.pretraining.losses.approx_ndcg import approx_ndcg_loss
from plant.pretraining.losses.mse import mse_loss
from plant.pretraining.losses.pairwise import pairwise_loss_dense
from plant.pretraining.ndcg import ndcg
from plant.pretraining.pretrain import TokenRanking, pretrain

CPU = torch.device("cpu")

RECIPE = {"epochs": 12, "patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.02,
          "head_learning_rate": 0.02, "negatives": 2}  # fmt: skip


# share of lists whose indicator is above all tokens, also those that no list ranks; by chance about one in ten
HITS = [
    ("multi_head", {}, 0.9), ("per_label", {}, 0.8), ("laat", {}, 0.8), ("cross_attention", {}, 0.8),
    ("multi_head", {"objective": "mse"}, 0.6), ("multi_head", {"scores": "probabilities", "sigma": 20.0}, 0.9),
    ("multi_head", {"objective": "approx_ndcg"}, 0.5), ("multi_head", {"reweight": True}, 0.4),
]  # fmt: skip


def word_network(attention):
    """States that show their word by a convolution of width 1; word vectors from far enough apart."""
    torch.manual_seed(0)
    sizes = {"embedding_size": 16, "hidden_size": 16, "kernel_sizes": [1], "dropout": 0}
    settings = WordNetwork.model_validate({"kind": "word_network", "encoder": "cnn", "attention": attention, **sizes})
    backbone = build_backbone(settings, "", vocabulary=200, device=torch.device("cpu"))
    torch.nn.init.normal_(backbone.embedding.weight)
    return LabelClassifier(backbone, n_labels=6, hidden_size=16, attention=attention)


@pytest.mark.parametrize(("attention", "change", "least"), HITS, ids=str)
def test_stage_1_ranks_the_planted_token_first_and_trains_the_scores_alone(
    toy, tmp_path, attention, change, least, indicators, make
):
    model = make() if attention == "multi_head" else word_network(attention)
    settings = Pretraining(**RECIPE | change)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    ranking, documents = TokenRanking(model, toy, indicators, settings=settings, seed=0), toy.documents("train")
    measured = ranking.measure(documents)
    history = pretrain(model, toy, indicators, settings, TrainingRun(0, tmp_path, "d"))
    assert ranking.measure(documents)["ndcg"] > measured["ndcg"] + 0.08
    assert len(history) == settings.epochs
    hits = []
    for document in documents:
        padded = pad_documents(toy, [document], torch.device("cpu"))
        labels = torch.from_numpy(toy.labels(document))[None]
        best = model.attention.token_logits(model.hidden_states(padded), labels)[0].argmax(-1).numpy()
        hits += (toy.tokens(document)[best] == 10 + toy.labels(document)).tolist()
    assert np.mean(hits) > least
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
    planted = {id(weight) for weight in model.attention.planted}
    names = {f"attention.{name}" for name, weight in model.attention.named_parameters() if id(weight) in planted}
    assert names <= moved <= names | {name for name in before if name.startswith("backbone.")}
    assert all(weight.requires_grad for weight in model.parameters())


def test_stage_1_never_reads_the_test_split(toy, tmp_path, indicators, make):
    weights = []
    for shift in (0, 1):
        ids = toy.input_ids.copy()
        ids[toy.offsets[toy.splits["test"][0]] :] += shift
        changed = type(toy)(ids, toy.offsets, toy.indptr, toy.indices, toy.splits)
        model = make()
        recipe = Pretraining(**RECIPE | {"epochs": 2})
        pretrain(model, changed, indicators, recipe, TrainingRun(0, tmp_path / str(shift), "d"))
        weights.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(one, two) for one, two in zip(*weights, strict=True))


def test_what_stage_1_does_not_train_stays_frozen_or_free_as_it_was(toy, tmp_path, indicators, make):
    model = make()
    model.backbone.table.requires_grad_(False)  # a frozen backbone
    pretrain(model, toy, indicators, Pretraining(**RECIPE | {"epochs": 1}), TrainingRun(0, tmp_path, "d"))
    assert {name for name, p in model.named_parameters() if not p.requires_grad} == {"backbone.table.weight"}


def per_list(ranking, document, labels):
    """Losses of single lists, one at a time."""
    found = []
    for label in labels:
        ids, positions, relevance = ranking.lists(np.array([document]), [np.array([label])])
        losses = ranking.list_losses(ranking.scores(np.array([document]), ids, positions), relevance)
        found.append((losses.item(), bool((relevance >= 0).any())))
    return np.array([loss for loss, _ in found]), np.array([counts for _, counts in found])


def test_loss_is_the_mean_over_lists_or_the_sum_over_a_documents_lists(toy, indicators, make):
    model, batch = make(), np.array([0, 1, 2])
    losses, counts = zip(
        *(per_list(TokenRanking(model, toy, indicators, settings=Pretraining(**RECIPE), seed=0), d, range(6))
          for d in batch), strict=True,
    )  # fmt: skip
    total, lists = np.sum(losses), np.sum(counts)
    for reduction, weight in (("mean", lists), ("sum", 3)):
        settings = Pretraining(**RECIPE | {"negatives": None}, reduction=reduction)
        loss, found = TokenRanking(model, toy, indicators, settings=settings, seed=0).loss(batch, 1)
        assert loss.item() == pytest.approx(total, rel=1e-5)
        assert found == weight


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_reweighted_samples_have_the_expectation_of_eq_2_over_all_labels(toy, reduction, indicators, make):
    """Simulation: epochs are independent draws. The sum is unbiased, and so is the number of lists of the mean."""
    model, batch, draws = make(), np.array([0, 1, 2]), 300
    whole = Pretraining(**RECIPE | {"negatives": None}, reduction=reduction)
    expected = TokenRanking(model, toy, indicators, settings=whole, seed=0).loss(batch, 1)
    sampled = Pretraining(**RECIPE | {"negatives": 1, "reweight": True}, reduction=reduction)
    ranking = TokenRanking(model, toy, indicators, settings=sampled, seed=0)
    with torch.no_grad():
        found = np.array([(loss.item(), weight) for loss, weight in (ranking.loss(batch, e) for e in range(draws))])
    for values, value in zip(found.T, (expected[0].item(), expected[1]), strict=True):
        assert abs(values.mean() - value) < 4 * values.std() / np.sqrt(draws) + 1e-4 * value


def test_labels_with_few_training_documents_stay_out_of_training_and_of_the_measures(toy, indicators, make):
    counts = np.bincount(toy.indices[: toy.indptr[20]], minlength=6)
    bound = int(np.sort(counts)[3])
    rare = np.flatnonzero(counts < bound)
    assert 0 < len(rare) < 6
    model, settings = make(), Pretraining(**RECIPE | {"negatives": 9}, label_min_documents=bound)
    ranking = TokenRanking(model, toy, indicators, settings=settings, seed=0)
    ranking.loss(np.arange(20), 1)[0].backward()
    assert (model.attention.embeddings.grad[rare] == 0).all()
    assert (model.attention.embeddings.grad[np.setdiff1d(np.arange(6), rare)] != 0).any(1).all()
    # the measures are those of a corpus without these labels
    keep = ~np.isin(toy.indices, rare)
    indptr = np.concatenate([[0], np.cumsum(keep)])[toy.indptr]
    without = type(toy)(toy.input_ids, toy.offsets, indptr, toy.indices[keep], toy.splits)
    plain = TokenRanking(model, without, indicators, settings=Pretraining(**RECIPE), seed=0)
    assert ranking.measure(np.arange(30)) == plain.measure(np.arange(30))
    assert ranking.measure(np.arange(30)) != TokenRanking(
        model, toy, indicators, settings=Pretraining(**RECIPE), seed=0
    ).measure(np.arange(30))


def test_a_bound_that_no_label_reaches_is_one_clear_error(toy, indicators, make):
    with pytest.raises(InputError, match=r"label_min_documents: expected at most \d+"):
        TokenRanking(make(), toy, indicators, settings=Pretraining(label_min_documents=999), seed=0)


LETTERS = [[11, 12], [12, 13, 13], [11, 14], [14, 15, 16], [13, 11], [11, 18]]
NOTHING = {
    "a label on every document": (LETTERS, [[0]] * 6, (4, 1, 1)),
    "two labels on every document": (LETTERS, [[0, 1]] * 6, (4, 1, 1)),
    "equal texts": ([[11, 12, 13]] * 6, [[0], [1], [0, 1], [1], [0], [1]], (4, 1, 1)),
    "one training document": (LETTERS, [[0, 1], [0], [1], [0], [1], [0]], (1, 3, 2)),
}


def small(documents, labels, sizes):
    """A corpus, and T_l by mutual information over its training documents (scikit-learn's)."""
    corpus = Corpus.of(documents, labels, splits=dict(zip(("train", "val", "test"), sizes, strict=True)))
    seen, rows = sorted({token for document in documents[: sizes[0]] for token in document}), []
    for label in range(6):
        true = [label in some for some in labels[: sizes[0]]]
        mig = np.array([mutual_info_score(true, [token in d for d in documents[: sizes[0]]]) for token in seen])
        rows.append(np.where(mig > 1e-9, mig, 0) / max(mig.max(), 1e-9))
    relevance = np.array(rows, dtype=np.float32)
    order = np.argsort(-relevance, axis=1, kind="stable")
    token_id, values = np.array(seen)[order].ravel(), np.take_along_axis(relevance, order, 1).ravel()
    return corpus, TopTokens.from_csr(np.arange(7) * len(seen), token_id, values, k=100, vocabulary=200)


@pytest.mark.parametrize("case", NOTHING)
def test_relevance_that_carries_nothing_is_one_clear_error_before_training(tmp_path, case, make):
    corpus, top = small(*NOTHING[case])
    assert top.relevance.max() == 0
    with pytest.raises(InputError, match=r"Stage 1, train split: expected .*two tokens of different relevance"):
        pretrain(make(), corpus, top, Pretraining(**RECIPE), TrainingRun(0, tmp_path / "out", "d"))
    assert not (tmp_path / "out").exists()


def test_a_validation_split_that_ranks_nothing_is_one_clear_error_before_training(tmp_path, make):
    corpus, top = small(LETTERS, [[0], [0], [1], [1], [0], [1]], (4, 1, 1))
    strange = replace(corpus, input_ids=np.where(np.arange(len(corpus.input_ids)) < 10, corpus.input_ids, 199))
    with pytest.raises(InputError, match="Stage 1, val split"):
        pretrain(make(), strange, top, Pretraining(**RECIPE), TrainingRun(0, tmp_path / "out", "d"))


def test_training_ndcg_is_that_of_all_documents_where_the_sample_ranks_nothing(tmp_path, make):
    """The sample is the first training document, which has no label."""
    corpus, top = small(LETTERS, [[], [0], [], [0], [0], []], (4, 1, 1))
    recipe = Pretraining(**RECIPE | {"epochs": 1})
    model = make()
    (row,) = pretrain(model, corpus, top, recipe, TrainingRun(0, tmp_path, "d"))
    whole = TokenRanking(model, corpus, top, settings=recipe, seed=0).measure(corpus.documents("train"))
    assert row["ndcg_train"] == pytest.approx(whole["ndcg"])


def test_measures_are_means_over_the_lists_that_rank(toy, indicators, make):
    model, rows = make(), []
    for document in toy.documents("train"):
        padded, labels = pad_documents(toy, [document], CPU), torch.from_numpy(toy.labels(document))[None]
        hidden = model.hidden_states(padded)
        scores = model.attention.token_logits(hidden, labels)[0]
        attention = model.attention.token_probabilities(hidden, labels, padded.mask)[0].detach().numpy()
        relevance = indicators.relevance_of(toy.labels(document), toy.tokens(document))
        for s, p, r in zip(scores, attention, relevance, strict=True):
            if len(set(r[r >= 0].tolist())) > 1:
                rows.append((ndcg(s, torch.from_numpy(r), k=2).item(), p[r >= 0].sum(), entropy(p, base=len(p))))
    ranking = TokenRanking(model, toy, indicators, settings=Pretraining(**RECIPE, ndcg_k=2), seed=0)
    expected = dict(zip(("ndcg", "mass", "entropy"), np.mean(rows, axis=0), strict=True))
    assert ranking.measure(toy.documents("train")) == pytest.approx(expected, rel=1e-5)
    assert len(rows) < sum(len(toy.labels(document)) for document in toy.documents("train"))


OBJECTIVES = [
    ({"sigma": 3.0, "gain": "linear", "ndcg_k": 2}, partial(pairwise_loss_dense, k=2, sigma=3.0, gain="linear")),
    ({"objective": "approx_ndcg", "temperature": 0.7, "k": 3},
     partial(approx_ndcg_loss, k=3, temperature=0.7, gain="exponential")),
    ({"objective": "mse"}, mse_loss),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "loss"), OBJECTIVES, ids=["pairwise", "approx_ndcg", "mse"])
def test_the_loss_of_a_list_is_that_of_the_recipe(toy, indicators, make, recipe, loss):
    random = torch.Generator().manual_seed(0)
    scores, relevance = torch.randn(2, 3, 9, generator=random), torch.rand(2, 3, 9, generator=random)
    ranking = TokenRanking(make(), toy, indicators, settings=Pretraining(**RECIPE, **recipe), seed=0)
    torch.testing.assert_close(ranking.list_losses(scores, relevance), loss(scores, relevance))


def test_a_new_loss_is_one_module_with_its_own_parameters(toy, tmp_path, extend, indicators, make):
    code = "def flat_loss(scores, relevance, *, k, sigma, weight):\n"
    code += "    return weight * sigma * k * (scores.square() * (relevance >= 0)).sum(-1)\n"
    (tmp_path / "flat.py").write_text(code, encoding="utf-8")
    extend(losses, tmp_path)
    recipe = Pretraining(**RECIPE, objective="flat", loss_options={"weight": 0.5}, sigma=3.0, k=9, ndcg_k=2)
    STAGE_1_LOSSES.check({"new": recipe})
    ranking = TokenRanking(make(), toy, indicators, settings=recipe, seed=0)
    one = torch.tensor([2.0, 1.0, 5.0])
    assert ranking.list_losses(one, torch.tensor([0.3, 0.0, -1.0])).item() == 0.5 * 3 * 2 * (4 + 1)
    with pytest.raises(InputError, match=r"pretrainings\.a\.objective: expected one of .* Did you mean 'pairwise'"):
        STAGE_1_LOSSES.check({"a": Pretraining(objective="pairwize")})


def test_attention_and_backbone_train_at_their_own_rates(toy, tmp_path, monkeypatch, indicators, make):
    rates = {}

    def asked(_, task, *__, **___):
        rates.update({group.name: group.learning_rate for group in task.groups})
        return []

    monkeypatch.setattr("plant.pretraining.pretrain.fit", asked)
    recipe = Pretraining(learning_rate=0.01, head_learning_rate=0.03)
    pretrain(make(), toy, indicators, recipe, TrainingRun(0, tmp_path, "d"))
    assert rates == {"planted": 0.03, "backbone": 0.01}


def test_labels_without_tokens_have_no_list_and_change_nothing(toy, tmp_path, indicators, make):
    """As in relevance from descriptions, where some labels have none (choice C28)."""
    some = replace(indicators, sizes=indicators.sizes * (np.arange(6) % 2))  # labels 0, 2 and 4 have no tokens
    model, settings = make(), Pretraining(**RECIPE | {"epochs": 2, "negatives": 0})
    ranking, whole = (TokenRanking(model, toy, top, settings=settings, seed=0) for top in (some, indicators))
    weights = set()
    for document in toy.documents("train"):
        labels = toy.labels(document)
        loss, weight = ranking.loss(np.array([document]), 1)
        losses, _ = per_list(whole, document, labels[labels % 2 == 1])
        assert (loss.item(), weight) == (pytest.approx(losses.sum(), rel=1e-5), len(losses))
        weights.add((weight, len(labels)))
    assert weights > {(0, 1), (1, 2)}
    assert np.isfinite(ranking.measure(toy.documents("train"))["ndcg"])
    history = pretrain(make(), toy, some, settings, TrainingRun(0, tmp_path, "d"))
    assert np.isfinite([row["loss"] for row in history]).all()
