"""The attention of a network at three points of its training, and its logits where tokens are hidden."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from plant.finetuning.kept_evidence import keep_evidence
from plant.ground.files import write_with
from plant.ground.settings import Finetuning
from plant.model.assemble import TrainingData, load_weights, prepare
from plant.model.batches import Corpus, pad_documents
from plant.model.classifier import NOTHING, Known, LabelClassifier
from plant.model.label_attention import ScoreBias
from plant.pretraining.lists import TopTokens, load_top_tokens

POINTS = ("before_stage_1", "before_stage_2", "after_stage_2")
"""Random weights; the weights (and static attention) that Stage 2 starts from; the trained network."""
PADDED = 2**16
"""Tokens of altered documents that are read at once."""


@dataclass(frozen=True)
class TrainedNetwork:
    """One network and what it reads.

    Attributes:
        data: documents and label space.
        top: T_l of every label, in the trained label space.
        classifier: as its seed initialises it.
        recipe: of Stage 2.
        planted: folder of the weights of Stage 1; None without Stage 1.
        trained: folder of the weights of Stage 2.
        corpus, tokens: folders of the corpus and of its tokens.
        static, residual: files of the relevance room that the recipe keeps, or None.
    """

    data: TrainingData
    top: TopTokens
    classifier: LabelClassifier
    recipe: Finetuning
    planted: Path | None
    trained: Path
    corpus: Path
    tokens: Path
    static: Path | None = None
    residual: Path | None = None

    def points(self) -> Iterator[tuple[str, Corpus]]:
        """Each of `POINTS` with the corpus to read; the classifier has the weights of that point until the next.

        After the last one it is the trained network.
        """
        yield POINTS[0], self.data.corpus
        kept = keep_evidence(
            self.data, self.classifier, self.recipe, static=self.static, residual=self.residual, whole=False
        )
        if self.planted is not None:
            load_weights(self.classifier, self.planted, head=False)
        yield POINTS[1], kept.corpus
        load_weights(self.classifier, self.trained, head=True)
        yield POINTS[2], kept.corpus


def open_network(
    settings: Mapping[str, Any], *, corpus: Path, tokens: Path, relevance: Path, start: str | None, trained: Path,
    static: Path | None, residual: Path | None, **more: Any,
) -> tuple[TrainedNetwork, dict[str, Any]]:  # fmt: skip
    """The network of a run, with the weights that its seed gives, and facts for the provenance.

    Args:
        settings: sections of the config, with `backbone`, `compute`, `finetuning` and `initialisation`.
        tokens: tokens.safetensors of the backbone.
        relevance: `mig.safetensors` of the relevance room.
        start: `planted` of the network; `corpus`, `trained`, `static` and `residual` as in `TrainedNetwork`.
        more: the other arguments of `plant.model.assemble.prepare`.
    """
    initial, recipe = settings["initialisation"], Finetuning.model_validate(settings["finetuning"])
    data, classifier, facts = prepare(settings, corpus=corpus, tokens=tokens, initialisation=initial, **more)
    top, planted = load_top_tokens(relevance, data, k=None), None if start is None else Path(start)
    network = TrainedNetwork(data, top, classifier, recipe, planted, trained, corpus, tokens.parent, static, residual)
    return network, facts


@torch.no_grad()
def attention(classifier: LabelClassifier, corpus: Corpus, document: int, labels: np.ndarray) -> np.ndarray:
    """`LabelClassifier.attention_weights` of labels (m) and the n tokens of a document, (m, n)."""
    classifier.eval()
    padded = pad_documents(corpus, [document], classifier.attention.embeddings.device)
    hidden = classifier.hidden_states(padded)
    ids = torch.from_numpy(labels.astype(np.int64))[None].to(hidden.device)
    return classifier.attention_weights(hidden, padded.mask, ids, padded.known).cpu().numpy()


@torch.no_grad()
def logits_of_parts(
    classifier: LabelClassifier, corpus: Corpus, document: int, labels: np.ndarray, kept: Sequence[np.ndarray]
) -> np.ndarray:
    """Logits of labels (m) for a document from which tokens were taken out, (len(kept), m) float64.

    The backbone reads the shorter document; cached hidden states stay what they were. What counts say of the tokens
    that are left (static attention, residual) stays too.

    `corpus` has the evidence that the recipe keeps. `kept` has an array for each altered document: the positions of the
    tokens that are left, ascending, at least one.
    """
    classifier.eval()
    device = classifier.attention.embeddings.device
    ids = torch.from_numpy(labels.astype(np.int64)).to(device)
    known = NOTHING if corpus.known is None else corpus.known(np.array([document]), device)
    bias, weights = (None if part is None else part(0, ids) for part in (known.bias, known.weights))  # (m, n)
    size = max(1, PADDED // max(map(len, kept)))
    rows = []
    for start in range(0, len(kept), size):
        part = kept[start : start + size]
        evidence = None if known.evidence is None else known.evidence.expand(len(part), -1)
        altered = pad_documents(_altered(corpus, document, part), np.arange(len(part)), device)
        altered = replace(altered, known=Known(_columns(bias, part), _columns(weights, part), evidence))
        rows.append(classifier.predict(altered, ids.expand(len(part), -1)).double().cpu().numpy())
    return np.concatenate(rows)


def _altered(corpus: Corpus, document: int, kept: Sequence[np.ndarray]) -> Corpus:
    """A corpus of the altered documents alone, without evidence."""
    places = corpus.offsets[document] + np.concatenate(kept)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in kept])])
    features = None if corpus.features is None else corpus.features[places]
    return replace(corpus, input_ids=corpus.input_ids[places], offsets=offsets, features=features, known=None)


def _columns(values: Tensor | None, kept: Sequence[np.ndarray]) -> ScoreBias | None:
    """What counts say of altered documents: of the whole one (m, n), the columns of the tokens that are left."""
    if values is None:
        return None
    return lambda row, _: values[:, torch.from_numpy(kept[row]).to(values.device)]


def write_rows(out: Path, schema: dict[str, Any], rows: Iterable[dict[str, Any]]) -> None:
    """Write a parquet table of groups of rows: a group is columns, or single values that hold for all its rows."""
    parts = [pl.DataFrame(schema=schema), *(pl.DataFrame(row, schema=schema) for row in rows)]
    write_with(out, pl.concat(parts).fill_nan(None).write_parquet)
