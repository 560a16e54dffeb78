"""From the runs of an experiment to one model folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass as parsed

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
from plant.serving.card import card
from plant.serving.folder import as_json
from plant.serving.modeling import PlantConfig, PlantForDocuments
from plant.serving.network import VOCABULARY, backbone_record
from plant.serving.system import SavedSystem
from plant.serving.words import WordScorer

SCORERS = {"mig_log_odds": "log_odds", "tfidf_linear": "linear"}
"""Baselines whose words can be saved, and the channels that they make."""


@parsed(frozen=True)
class Candidate:
    """One run of a system: a seed of a variant, or a baseline. It is parsed from the settings of a job.

    Attributes:
        system: its name in the config.
        scores: its evaluation folder.
        network: folder of its Stage 2 weights.
        finetuning, evidence: its recipes.
        channels: channel -> evaluation folder, for all that it reads but the prior.
        static: relevance that it adds to the attention.
    """

    system: str
    scores: Path
    seed: int
    network: Path | None = None
    finetuning: Finetuning | None = None
    evidence: Evidence | None = None
    channels: Mapping[str, Path] = field(default_factory=dict)
    static: Path | None = None

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

    @cached_property
    def labels(self) -> Labels:
        return load_labels(self.corpus)

    @cached_property
    def trained(self) -> list[int]:
        """Numbers of the labels with a training document: those that a model knows."""
        return np.flatnonzero(self.labels.counts[0]).tolist()

    @property
    def hides_words(self) -> bool:
        """The corpus is credentialed, and no words of it may be written."""
        return bool(self.settings.get("private")) and not self.settings["evaluation"]["show_credentialed"]


def best_candidate(candidates: Sequence[Candidate], materials: Materials) -> tuple[Candidate, tuple[str, ...]]:
    """The run with the best F1 on validation of those that can be saved; the first of equal ones.

    Returns:
        The run, and one sentence for each better system that cannot be saved.

    Raises:
        InputError: no run can be saved; the error is that of the best one.
    """
    passed_over: dict[str, str] = {}
    errors: list[InputError] = []
    for run in sorted(candidates, key=lambda each: -each.on_validation):
        error = refusal(run, materials)
        if error is None:
            return run, tuple(passed_over.values())
        errors.append(error)
        said = f"`{run.system}` is better on validation ({run.on_validation:.3f}), and cannot be saved: {error.got}."
        passed_over.setdefault(run.system, said)
    raise errors[0]


def export(candidate: Candidate, materials: Materials, out: Path, *, passed_over: Sequence[str] = ()) -> None:
    """Write the model folder of a run; `passed_over` are sentences for the model card (`best_candidate`).

    Raises:
        InputError: the run cannot be saved (`refusal`), or the saved word scores are not those of the run.
    """
    if error := refusal(candidate, materials):
        raise error
    labels, trained, metrics = materials.labels, materials.trained, read_json(candidate.scores / "metrics.json")
    kind, channels = _kind(candidate), list(_channels(candidate))
    limits = Evaluation.model_validate(materials.settings["evaluation"])
    saved = SavedSystem(
        network={}, cleaning=dict(materials.settings["cleaning"]), static=candidate.static,
        system={"name": candidate.system, "kind": kind, "channels": channels},
        thresholds={"rule": "one threshold for all labels, tuned on validation", **metrics["threshold"]},
        labels=[{"label": labels.names[label], "description": labels.descriptions[label],
                 "training_documents": int(labels.counts[0, label])} for label in trained],
        scorers={name: _scorer(name, candidate, materials) for name in channels if name in SCORERS.values()},
    )  # fmt: skip
    if kind == "evidence":
        assert candidate.evidence is not None
        side = LabelSide.of(labels, candidate.evidence)
        saved.arrays |= {"prior": side.prior[trained], "ends": side.ends[:, trained]}
        saved.system["scalars"] = _scalars(read_json(candidate.scores / "choices.json"), side)
    if kind == "combined":
        pairs = align([read_scores(candidate.channels[channel], "val") for channel in channels])
        saved.system["scales"] = [[each.mean, each.deviation] for each in map(moments_of, pairs.scores)]
        saved.system["weight"] = read_json(candidate.scores / "choices.json")["weight"]
    if "network" in channels:
        _add_network(saved, candidate, materials)
    natural = read_scores(candidate.scores, "val").natural_threshold
    saved.system |= {"natural_threshold": natural, "top": limits.top, "dense_limit": limits.dense_limit}
    saved.files["README.md"] = card(candidate, saved, labels, metrics, materials.settings, passed_over).encode()
    names = dict(enumerate(saved.label_names))
    config = PlantConfig(
        saved.network, saved.system, saved.cleaning, id2label=names,
        label2id={name: place for place, name in names.items()}, problem_type="multi_label_classification",
    )  # fmt: skip
    PlantForDocuments(config, saved).save_pretrained(out)


def _kind(candidate: Candidate) -> str:
    if candidate.evidence is not None:
        return "evidence"
    return "network" if candidate.network is not None else SCORERS.get(candidate.system, candidate.system)


def _channels(candidate: Candidate) -> tuple[str, ...]:
    if candidate.evidence is not None:
        return candidate.evidence.channels
    if candidate.system == "combined":
        return tuple(SCORERS[part] for part in PARTS)
    return (_kind(candidate),)


def refusal(candidate: Candidate, materials: Materials) -> InputError | None:
    """Why a run cannot be saved; None if it can."""
    where = f"saved model of {candidate.system}"
    words = [channel for channel in _channels(candidate) if channel not in ("network", "prior")]
    known = SCORERS.values()
    if unknown := [channel for channel in words if channel not in known]:
        return InputError(
            where, expected=f"the channels network, prior, {', '.join(known)}", got=f"the channel {unknown[0]}",
            fix="Save a system without this channel: it reads the training corpus, which a folder does not hold.",
        )  # fmt: skip
    recipe = candidate.finetuning
    cut = recipe and recipe.shortlist is not None and materials.labels.n_labels > recipe.shortlist_above
    if recipe is not None and (recipe.residual is not None or cut):
        what = "a shortlist" if recipe.residual is None else "a residual"
        return InputError(
            where, expected="a network that scores all labels from the text alone", got=f"a recipe with {what}",
            fix="Save a variant without it.",
        )  # fmt: skip
    trained_here = candidate.network is not None and materials.settings["backbone"]["kind"] != "pretrained"
    kept = recipe is not None and candidate.network is not None and recipe.static_attention > 0
    if materials.hides_words and (words or trained_here or kept):
        what = "the words of word scores" if words else "a vocabulary that was trained on the notes"
        if not words and not trained_here:  # of a label of one document the tokens of that document
            what = "the relevance of words in static attention"
        return InputError(
            where, expected="a system without words of a credentialed corpus", got=what,
            fix="A folder is made to be given away, and these words come from the notes of patients. If it stays where "
            "the notes are, set evaluation.show_credentialed: true.",
        )  # fmt: skip
    return None


def _scorer(channel: str, candidate: Candidate, materials: Materials) -> WordScorer:
    """The whole weights of a word channel. The linear model is fitted again: its run keeps the largest weights only.

    Raises:
        InputError: the fitted weights do not give the scores of the run.
    """
    labels, folder = materials.labels, candidate.channels.get(channel, candidate.scores)
    names = [labels.names[label] for label in materials.trained]
    if channel == "log_odds":
        most = materials.settings["words"]["max_tokens"]
        return WordScorer.from_tables(read_weights(folder), names, max_tokens=most)
    chosen = {"svm_c": (read_json(folder / "choices.json")["c"],), "reasons": 2**31 - 1}
    settings = BaselineSettings.model_validate({**materials.settings["baselines"], **chosen})
    made = tfidf_linear(Sources(labels, settings, threads=materials.threads))
    assert made.weights is not None and made.features is not None
    idf = dict(zip(made.features["feature"].to_list(), made.features["idf"].to_list(), strict=True))
    scorer = WordScorer.from_tables(made.weights, names, idf=idf)
    texts = labels.texts("test")[:100]
    stored = read_scores(folder, "test").kept[: len(texts), materials.trained].tocoo()
    if not np.allclose(scorer.score(texts)[stored.coords], stored.data, rtol=2e-3, atol=2e-3):  # rounded to fp16
        raise InputError(
            f"{folder.parent.name} fitted again", expected="the scores of the run", got="others",
            fix="Run the baseline again with the installed version of scikit-learn (delete its folder).",
        )  # fmt: skip
    return scorer


def _scalars(choices: Mapping[str, Any], side: LabelSide) -> list[float]:
    """The weights of Stage 3 in the order of `LabelSide.weights`, then the constant."""
    weights = [choices["weights"][channel] for channel in side.channels]
    ends = [[one] if isinstance(one, float) else [one["rarest_label"], one["most_frequent_label"]] for one in weights]
    return [*(value for some in ends for value in some), choices["constant"]]


def _add_network(saved: SavedSystem, candidate: Candidate, materials: Materials) -> None:
    """Put the trained network into a system, with its section of config.json and its tokenizer."""
    assert candidate.network is not None and candidate.finetuning is not None and materials.tokens is not None
    data, classifier, _ = prepare(
        materials.settings, seed=candidate.seed, corpus=materials.corpus, tokens=materials.tokens,
        backbone=materials.backbone,
    )  # fmt: skip
    load_weights(classifier, candidate.network, head=True)
    tokens = load_tokens(materials.tokens.parent)
    if materials.settings["backbone"]["kind"] == "word_network":
        saved.files[VOCABULARY] = as_json(list(tokens.vocabulary))
    else:
        saved.files |= _tokenizer_files(materials)
    saved.classifier = classifier
    saved.network = backbone_record(classifier, materials.settings["backbone"]) | {
        "finetuning": dict(sorted(candidate.finetuning.model_dump(mode="json").items())),
        "skipped": np.flatnonzero(tokens.special).tolist(),
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
