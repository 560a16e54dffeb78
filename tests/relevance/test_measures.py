"""Every measure against closed forms, scikit-learn, SciPy and naive logarithms."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency
from sklearn.metrics import mutual_info_score

from plant.ground.errors import InputError
from plant.relevance.measures import PairCounts, check_measures, chi2, mig, pmi, smoothed_mig, term_frequency


@st.composite
def tables(draw, largest=200):
    """(n_joint, n_token, n_label, N) of any 2x2 table with at least one document."""
    cells = draw(st.tuples(*[st.integers(0, largest)] * 4).filter(lambda four: sum(four) > 0))
    return cells[0], cells[0] + cells[1], cells[0] + cells[2], sum(cells)


def columns(n_joint, n_token, n_label, total):
    """Two 0/1 columns with these counts: token presence and label."""
    cells = [n_joint, n_token - n_joint, n_label - n_joint, total - n_token - n_label + n_joint]
    return np.repeat([1, 1, 0, 0], cells), np.repeat([1, 0, 1, 0], cells)


@given(tables())
def test_mig_is_scikit_learns_mutual_information_of_the_two_columns(table):
    assert mig(PairCounts(*table)) == pytest.approx(mutual_info_score(*columns(*table)), abs=1e-13)


@given(tables())
def test_smoothed_mig_is_the_sum_of_naive_logarithms(naive, table):
    assert smoothed_mig(PairCounts(*table)) == pytest.approx(naive("smoothed_mig", *table, 0.0), abs=1e-13)


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_independent_presences_have_no_mig_no_chi2_and_no_pmi(rows, across, data):
    i, j = data.draw(st.integers(0, rows)), data.draw(st.integers(0, across))
    counts = PairCounts(i * j, i * across, j * rows, rows * across)  # P(x, y) = i/rows * j/across
    assert (mig(counts), chi2(counts), pmi(counts)) == (0.0, 0.0, 0.0)


def test_a_label_on_every_document_and_one_on_none_have_mig_exactly_zero():
    n_token = np.arange(0, 48_001)
    everywhere = PairCounts(n_token, n_token, 48_000, 48_000)
    nowhere = PairCounts(np.zeros_like(n_token), n_token, 0, 48_000)
    assert not mig(everywhere).any() and not mig(nowhere).any()


@given(tables())
def test_chi2_is_scipys_statistic_without_correction(table):
    n_joint, n_token, n_label, total = table
    cells = np.array([[n_joint, n_label - n_joint], [n_token - n_joint, total - n_label - n_token + n_joint]])
    if (cells.sum(axis=0) == 0).any() or (cells.sum(axis=1) == 0).any():
        assert chi2(PairCounts(*table)) == 0
    else:
        expected = chi2_contingency(cells, correction=False).statistic
        assert chi2(PairCounts(*table)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_pmi_by_hand_and_zero_where_the_association_is_negative_or_absent():
    assert pmi(PairCounts(3, 5, 4, 10)) == pytest.approx(math.log(0.3 / (0.5 * 0.4)))
    assert pmi(PairCounts(1, 5, 4, 10)) == 0
    assert pmi(PairCounts(0, 5, 4, 10)) == 0
    assert pmi(PairCounts(0, 0, 0, 10)) == 0


def test_term_frequency_is_the_share_of_the_labels_tokens():
    values = term_frequency(PairCounts(np.array([2, 1, 0]), np.array([4, 1, 3]), 2, 5, np.array([6, 2, 0]), 8))
    np.testing.assert_array_equal(values, [0.75, 0.25, 0])
    assert term_frequency(PairCounts(0, 3, 2, 5, 0, 0)) == 0


@given(total=st.integers(2, 400), data=st.data())
def test_without_joint_documents_mig_does_not_decrease_with_the_tokens_frequency(total, data):
    """The compiled search leans on this (`plant.kernels.relevance`)."""
    n_label = data.draw(st.integers(1, total))
    n_token = np.arange(0, total - n_label + 1)
    assert (np.diff(mig(PairCounts(np.zeros_like(n_token), n_token, n_label, total))) >= 0).all()


@pytest.mark.parametrize(("section", "key"), [("pretrainings", "measure"), ("finetunings", "static_measure")])
def test_a_measure_that_no_entry_has_is_refused_with_the_nearest(section, key):
    recipes = {"pretrainings": {}, "finetunings": {}} | {section: {"plant": SimpleNamespace(**{key: "pmy"})}}
    with pytest.raises(InputError, match=rf"{section}.plant.{key}: expected one of mig, .*Did you mean 'pmi'"):
        check_measures(SimpleNamespace(**recipes))
