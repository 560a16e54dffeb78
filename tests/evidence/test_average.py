"""The average of two networks: against numpy on probabilities, and what the config may ask for."""

import json
from pathlib import Path

import numpy as np
import pytest

from plant.baselines.target import truth_of
from plant.corpus.reader import load_labels
from plant.evidence.average import average, mean_logit
from plant.ground.errors import InputError
from plant.ground.settings import Evaluation, load
from plant.metrics.scores import read_scores, write_scores
from plant.paper.systems import list_networks, system_of, total_epochs

SIZES = {"train": 30, "val": 12, "test": 10}
CONFIG = {
    "datasets": {"small": {"source": "mimic3", "path": "x"}},
    "backbones": {"one": {"kind": "random"}, "two": {"kind": "random"}, "words": {"kind": "words"}},
    "finetunings": {"focal": {"epochs": 4}},
    "evidences": {"more": {}},
    "variants": {"plain": {"finetuning": "focal"}, "both": {"finetuning": "focal", "average_with": "two"}},
    "experiments": {
        "small": {"dataset": "small", "backbone": "one", "variants": ["plain", "both"], "reference": "plain"}
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(sign_documents, table_corpus, tmp_path_factory) -> Path:
    made = sign_documents(SIZES, (0.4, 0.3, 0.2, 0.15, 0.1), 0.6, groups=True)
    return table_corpus(made, tmp_path_factory.mktemp("average") / "corpus", relevance=10, group_column="group")


def networks(corpus: Path, out: Path, evaluation: Evaluation) -> list[Path]:
    """Score folders of two made-up networks; label 1 has no score in the second one."""
    labels = load_labels(corpus)
    for seed, name in enumerate(("one", "two")):
        random = np.random.default_rng(seed)
        for split in ("val", "test"):
            truth = truth_of(labels, split)
            scores = 6 * random.normal(size=truth.shape).astype(np.float32)
            scores[:, 1] = -np.inf if seed else scores[:, 1]
            write_scores(
                out / name / "none+focal" / "seed0", split, document_ids=labels.document_ids(split),
                label_names=labels.names, truth=truth, scores=scores, natural_threshold=0.0, settings=evaluation,
            )  # fmt: skip
    return [out / name / "none+focal" / "seed0" for name in ("one", "two")]


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values.astype(np.float64)))


def test_the_probabilities_are_the_mean_of_the_two_score_files(corpus, tmp_path):
    folders = networks(corpus, tmp_path, Evaluation())
    average(folders, corpus=corpus, evaluation=Evaluation(), out=tmp_path / "mean")
    for split in ("val", "test"):
        made = read_scores(tmp_path / "mean", split)
        both = np.stack([read_scores(folder, split).dense for folder in folders])
        expected = np.mean(sigmoid(both), axis=0)
        kept = np.isfinite(both).all(axis=0)
        assert not kept[:, 1].any() and np.isneginf(made.dense[:, 1]).all()
        np.testing.assert_allclose(sigmoid(made.dense)[kept], expected[kept], rtol=5e-3)  # fp16 logits
        assert made.natural_threshold == 0
        assert ((made.dense > 0) == (expected > 0.5))[kept].all()
    assert json.loads((tmp_path / "mean/choices.json").read_text()) == {
        "average_of": ["one/none+focal/seed0", "two/none+focal/seed0"]
    }


def test_of_a_large_label_set_the_top_scores_are_averaged(corpus, tmp_path):
    top = Evaluation(at=(1,), top=2, dense_limit=1)
    folders = networks(corpus, tmp_path, top)
    average(folders, corpus=corpus, evaluation=top, out=tmp_path / "mean")
    made, (one, two) = read_scores(tmp_path / "mean", "val"), (read_scores(folder, "val") for folder in folders)
    assert made.dense is None
    first = made.retrieved[[0]].indices[0]
    bounds = [max(each.retrieved[0, first], each.bound[0]) for each in (one, two)]
    assert made.retrieved[0, first] == pytest.approx(mean_logit(*np.array(bounds)[:, None]).item(), rel=1e-3)


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (-40.0, -50.0), (40.0, 50.0), (-3.0, 8.0)])
def test_the_mean_is_exact_where_probabilities_are_close_to_0_or_1(a, b):
    least, most = sorted((a, b))
    made = float(mean_logit(np.array([a]), np.array([b]))[0])
    assert made == float(mean_logit(np.array([b]), np.array([a]))[0])
    if abs(least) < 10 > abs(most):
        p = (sigmoid(np.array(a)) + sigmoid(np.array(b))) / 2
        assert made == pytest.approx(np.log(p / (1 - p)), abs=1e-6)
    else:  # p is half of the larger probability, or 1 - p is half of the larger 1 - p
        assert made == pytest.approx(most - np.log(2) if most < 0 else least + np.log(2), abs=1e-3)


def test_an_average_shares_the_network_has_its_own_scores_and_costs_both_networks():
    settings = load(CONFIG)
    plain, both = settings.variants["plain"], settings.variants["both"]
    assert plain.network == both.network == system_of(plain)
    assert system_of(both) == "none+focal+mean@two"
    experiment = settings.experiments["small"]
    assert list(list_networks(settings, experiment)) == ["plain"]
    assert [total_epochs(settings, experiment, name) for name in ("plain", "both")] == [4, 8]


@pytest.mark.parametrize(("change", "said"), [
    ({"average_with": "tow"}, "unknown name 'tow'"),
    ({"average_with": "words"}, "has no network"),
    ({"average_with": "one"}, "experiments.small has this backbone itself"),
    ({"average_with": "two", "evidence": "more"}, "not both"),
])  # fmt: skip
def test_what_cannot_be_averaged_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        load({**CONFIG, "variants": {**CONFIG["variants"], "both": {"finetuning": "focal", **change}}})
