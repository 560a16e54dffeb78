"""The average of two networks: against numpy on probabilities; and which systems share a network."""

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
from plant.paper.systems import find_roles, find_system, list_networks, list_systems, system_of

SIZES = {"train": 30, "val": 12, "test": 10}
CONFIG = {
    "datasets": {"small": {"source": "mimic3", "path": "x"}},
    "backbones": {"one": {"kind": "random"}, "two": {"kind": "random"}, "words": {"kind": "words"}},
    "finetunings": {"focal": {"epochs": 4}},
    "evidences": {"more": {"channels": ["network", "linear"]}},
    "variants": {
        "plain": {"finetuning": "focal"}, "both": {"finetuning": "focal", "average_with": "two"},
        "more": {"finetuning": "focal", "evidence": "more"},
    },
    "experiments": {
        "small": {"dataset": "small", "backbone": "one", "variants": ["plain", "both", "more"], "reference": "plain"}
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


def test_averages_and_evidence_share_the_network_and_have_scores_of_their_own():
    settings = load(CONFIG)
    systems = {"plain": "none+focal", "both": "none+focal+mean@two", "more": "none+focal+more"}
    for name, system in systems.items():
        assert settings.variants[name].network == "none+focal"
        assert system_of(settings.variants[name]) == system
        assert settings.reads_network(name)
    experiment = settings.experiments["small"]
    assert list(list_networks(settings, experiment)) == ["plain"]
    assert [find_system(settings, experiment, name).total_epochs for name in systems] == [4, 8, 4]


def test_evidence_without_a_network_is_a_baseline_and_a_control_has_the_evidence_of_the_planted_system():
    variants = {
        "random_more": {"finetuning": "focal", "evidence": "more"}, "random": {"finetuning": "focal"},
        "words_alone": {"pretraining": "plant", "finetuning": "focal", "evidence": "words"},
        "plant": {"pretraining": "plant", "finetuning": "focal"},
        "plant_more": {"pretraining": "plant", "finetuning": "focal", "evidence": "more"},
    }  # fmt: skip
    evidences = {**CONFIG["evidences"], "words": {"channels": ["linear", "prior"]}}
    config = {**CONFIG, "pretrainings": {"plant": {}}, "variants": variants, "evidences": evidences}
    for reference, control in (("plant", "random"), ("plant_more", "random_more")):
        small = {**CONFIG["experiments"]["small"], "variants": list(variants), "reference": reference}
        settings = load({**config, "experiments": {"small": small}})
        roles = find_roles(settings, settings.experiments["small"])
        assert (roles.planted.name, roles.control.name) == (reference, control)
        assert [system.name for system in roles.baselines] == ["words_alone"]
        kinds = {system.name: system.kind for system in list_systems(settings, settings.experiments["small"])}
        assert kinds["words_alone"] == "no network"


@pytest.mark.parametrize(("change", "said"), [
    ({"average_with": "tow"}, "unknown name 'tow'"),
    ({"average_with": "words"}, "has no network"),
    ({"average_with": "one"}, "experiments.small has this backbone itself"),
    ({"average_with": "two", "evidence": "more"}, "not both"),
])  # fmt: skip
def test_what_cannot_be_averaged_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        load({**CONFIG, "variants": {**CONFIG["variants"], "both": {"finetuning": "focal", **change}}})
