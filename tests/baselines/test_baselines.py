"""The baselines without a network against scikit-learn, naive sums, and what they must not see."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ndcg_score
from sklearn.naive_bayes import BernoulliNB
from sklearn.svm import LinearSVC

from plant.baselines import linear as baselines_linear
from plant.baselines.target import ExplainedDocument, Sources, best_of, ndcg, run
from plant.corpus.reader import load_labels
from plant.ground.errors import InputError
from plant.ground.settings import BaselineSettings, Evaluation
from plant.metrics.scores import read_scores

SIZES = {"train": 60, "val": 15, "test": 15}
LABELS = 7
ONE_C = BaselineSettings(svm_c=(1.0,), min_documents=1, log_odds_k=(1, 2, 4))


@pytest.fixture(scope="session")
def build(sign_documents, table_corpus):
    """Build the corpus of some documents; those of a seed, with some of their splits changed."""

    def make(folder: Path, *, seed: int = 0, **splits: list[dict]) -> Path:
        made = sign_documents(SIZES, (0.4, 0.3, 0.2, 0.1, 0.1), 0.7, seed=seed)
        return table_corpus({**made, **splits}, folder, relevance=10)

    return make


@pytest.fixture(scope="module")
def corpus(build, tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("baselines") / "corpus")


def score(name: str, corpus: Path, out: Path, settings=ONE_C, evaluation=None, relevance=None, **more):
    """Validation and test scores of a baseline; the combination reads the folders beside `out`."""
    files = {"tokens": corpus / "words", "relevance": relevance or corpus / "mig.parquet"}
    files |= {part: out.parent / part for part in ("tfidf_linear", "mig_log_odds")}
    run(name, Sources(load_labels(corpus), settings, files, **more), evaluation=evaluation or Evaluation(), out=out)
    return tuple(read_scores(out, split) for split in ("val", "test"))


linear, log_odds, add = (partial(score, name) for name in ("tfidf_linear", "mig_log_odds", "combined"))


def combine(corpus: Path, out: Path, *arguments, **more):
    names = ("tfidf_linear", "mig_log_odds", "combined")
    return [score(name, corpus, out / name, *arguments, **more) for name in names]


def choices(folder: Path) -> dict:
    return json.loads((folder / "choices.json").read_text())


def texts(corpus: Path, split: str) -> list[str]:
    return pl.read_parquet(corpus / f"{split}.parquet")["text"].to_list()


def carried(corpus: Path, split: str) -> np.ndarray:
    rows = pl.read_parquet(corpus / f"{split}.parquet")["labels"].to_list()
    return np.array([[f"label {label}" in row for label in range(LABELS)] for row in rows])


def naive_ndcg(scores: np.ndarray, truth: np.ndarray) -> float:
    with_label = truth.any(axis=1)
    finite = np.where(np.isfinite(scores), scores, -1e6)
    return ndcg_score(truth[with_label], finite[with_label], k=5)


# --- the criterion --------------------------------------------------------------------------------


@given(st.integers(0, 10_000))
def test_the_criterion_is_scikit_learns_ndcg_at_5(seed):
    random = np.random.default_rng(seed)
    scores = random.permutation(48).reshape(6, 8).astype(np.float32)
    truth = random.random((6, 8)) < 0.3
    truth[0] = False
    truth[1, 0] = True
    assert ndcg(scores, sp.csr_array(truth)) == pytest.approx(naive_ndcg(scores, truth))
    assert ndcg(sp.csr_array(scores + 1), sp.csr_array(truth)) == pytest.approx(naive_ndcg(scores, truth))


def test_without_a_true_label_the_criterion_is_zero_and_the_first_option_wins():
    assert ndcg(np.ones((2, 3), np.float32), sp.csr_array((2, 3), dtype=bool)) == 0
    assert best_of("c", {3.0: 0.0, 1.0: 0.0})[0] == 3.0


# --- TF-IDF and linear support vector machines ----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "analysis"),
    [("tfidf_linear", {"ngram_range": (1, 2)}),
     ("tfidf_characters", {"analyzer": "char_wb", "ngram_range": (2, 4), "strip_accents": "unicode"})],
)  # fmt: skip
def test_scores_and_kept_weights_of_the_linear_models_are_those_of_an_independent_primal_fit(
    corpus, tmp_path, monkeypatch, name, analysis
):
    monkeypatch.setattr(baselines_linear, "TOLERANCE", 1e-9)
    settings = ONE_C.model_copy(update={"svm_c": (0.5,), "reasons": 5, "character_ngrams": (2, 4)})
    scores = score(name, corpus, tmp_path, settings)
    vectorizer = TfidfVectorizer(sublinear_tf=True, **analysis)
    train, truth = vectorizer.fit_transform(texts(corpus, "train")), carried(corpus, "train")
    features, table = (pl.read_parquet(tmp_path / f"{kind}.parquet") for kind in ("features", "weights"))
    assert features["feature"].to_list() == vectorizer.get_feature_names_out().tolist()
    np.testing.assert_allclose(features["idf"], vectorizer.idf_)
    for label in range(5):
        model = LinearSVC(C=0.5, dual=False, tol=1e-10).fit(train, truth[:, label])
        for split, made in zip(("val", "test"), scores, strict=True):
            expected = model.decision_function(vectorizer.transform(texts(corpus, split)))
            np.testing.assert_allclose(made.dense[:, label], expected, atol=2e-3)
        constant, *words = table.filter(label=f"label {label}").select("feature", "weight").rows()
        assert constant == (None, pytest.approx(model.intercept_[0], abs=2e-3))
        kept = [weight for _, weight in words]
        np.testing.assert_allclose(np.abs(kept), np.sort(np.abs(model.coef_[0]))[::-1][:5], atol=2e-3)
        np.testing.assert_allclose(kept, [model.coef_[0][vectorizer.vocabulary_[word]] for word, _ in words], atol=2e-3)
    assert table.filter(label="label 5").rows() == [("label 5", None, 1.0)]
    assert table.filter(label="label 6").is_empty()
    assert choices(tmp_path).get("character_ngrams") == (None if name == "tfidf_linear" else [2, 4])


@pytest.mark.parametrize("system", [linear, log_odds])
def test_a_label_without_training_documents_has_no_score_and_one_on_all_is_always_predicted(corpus, tmp_path, system):
    for made in system(corpus, tmp_path):
        assert np.isneginf(made.dense[:, 6]).all()
        assert np.isfinite(made.dense[:, :6]).all()
        assert (made.dense[:, 5] > 0).all()
        assert system is log_odds or (made.dense[:, 5] == 1).all()
        assert made.natural_threshold == 0


@pytest.mark.parametrize(
    ("system", "key", "name", "options", "ranked"),  # C is chosen by the labels that have training documents
    [(linear, "svm_c", "c", (0.001, 1.0, 30.0), 6), (log_odds, "log_odds_k", "k", (1, 2, 4), 7)],
)
def test_what_is_chosen_is_the_best_on_validation_and_every_value_is_on_record(
    corpus, tmp_path, system, key, name, options, ranked
):
    system(corpus, tmp_path / "all", ONE_C.model_copy(update={key: options}))
    record, values = choices(tmp_path / "all"), []
    for option in options:
        val, _ = system(corpus, tmp_path / str(option), ONE_C.model_copy(update={key: (option,)}))
        values.append(naive_ndcg(val.dense[:, :ranked], carried(corpus, "val")[:, :ranked]))
    assert [tried["ndcg@5"] for tried in record[f"{name}_tried"]] == pytest.approx(values, abs=2e-3)
    assert record[name] == options[int(np.argmax(values))]
    file = "test.scores.safetensors"
    assert (tmp_path / "all" / file).read_bytes() == (tmp_path / str(record[name]) / file).read_bytes()


def test_test_labels_and_test_texts_have_no_influence_on_validation_and_choices(corpus, build, tmp_path):
    test = pl.read_parquet(corpus / "raw_test.parquet")
    labels = test["labels"].reverse()
    relabelled = build(tmp_path / "relabelled", test=test.with_columns(labels).to_dicts())
    same_text = test.with_columns(labels, pl.lit("noise1 sign1").alias("text"))
    rewritten = build(tmp_path / "rewritten", test=same_text.to_dicts())
    settings = BaselineSettings(svm_c=(0.01, 1.0), log_odds_k=(1, 2, 4))
    for folder in (corpus, relabelled, rewritten):
        combine(folder, tmp_path / "out" / folder.name, settings)
    for system in ("tfidf_linear", "mig_log_odds", "combined"):
        folders = [tmp_path / "out" / name / system for name in ("corpus", "relabelled", "rewritten")]
        assert choices(folders[0]) == choices(folders[1]) == choices(folders[2])
        val, test = ([read_scores(folder, split).dense for folder in folders] for split in ("val", "test"))
        np.testing.assert_array_equal(val[0], val[1])
        np.testing.assert_array_equal(val[0], val[2])
        np.testing.assert_array_equal(test[0], test[1])
        assert not np.array_equal(test[0], test[2])


@pytest.mark.parametrize(
    ("analysis", "record"),
    [({"ngram_range": (1, longest)}, {}) for longest in (1, 2, 3)]
    + [({"analyzer": "char_wb", "strip_accents": "unicode", "ngram_range": (2, 4)}, {"character_ngrams": [2, 4]})],
)
def test_the_values_of_a_text_are_scikit_learns(tmp_path, analysis, record):
    texts = ["Fever, a high FEVER and rash-like", "rash? no rash; fever.", "x y zz", "naïve été fever"]
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=1, **analysis).fit(texts[:2])
    names = vectorizer.get_feature_names_out()
    pl.DataFrame({"feature": names.tolist(), "idf": vectorizer.idf_}).write_parquet(tmp_path / "features.parquet")
    (tmp_path / "choices.json").write_text(json.dumps(record))
    values = baselines_linear.values_of_grams(tmp_path, None)
    for text, row in zip(texts, vectorizer.transform(texts).toarray(), strict=True):
        expected = {names[i]: row[i] for i in np.flatnonzero(row)}
        assert values(ExplainedDocument(text, frozenset()), "any label") == pytest.approx(expected)


def test_negatives_are_drawn_for_each_label_by_the_seed():
    positive = np.zeros(50, bool)
    positive[[3, 40]] = True
    streams = ((0, "a"), (0, "a"), (1, "a"), (0, "b"))  # seed and label
    draws = [baselines_linear._rows(positive, 10, *stream).tolist() for stream in streams]
    assert draws[0] == draws[1] == sorted(set(draws[0]) | {3, 40})
    assert len(draws[0]) == 12
    assert draws[0] not in draws[2:]
    for most in (None, 48):
        assert baselines_linear._rows(positive, most, 0, "a").tolist() == list(range(50))


def test_choosing_c_on_some_labels_changes_no_score_under_that_c(corpus, tmp_path):
    whole = linear(corpus, tmp_path / "a")
    part = linear(corpus, tmp_path / "b", ONE_C.model_copy(update={"choice_labels": 2}))
    np.testing.assert_array_equal(whole[1].dense, part[1].dense)
    assert choices(tmp_path / "b")["c_chosen_on_labels"] == 2


@pytest.mark.slow
def test_worker_processes_change_no_score(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(baselines_linear, "_CHUNK", 2)
    monkeypatch.setattr(baselines_linear, "_SMALL", 0)
    alone, together = linear(corpus, tmp_path / "a"), linear(corpus, tmp_path / "b", threads=2)
    np.testing.assert_array_equal(alone[1].dense, together[1].dense)


def test_no_words_left_is_one_clear_error(corpus, tmp_path):
    with pytest.raises(InputError, match="n-grams in 61 or more training documents, got none"):
        linear(corpus, tmp_path, ONE_C.model_copy(update={"min_documents": 61, "ngrams": 1}))
    assert not list(tmp_path.iterdir())


def test_scores_that_do_not_fit_into_memory_are_refused_before_anything_is_fitted(corpus, tmp_path):
    with pytest.raises(InputError, match="memory_gb"):
        linear(corpus, tmp_path, evaluation=Evaluation(memory_gb=1e-9))
    assert not list(tmp_path.iterdir())


# --- the sum of log-odds --------------------------------------------------------------------------


def test_the_log_odds_are_scikit_learns_bernoulli_naive_bayes_on_the_labels_words(corpus, tmp_path):
    smoothing, k = 0.7, 3
    settings = ONE_C.model_copy(update={"smoothing": smoothing, "log_odds_k": (k,)})
    scores = log_odds(corpus, tmp_path, settings)
    table, weights = pl.read_parquet(corpus / "mig.parquet"), pl.read_parquet(tmp_path / "weights.parquet")
    truth = carried(corpus, "train")
    for label in range(5):
        words = table.filter(pl.col("label") == f"label {label}").sort("rank")["token"][:k].to_list()
        present = {s: np.array([[w in text.split() for w in words] for text in texts(corpus, s)]) for s in SIZES}
        share = (truth[:, label].sum() + smoothing) / (SIZES["train"] + 2 * smoothing)
        model = BernoulliNB(alpha=smoothing, class_prior=[1 - share, share]).fit(present["train"], truth[:, label])
        for split, made in zip(("val", "test"), scores, strict=True):
            joint = model.predict_joint_log_proba(present[split])
            np.testing.assert_allclose(made.dense[:, label], joint[:, 1] - joint[:, 0], rtol=1e-3, atol=1e-3)
            constant, *kept = weights.filter(label=f"label {label}").select("feature", "weight").rows()
            assert (constant[0], sorted(word for word, _ in kept)) == (None, sorted(words))
            for row, text in zip(made.dense, texts(corpus, split), strict=True):
                total = constant[1] + sum(weight for word, weight in kept if word in text.split())
                assert row[label] == pytest.approx(total, rel=1e-3, abs=1e-3)


def test_relevance_of_too_few_words_or_of_another_corpus_is_refused(corpus, build, tmp_path):
    with pytest.raises(InputError, match=r"11 tokens per label.* got 10\. Raise relevance\.k"):
        log_odds(corpus, tmp_path, ONE_C.model_copy(update={"log_odds_k": (2, 11)}))
    other = build(tmp_path / "other", seed=5)
    with pytest.raises(InputError, match="got a table of another corpus"):
        log_odds(corpus, tmp_path / "out", relevance=other / "mig.parquet")


# --- the combination ------------------------------------------------------------------------------


def test_the_combination_is_the_weighted_sum_of_z_scores_from_validation(corpus, tmp_path):
    first, second, both = combine(corpus, tmp_path)
    weight = choices(tmp_path / "combined")["weight"]
    for split in (0, 1):
        total = 0.0
        for share, system in ((weight, first), (1 - weight, second)):
            known = system[0].dense[:, :6]
            total = total + share * (system[split].dense[:, :6] - known.mean()) / known.std()
        np.testing.assert_allclose(both[split].dense[:, :6], total, rtol=1e-3, atol=1e-3)
        assert np.isneginf(both[split].dense[:, 6]).all()
        assert both[split].natural_threshold is None
        assert both[split].document_ids == first[split].document_ids
        assert (both[split].truth != first[split].truth).nnz == 0


def test_the_weight_is_the_best_on_validation_and_its_ends_are_the_two_systems(corpus, tmp_path):
    first, second, _ = combine(corpus, tmp_path)
    tried = choices(tmp_path / "combined")["weight_tried"]
    values = {option["weight"]: option["ndcg@5"] for option in tried}
    truth = carried(corpus, "val")
    assert values[1.0] == pytest.approx(naive_ndcg(first[0].dense, truth), abs=2e-3)
    assert values[0.0] == pytest.approx(naive_ndcg(second[0].dense, truth), abs=2e-3)
    assert values[choices(tmp_path / "combined")["weight"]] == max(values.values())


def test_sparse_scores_that_keep_every_label_combine_as_dense_ones_do(corpus, tmp_path):
    *_, dense = combine(corpus, tmp_path / "dense")
    *_, sparse = combine(corpus, tmp_path / "sparse", evaluation=Evaluation(dense_limit=1, top=50))
    assert sparse[1].dense is None
    kept = sparse[1].kept.tocoo()
    known = kept.data > -np.inf
    assert known.sum() == 15 * 6
    rows, columns = (places[known] for places in kept.coords)
    np.testing.assert_allclose(kept.data[known], dense[1].dense[rows, columns], rtol=5e-3, atol=5e-3)


def test_a_label_that_one_system_cuts_off_gets_its_last_kept_score(corpus, tmp_path):
    first, second, both = combine(corpus, tmp_path, evaluation=Evaluation(dense_limit=1, top=2, at=(1,)))
    # Means and deviations from the pairs of validation, each filled in the same way.
    pairs = {split: filled(first[split], second[split]) for split in (0, 1)}
    scales = [(np.mean(values), np.std(values)) for values in zip(*pairs[0].values(), strict=True)]
    weight = choices(tmp_path / "combined")["weight"]
    stored = both[1].retrieved.tocoo()
    assert stored.nnz == 15 * 2
    for row, column, score in zip(*stored.coords, stored.data, strict=True):
        a, b = ((v - m) / s for v, (m, s) in zip(pairs[1][row, column], scales, strict=True))
        assert score == pytest.approx(weight * a + (1 - weight) * b, abs=1e-4)


def filled(*systems) -> dict[tuple[int, int], tuple[float, float]]:
    """Both systems' scores of every pair that either ranks among its top 2; a missing one is the document's lowest."""
    pairs = {}
    for i in range(15):
        parts = [system.retrieved[[i]] for system in systems]
        rows = [dict(zip(part.indices.tolist(), part.data.tolist(), strict=True)) for part in parts]
        pairs |= {(i, label): tuple(row.get(label, min(row.values())) for row in rows) for label in rows[0] | rows[1]}
    return pairs


def test_scores_of_other_documents_are_refused(corpus, build, tmp_path):
    combine(corpus, tmp_path)
    other = build(tmp_path / "other", val=pl.read_parquet(corpus / "raw_val.parquet")[:-1].to_dicts())
    with pytest.raises(InputError, match="scores for the documents and labels of "):
        add(other, tmp_path / "out")
    log_odds(other, tmp_path / "mig_log_odds")
    with pytest.raises(InputError, match="the same documents"):
        add(corpus, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_scores_of_a_private_corpus_are_private(build, tmp_path):
    made = build(tmp_path / "private")
    (made / "train.parquet").chmod(0o600)
    combine(made, tmp_path / "out")
    modes = {file.stat().st_mode & 0o077 for file in (tmp_path / "out").rglob("*.*") if file.is_file()}
    assert modes == {0}
