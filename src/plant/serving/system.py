"""A saved system: what a folder holds, and the scores that it gives texts.

`plant predict` and `plant serve` load it without transformers. A system that only reads words is loaded without PyTorch
too: its first answer comes after about one second of work in place of five. `plant.serving.modeling` wraps it as a
class of transformers.

Scores are made by the functions, batches and rounding of the pipeline, so they are the same scores.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from plant.baselines.combined import Moments, weighted
from plant.corpus.cleaning import clean
from plant.evidence.design import Design, LabelSide
from plant.ground import files
from plant.ground.errors import InputError, nearest
from plant.ground.settings import Cleaning
from plant.metrics.aligned import align
from plant.metrics.scores import PART, SCORES, Scores, kept_scores, to_fp16
from plant.serving import folder as places
from plant.serving.folder import as_json, check_folder, new_folder
from plant.serving.inputs import check_text
from plant.serving.words import WordScorer

if TYPE_CHECKING:
    from plant.model.classifier import LabelClassifier
    from plant.serving.network import Look

WORDS, WORD_ARRAYS, STATIC = "words.json", "words.safetensors", "static_attention.safetensors"
STRUCTURED = (places.CONFIG, places.THRESHOLDS, places.LABELS, places.WEIGHTS, WORDS, WORD_ARRAYS, STATIC)
"""Files that are read into parts of the system; the others are kept as they are."""
NEAREST = 50
"""Label sets up to this size are named, or the nearest of them, where a label is not known."""


@dataclass(eq=False)
class SavedSystem:
    """A system that labels documents: a network, word scores, or both.

    Attributes:
        network, system, cleaning: sections of config.json (`plant.serving.modeling.PlantConfig`).
        thresholds: thresholds.json.
        labels: labels.json, one record for each label, in the order of the scores.
        scorers: channel -> word scores.
        arrays: of Stage 3: `prior` (L,), `ends` (E, L).
        files: tokenizer and model card, by name.
        static: file of the relevance that is added to the attention, or None.
        classifier: the network with its weights; None if the system has none.
    """

    network: dict[str, Any]
    system: dict[str, Any]
    cleaning: dict[str, Any]
    thresholds: dict[str, Any]
    labels: list[dict[str, Any]]
    scorers: dict[str, WordScorer] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    static: Path | None = None
    classifier: LabelClassifier | None = None

    @cached_property
    def label_names(self) -> tuple[str, ...]:
        """The labels in the order of the scores."""
        return tuple(record["label"] for record in self.labels)

    @property
    def part_size(self) -> int:
        """Texts that are scored together: as many as the pipeline scores at once."""
        return max(1, min(PART, SCORES // len(self.labels)))

    def label_ids(self, names: Sequence[str]) -> list[int]:
        """The numbers of labels; an InputError names one that the model does not know."""
        known = {name: place for place, name in enumerate(self.label_names)}
        for name in names:
            if name not in known:
                raise InputError(
                    f"label {name!r}", expected=f"one of the {len(known):,} labels of the model", got="another one",
                    fix=f"{nearest(name, known) if len(known) <= NEAREST else ''} labels.json lists them.".strip(),
                )  # fmt: skip
        return [known[name] for name in names]

    def clean(self, texts: Sequence[str]) -> list[str]:
        """The texts as the model reads them; character spans of reasons count in them.

        Raises:
            InputError: a text is empty or too long, or `texts` is one text. No text is quoted.
        """
        if isinstance(texts, str):  # each of its letters would be a text
            raise InputError("texts", expected="a list of texts", got="one text", fix="Put it into a list.")
        for number, text in enumerate(texts, 1):
            check_text(text, f"text {number}")
        return clean(pl.Series(list(texts), dtype=pl.String), Cleaning.model_validate(self.cleaning)).to_list()

    def score(self, texts: Sequence[str]) -> Scores:
        """Scores of some texts (see `clean`); give `part_size` of them at once to get the pipeline's bits.

        A text without a token that the network knows gets no score (-inf), as in the pipeline.
        """
        return self.score_cleaned(self.clean(texts))

    def score_cleaned(self, cleaned: Sequence[str], look: Look | None = None, *, every: bool = False) -> Scores:
        """`score` of texts that `clean` gave; `look` is called for each text that the network reads.

        With `every`, all scores are kept, also where the pipeline keeps the best of each text alone.
        """
        names = [name for name in self.system["channels"] if name != "prior"]
        as_scores = partial(self.as_scores, every=every)
        channels = [as_scores(self._channel(name, cleaned, look)) for name in names]
        if self.system["kind"] not in ("combined", "evidence"):
            return channels[0]
        pairs = align(channels)
        if self.system["kind"] == "combined":
            scales = [Moments(*each) for each in self.system["scales"]]
            return as_scores(weighted(pairs, scales, self.system["weight"]))
        trained = np.ones(len(self.labels), bool)
        side = LabelSide(tuple(self.system["channels"]), self.arrays["prior"], self.arrays["ends"], trained)
        none = sp.csr_array((len(cleaned), len(self.labels)), dtype=bool)
        scalars = {0: np.array(self.system["scalars"])}
        logits = Design(pairs, side, none).logits(scalars, np.zeros(len(cleaned), np.int64))
        return as_scores(pairs.filled(logits.astype(np.float32)))

    def _channel(self, name: str, cleaned: Sequence[str], look: Look | None) -> np.ndarray:
        """(N, L) float32: what one channel says."""
        if name != "network":
            return self.scorers[name].score(cleaned)
        from plant.serving.network import network_logits  # imports PyTorch, which words do not need

        return network_logits(self, cleaned, look)

    def as_scores(self, values: np.ndarray | sp.csr_array, *, every: bool = False) -> Scores:
        """Scores as `plant.metrics.scores` keeps them: rounded to fp16, or the best (or every one) for many labels."""
        top = len(self.labels) if every else self.system["top"]
        dense = None
        if isinstance(values, np.ndarray) and len(self.labels) <= self.system["dense_limit"]:
            values = dense = to_fp16(values).astype(np.float32)
        truth = sp.csr_array(values.shape, dtype=bool)
        kept = kept_scores(values, truth, top)
        ids = tuple(str(number) for number in range(values.shape[0]))
        return Scores(ids, self.label_names, truth, kept, dense, top, self.system["natural_threshold"])

    def save(self, out: Path, config: dict[str, Any]) -> None:
        """Write the system as one folder, in one step. `config` is the content of config.json.

        Raises:
            InputError: `out` is there and is no saved model.
        """
        content = self.files | {
            places.CONFIG: as_json(config), places.THRESHOLDS: as_json(self.thresholds),
            places.LABELS: as_json(self.labels),
        }  # fmt: skip
        arrays = dict(self.arrays)
        for channel, scorer in self.scorers.items():
            arrays |= {f"{channel}.{name}": array for name, array in scorer.arrays().items()}
        if arrays:
            content[WORDS] = as_json({channel: scorer.record() for channel, scorer in self.scorers.items()})
        with new_folder(out) as folder:
            for name, value in content.items():
                (folder / name).write_bytes(value)
            if arrays:
                files.write_arrays(folder / WORD_ARRAYS, arrays)
            if self.classifier is not None:
                from plant.ground.checkpoints import save_tensors

                save_tensors(folder / places.WEIGHTS, self.classifier.state_dict())
            if self.static is not None:
                shutil.copyfile(self.static, folder / STATIC)


def load_system(folder: str | Path) -> SavedSystem:
    """The system of a folder, which is checked first (`plant.serving.folder.check_folder`)."""
    path, listed = check_folder(folder)
    record = files.read_json(path / places.CONFIG)
    system = SavedSystem(
        record.get("network", {}), record["system"], record["cleaning"],
        files.read_json(path / places.THRESHOLDS), files.read_json(path / places.LABELS),
        files={name: (path / name).read_bytes() for name in listed if name not in STRUCTURED},
        static=path / STATIC if STATIC in listed else None,
    )  # fmt: skip
    if WORD_ARRAYS in listed:
        # copies: a mapped file that is overwritten would end the process
        arrays = {name: array.copy() for name, array in files.read_arrays(path / WORD_ARRAYS).items()}
        for channel, kept in files.read_json(path / WORDS).items():
            own = {name.partition(".")[2]: arrays.pop(name) for name in [*arrays] if name.startswith(f"{channel}.")}
            system.scorers[channel] = WordScorer.from_arrays(kept, own)
        system.arrays = arrays
    if system.network:
        from plant.serving.network import load_network  # imports PyTorch, which words do not need

        system.classifier = load_network(system.network, len(system.labels), path / places.WEIGHTS)
    return system
