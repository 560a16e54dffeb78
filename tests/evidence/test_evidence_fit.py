"""The fit of Stage 3 against scikit-learn, its optimality conditions, and what it must find in made-up channels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from plant.evidence import design as evidence_design
from plant.evidence import fit as evidence_fit
from plant.evidence.design import Design, LabelSide
from plant.evidence.fit import fit, standardisation
from plant.ground.errors import InputError
from plant.metrics.aligned import AlignedScores
from plant.metrics.calibration import calibration

DOCUMENTS, LABELS = 90, 20
CHANNELS = ("network", "log_odds", "linear", "prior")


def make(seed=0, *, channels=CHANNELS, slopes=False, signs=(1.0, 0.5, 0.8), missing=False) -> Design:
    """Truth from a logistic model of the channels, whose weights have some signs."""
    random = np.random.default_rng(seed)
    n = random.integers(1, 60, LABELS)
    prior = np.log((n + 0.5) / (100 - n + 0.5))
    scores = [(random.normal(size=(DOCUMENTS, LABELS)) * 3 + 2).astype(np.float32) for _ in signs]
    logit = sum(sign * some for sign, some in zip(signs, scores, strict=True)) + prior - 3
    truth = random.random((DOCUMENTS, LABELS)) < 1 / (1 + np.exp(-logit))
    if missing:
        scores[0][:, 3] = -np.inf
        scores[1][7] = -np.inf
    u = (np.log1p(n) - np.log1p(n).min()) / np.ptp(np.log1p(n))
    ends = np.stack([1 - u, u]) if slopes else np.ones((1, LABELS))
    side = LabelSide(tuple(channels), prior, ends, n > 0)
    given = [some for some, channel in zip(scores, CHANNELS, strict=False) if channel in channels]
    return Design(AlignedScores(tuple(given), None, truth.shape), side, sp.csr_array(truth))


def fitted(design, documents=None, *, ridge=0.0):
    documents = np.arange(design.pairs.shape[0]) if documents is None else documents
    return fit(design, documents, matrix=standardisation(design), ridge=ridge, where="test")


def flat(design):
    """Raw features, truth and places of all known pairs, by a loop over pairs."""
    rows, truth, places = [], [], []
    dense = design.truth.toarray()
    for d in range(design.pairs.shape[0]):
        for label in range(design.pairs.shape[1]):
            given = iter([float(some[d, label]) for some in design.pairs.scores])
            values = [design.side.prior[label] if c == "prior" else next(given) for c in design.side.channels]
            if np.isfinite(values).all() and design.side.trained[label]:
                rows.append([value * end[label] for value in values for end in design.side.ends])
                truth.append(dense[d, label])
                places.append((d, label))
    return np.array(rows), np.array(truth), places


def gradient(design, scalars, ridge=0.0):
    """Of the objective in standardised features; the last entry is the constant's."""
    rows, truth, _ = flat(design)
    deviation = rows.std(axis=0)
    error = 1 / (1 + np.exp(-(rows @ scalars[:-1] + scalars[-1]))) - truth
    centred = (rows - rows.mean(axis=0)) / deviation
    return np.append(centred.T @ error + ridge * scalars[:-1] * deviation, error.sum())


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_where_no_bound_is_met_the_fit_is_scikit_learns_logistic_regression(slopes, missing):
    design = make(slopes=slopes, missing=missing)
    rows, truth, places = flat(design)
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(rows, truth)
    found = fitted(design)
    assert (model.coef_[0][: -len(design.side.ends)] > 0).all()  # else the bounds would play a part
    np.testing.assert_allclose(found, [*model.coef_[0], model.intercept_[0]], rtol=1e-5, atol=1e-6)
    logits = design.logits({0: found}, np.zeros(DOCUMENTS, np.int64))
    expected = np.full(logits.shape, -np.inf)
    expected[tuple(zip(*places, strict=True))] = model.decision_function(rows)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_the_ridge_is_scikit_learns_penalty_on_standardised_channels():
    design, ridge = make(), 3.0
    rows, truth, _ = flat(design)
    model = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    model.fit((rows - rows.mean(axis=0)) / rows.std(axis=0), truth)
    np.testing.assert_allclose(fitted(design, ridge=ridge)[:-1] * rows.std(axis=0), model.coef_[0], rtol=1e-6)


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("signs", [(1.0, -0.5, 0.8), (-1.0, -0.5, 0.8), (-1.0, -1.0, -1.0)])
def test_where_bounds_bind_the_optimality_conditions_hold(signs, slopes):
    design = make(signs=signs, slopes=slopes)
    found = fitted(design, ridge=1.0)
    slope, lower = gradient(design, found, ridge=1.0), design.side.lower
    bound = found == lower
    assert bound[: 3 * len(design.side.ends)].sum() >= sum(sign < 0 for sign in signs)
    assert (found >= lower).all()
    assert (slope[bound] >= -1e-5).all()
    np.testing.assert_allclose(slope[~bound], 0, atol=1e-5)


def test_small_blocks_and_a_start_from_a_part_change_nothing(monkeypatch):
    design = make(missing=True)
    whole = fitted(design, ridge=1.0)
    monkeypatch.setattr(evidence_design, "BLOCK", 50)
    monkeypatch.setattr(evidence_fit, "SUBSAMPLE", 100)
    np.testing.assert_allclose(fitted(design, ridge=1.0), whole, rtol=1e-7)


def test_pairs_in_sparse_form_give_what_dense_ones_give(monkeypatch):
    design = make(missing=True)
    where = tuple(place.ravel() for place in np.indices(design.pairs.shape))
    pairs = AlignedScores(tuple(some.ravel() for some in design.pairs.scores), where, design.pairs.shape)
    sparse = Design(pairs, design.side, design.truth)
    for documents in (np.arange(DOCUMENTS), np.arange(1, DOCUMENTS, 3)):
        np.testing.assert_allclose(fitted(sparse, documents), fitted(design, documents), rtol=1e-9)
    scalars, folds = {0: fitted(design), 1: np.zeros(5)}, np.arange(DOCUMENTS) % 2
    monkeypatch.setattr(evidence_design, "BLOCK", 70)
    filled = sparse.pairs.filled(sparse.logits(scalars, folds)).toarray()
    np.testing.assert_allclose(filled, design.logits(scalars, folds), rtol=1e-12)


def test_a_channel_that_is_the_truth_tells_labels_apart_and_a_constant_one_has_no_weight():
    random = np.random.default_rng(5)
    truth = random.random((400, LABELS)) < 0.2
    side = LabelSide(("network", "linear", "prior"), np.zeros(LABELS), np.ones((1, LABELS)), np.ones(LABELS, bool))
    noise = random.normal(size=truth.shape).astype(np.float32)
    design = Design(AlignedScores((truth.astype(np.float32), noise), None, truth.shape), side, sp.csr_array(truth))
    scalars = fitted(design, ridge=1.0)
    assert scalars[0] > 50 * scalars[1]
    assert scalars[2] == 0  # this prior is the same for all labels
    logits = design.logits({0: scalars}, np.zeros(400, np.int64))
    assert logits[truth].min() > 0 > logits[~truth].max()  # told apart without error, and still finite


def test_a_prior_may_have_a_negative_weight_and_no_other_channel_may():
    assert make().side.lower.tolist() == [0, 0, 0, -np.inf, -np.inf]
    assert make(slopes=True).side.lower.tolist() == [0, 0, 0, 0, 0, 0, -np.inf, -np.inf, -np.inf]


def test_pairs_of_one_kind_are_one_clear_error():
    design = make()
    none = Design(design.pairs, design.side, sp.csr_array(design.truth.shape, dtype=bool))
    with pytest.raises(InputError, match=r"got 0 of 1800 true\. Give more validation documents"):
        fitted(none)
    unknown = AlignedScores(
        tuple(np.full_like(some, -np.inf) for some in design.pairs.scores), None, design.pairs.shape
    )
    with pytest.raises(InputError, match="got 0 of 0 true"):
        fitted(Design(unknown, design.side, design.truth))


def test_a_fit_that_does_not_end_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(evidence_fit, "ITERATIONS", 1)
    with pytest.raises(InputError, match=r"Raise evidences\.<name>\.ridge"):
        fitted(make())


def test_log_loss_and_calibration_error_are_those_of_a_plain_loop():
    random = np.random.default_rng(4)
    logits = random.normal(size=5000) * 4
    truth = random.random(5000) < 0.3
    p = 1 / (1 + np.exp(-logits))
    error = 0.0
    for low in range(15):
        inside = (p >= low / 15) & ((p < (low + 1) / 15) if low < 14 else True)
        error += inside.mean() * abs(p[inside].mean() - truth[inside].mean())
    told = calibration((logits[part], truth[part]) for part in np.array_split(np.arange(5000), 7))
    assert told["calibration_error"] == pytest.approx(error)
    assert told["log_loss"] == pytest.approx(-np.log(np.where(truth, p, 1 - p)).mean())
    assert (told["pairs"], told["positives"]) == (5000, truth.sum())
    assert calibration([]) == {"pairs": 0, "positives": 0, "log_loss": None, "calibration_error": None}
