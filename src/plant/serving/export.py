"""From the runs of an experiment to one model folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from plant.baselines.combined import PARTS, moments_of
from plant.baselines.linear import tfidf_linear
from plant.baselines.target import Sources
from plant.baselines.words import read_weights
from plant.corpus.reader import Labels, load_labels, load_tokens
from plant.evidence.design import LabelSide
from plant.ground.errors import InputError
from plant.ground.files import read_json
from plant.ground.settings import BaselineSettings, Evaluation, Evidence, Finetuning
from plant.metrics.aligned import align
from plant.metrics.scores import read_scores
from plant.model.assemble import load_weights, prepare
from plant.model.classifier import LabelClassifier
from plant.serving.card import card
from plant.serving.folder import as_json
from plant.serving.modeling import PlantConfig, PlantForDocuments, backbone_record
from plant.serving.network import VOCABULARY
from plant.serving.system import Parts
from plant.serving.words import WordScorer

SCORERS = {"log_odds": "mig_log_odds", "linear": "tfidf_linear"}
"""Channels whose words can be saved, and the baselines that make them."""


@dataclass(frozen=True)
class Candidate:
    """One run of a system: a seed of a variant, or a baseline.

    Attributes:
        system: its name in the config.
        scores: its evaluation folder.
        network: folder of its Stage 2 weights; None without a network.
        seed: of the run.
        finetuning, evidence: its recipes; None where it has none.
        channels: channel -> evaluation folder, for all that it reads but the prior.
        static: relevance that it adds to the attention; None where it adds none.
    """

    system: str
    scores: Path
    seed: int
    network: Path | None = None
    finetuning: Mapping[str, Any] | None = None
    evidence: Mapping[str, Any] | None = None
    channels: Mapping[str, str] | None = None
    static: Path | None = None

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Candidate:
        """From the settings of a job."""
        paths = {name: Path(plain[name]) for name in ("scores", "network", "static") if plain.get(name)}
        return cls(**{**plain, "network": None, "static": None, **paths})

    @property
    def on_validation(self) -> float:
        """The best F1 on validation, by which runs are compared (`evaluation.tune_for`)."""
        return float(read_json(self.scores / "metrics.json")["threshold"]["value_on_val"])


@dataclass(frozen=True)
class Materials:
    """What all runs of an experiment share.

    Attributes:
        corpus: folder of the corpus.
        settings: sections backbone, words, compute, evaluation, baselines, cleaning; what the card says of the data.
        tokens: tokens.safetensors of the backbone; None if no run has a network.
        backbone: hub id or folder.
        threads: for the fit of the linear model.
    """

    corpus: Path
    settings: Mapping[str, Any]
    tokens: Path | None
    backbone: str | Path
    threads: int = 1


Refusal = Callable[[Candidate], InputError | None]
"""Run -> why it cannot be saved; None if it can."""


def best_candidate(candidates: Sequence[Candidate], refusal: Refusal) -> tuple[Candidate, tuple[str, ...]]:
    """The run with the best F1 on validation of those that can be saved; the first of equal ones.

    Args:
        candidates: at least one run.
        refusal: run -> why it cannot be saved, or None.

    Returns:
        The run, and one sentence for each better system that cannot be saved.

    Raises:
        InputError: no run can be saved; the error is that of the best one.
    """
    passed_over: dict[str, str] = {}
    errors: list[InputError] = []
    for run in sorted(candidates, key=lambda each: -each.on_validation):
        error = refusal(run)
        if error is None:
            return run, tuple(passed_over.values())
        errors.append(error)
        said = f"`{run.system}` is better on validation ({run.on_validation:.3f}), and cannot be saved: {error.got}."
        passed_over.setdefault(run.system, said)
    raise errors[0]


def export(
    candidate: Candidate, materials: Materials, out: Path, *, private: bool, words_of_private: bool,
    passed_over: Sequence[str] = (),
) -> None:  # fmt: skip
    """Write the model folder of a run.

    Args:
        candidate: the run.
        materials: what it was made from.
        out: the folder.
        private: the corpus is credentialed.
        words_of_private: write tables of words of a credentialed corpus.
        passed_over: sentences for the model card, see `best_candidate`.

    Raises:
        InputError: the system cannot be saved; its words are those of a credentialed corpus; or the saved word scores
            are not those of the run.
    """
    labels = load_labels(materials.corpus)
    trained = np.flatnonzero(labels.counts[0])
    hidden = private and not words_of_private
    if error := refusal(candidate, materials, hide_words=hidden, n_labels=labels.n_labels):
        raise error
    parts = _parts(candidate, labels, trained)
    kind, channels = _kind(candidate), list(_channels(candidate))
    system: dict[str, Any] = {"name": candidate.system, "kind": kind, "channels": channels}
    for channel in {*channels} & {*SCORERS}:
        parts.scorers[channel] = _scorer(channel, candidate, materials, labels, trained)
    if kind == "evidence":
        recipe = Evidence.model_validate(candidate.evidence)
        side = LabelSide.of(labels, recipe)
        parts.arrays |= {"prior": side.prior[trained], "ends": side.ends[:, trained]}
        system["scalars"] = _scalars(read_json(candidate.scores / "choices.json"), side)
    if kind == "combined":
        pairs = align([read_scores(_folder(candidate, channel), "val") for channel in channels])
        system["scales"] = [[each.mean, each.deviation] for each in map(moments_of, pairs.scores)]
        system["weight"] = read_json(candidate.scores / "choices.json")["weight"]
    classifier: LabelClassifier | None = None
    network: dict[str, Any] = {}
    if candidate.network is not None and "network" in channels:
        classifier, network = _network(candidate, materials, parts)
    limits = Evaluation.model_validate(materials.settings["evaluation"])
    natural = read_scores(candidate.scores, "val").natural_threshold
    system |= {"natural_threshold": natural, "top": limits.top, "dense_limit": limits.dense_limit}
    names = dict(enumerate(labels.names[label] for label in trained.tolist()))
    config = PlantConfig(
        network, system, dict(materials.settings["cleaning"]), id2label=names,
        label2id={name: place for place, name in names.items()}, problem_type="multi_label_classification",
    )  # fmt: skip
    metrics = read_json(candidate.scores / "metrics.json")
    parts.files["README.md"] = card(candidate, config, labels, metrics, materials.settings, passed_over).encode()
    PlantForDocuments(config, classifier, parts).save_pretrained(out)


def _kind(candidate: Candidate) -> str:
    if candidate.evidence is not None:
        return "evidence"
    by_baseline = {baseline: channel for channel, baseline in SCORERS.items()}
    return "network" if candidate.network is not None else by_baseline.get(candidate.system, candidate.system)


def _channels(candidate: Candidate) -> tuple[str, ...]:
    if candidate.evidence is not None:
        return tuple(Evidence.model_validate(candidate.evidence).channels)
    if candidate.system == "combined":
        return tuple(channel for part in PARTS for channel, name in SCORERS.items() if name == part)
    return (_kind(candidate),)


def refusal(candidate: Candidate, materials: Materials, *, hide_words: bool, n_labels: int) -> InputError | None:
    """Why a run cannot be saved; None if it can.

    Args:
        candidate: the run.
        materials: what it was made from.
        hide_words: the corpus is credentialed, and no words of it may be written.
        n_labels: of the corpus.
    """
    where = f"saved model of {candidate.system}"
    words = [channel for channel in _channels(candidate) if channel not in ("network", "prior")]
    if unknown := [channel for channel in words if channel not in SCORERS]:
        return InputError(
            where, expected=f"the channels network, prior, {', '.join(SCORERS)}", got=f"the channel {unknown[0]}",
            fix="Save a system without this channel: it reads the training corpus, which a folder does not hold.",
        )  # fmt: skip
    recipe = None if candidate.finetuning is None else Finetuning.model_validate(candidate.finetuning)
    if recipe is not None and (recipe.residual is not None or _is_cut(recipe, n_labels)):
        what = "a shortlist" if recipe.residual is None else "a residual"
        return InputError(
            where, expected="a network that scores all labels from the text alone", got=f"a recipe with {what}",
            fix="Save a variant without it.",
        )  # fmt: skip
    trained_here = candidate.network is not None and materials.settings["backbone"]["kind"] != "pretrained"
    if hide_words and (words or trained_here):
        what = "the words of word scores" if words else "a vocabulary that was trained on the notes"
        return InputError(
            where, expected="a system without words of a credentialed corpus", got=what,
            fix="A folder is made to be given away, and these words come from the notes of patients. If it stays where "
            "the notes are, set evaluation.show_credentialed: true.",
        )  # fmt: skip
    return None


def _is_cut(recipe: Finetuning, n_labels: int) -> bool:
    return recipe.shortlist is not None and n_labels > recipe.shortlist_above


def _folder(candidate: Candidate, channel: str) -> Path:
    """Where the scores of a channel are."""
    return Path((candidate.channels or {}).get(channel, candidate.scores))


def _parts(candidate: Candidate, labels: Labels, trained: np.ndarray) -> Parts:
    """Thresholds and labels, and the relevance of static attention."""
    found = read_json(candidate.scores / "metrics.json")["threshold"]
    thresholds = {"rule": "one threshold for all labels, tuned on validation", **found}
    records = [
        {"label": labels.names[label], "description": labels.descriptions[label],
         "training_documents": int(labels.counts[0, label])}
        for label in trained.tolist()
    ]  # fmt: skip
    return Parts(thresholds=thresholds, labels=records, static=candidate.static)


def _scorer(
    channel: str, candidate: Candidate, materials: Materials, labels: Labels, trained: np.ndarray
) -> WordScorer:
    """The whole weights of a word channel. The linear model is fitted again: its run keeps the largest weights only."""
    folder, names = _folder(candidate, channel), [labels.names[label] for label in trained.tolist()]
    if channel == "log_odds":
        most = materials.settings["words"]["max_tokens"]
        return WordScorer.from_tables(read_weights(folder), names, max_tokens=most)
    chosen = {"svm_c": (read_json(folder / "choices.json")["c"],), "reasons": 2**31 - 1}
    settings = BaselineSettings.model_validate({**materials.settings["baselines"], **chosen})
    made = tfidf_linear(Sources(labels, settings, threads=materials.threads))
    assert made.weights is not None and made.features is not None
    idf = dict(zip(made.features["feature"].to_list(), made.features["idf"].to_list(), strict=True))
    scorer = WordScorer.from_tables(made.weights, names, idf=idf)
    _check_equal(scorer, labels, trained, folder)
    return scorer


def _check_equal(scorer: WordScorer, labels: Labels, trained: np.ndarray, folder: Path) -> None:
    """Refuse weights that do not give the scores of the run."""
    stored, texts = read_scores(folder, "test"), labels.texts("test")[:100]
    rows = stored.kept[: len(texts), trained].tocoo()
    made = scorer.score(texts)[rows.coords]
    if not np.allclose(made, rows.data, rtol=2e-3, atol=2e-3):  # the run's are rounded to fp16
        raise InputError(
            f"{folder.parent.name} fitted again", expected="the scores of the run", got="others",
            fix="Run the baseline again with the installed version of scikit-learn (delete its folder).",
        )  # fmt: skip


def _scalars(choices: Mapping[str, Any], side: LabelSide) -> list[float]:
    """The weights of Stage 3 in the order of `LabelSide.weights`, then the constant."""
    weights = [choices["weights"][channel] for channel in side.channels]
    ends = [[one] if isinstance(one, float) else [one["rarest_label"], one["most_frequent_label"]] for one in weights]
    return [*(value for some in ends for value in some), choices["constant"]]


def _network(candidate: Candidate, materials: Materials, parts: Parts) -> tuple[LabelClassifier, dict[str, Any]]:
    """The trained network with its config; its tokenizer goes to the files of the folder."""
    assert candidate.network is not None and materials.tokens is not None
    data, classifier, _ = prepare(
        materials.settings, seed=candidate.seed, corpus=materials.corpus, tokens=materials.tokens,
        backbone=materials.backbone,
    )  # fmt: skip
    load_weights(classifier, candidate.network, head=True)
    tokens = load_tokens(materials.tokens.parent)
    if materials.settings["backbone"]["kind"] == "word_network":
        parts.files[VOCABULARY] = as_json(list(tokens.vocabulary))
    else:
        parts.files |= _tokenizer_files(materials)
    return classifier, backbone_record(classifier, materials.settings["backbone"]) | {
        "finetuning": dict(candidate.finetuning or {}), "skipped": np.flatnonzero(tokens.special).tolist(),
        "vocabulary": 1 + int(data.corpus.input_ids.max(initial=-1)), "labels": len(data.names),
        "trained": data.trained.tolist(),
    }  # fmt: skip


def _tokenizer_files(materials: Materials) -> dict[str, bytes]:
    from transformers import AutoTokenizer

    named = materials.settings["backbone"]
    options = {name: named[name] for name in ("revision", "trust_remote_code") if name in named}
    tokenizer = AutoTokenizer.from_pretrained(str(materials.backbone), **options)
    with TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir()) if file.is_file()}
