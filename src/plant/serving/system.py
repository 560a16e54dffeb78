"""A saved system without transformers: what `plant predict` and `plant serve` load.

A system that only reads words needs no network, so PyTorch is not imported for it: its first answer comes after about
one second of work in place of five. `plant.serving.modeling` has the same system as a class of transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plant.ground import files
from plant.ground.errors import InputError, nearest
from plant.metrics.scores import Scores
from plant.serving import folder as places
from plant.serving.folder import check_folder
from plant.serving.words import WordScorer

if TYPE_CHECKING:
    from plant.model.classifier import LabelClassifier

WORDS, WORD_ARRAYS, STATIC = "words.json", "words.safetensors", "static_attention.safetensors"
STRUCTURED = (places.CONFIG, places.THRESHOLDS, places.LABELS, places.WEIGHTS, WORDS, WORD_ARRAYS, STATIC)
"""Files that are read into parts of the system; the others are kept as they are."""

NEAREST = 50
"""Label sets up to this size are named, or the nearest of them, where a label is not known."""


@dataclass
class Parts:
    """What a system holds beside its network.

    Attributes:
        scorers: channel -> word scores.
        arrays: of Stage 3: `prior` (L,), `ends` (E, L).
        static: file of the relevance that is added to the attention, or None.
        thresholds: thresholds.json.
        labels: labels.json, a record a label.
        files: tokenizer and model card, by name.
    """

    scorers: dict[str, WordScorer] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    thresholds: dict[str, Any] = field(default_factory=dict)
    labels: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    static: Path | None = None


@dataclass(frozen=True)
class SavedConfig:
    """config.json of a saved model; `plant.serving.modeling.PlantConfig` says what is in it.

    Attributes:
        network, system, cleaning: its sections.
        label_names: in the order of the scores.
    """

    network: dict[str, Any]
    system: dict[str, Any]
    cleaning: dict[str, Any]
    label_names: list[str]

    @property
    def num_labels(self) -> int:
        return len(self.label_names)


class SavedSystem:
    """A system that labels documents: a network, word scores, or both.

    Args:
        config: of the system; a class of transformers has a `PlantConfig` here, with the same attributes.
        parts: words, thresholds and labels.
        classifier: the network; None if the system has none.
    """

    config: Any
    parts: Any
    classifier: Any  # transformers evaluates these types, and that of a network needs PyTorch

    def __init__(self, config: SavedConfig, parts: Parts, classifier: LabelClassifier | None) -> None:
        self.config, self.parts, self.classifier = config, parts, classifier

    def score(self, texts: Sequence[str]) -> Scores:
        """Scores of the whole system, as `plant.serving.scoring.score` gives them."""
        from plant.serving.scoring import score

        return score(self, texts)

    def label_ids(self, names: Sequence[str]) -> list[int]:
        """The numbers of labels.

        Raises:
            InputError: a label that the model does not know.
        """
        places = {name: place for place, name in enumerate(self.config.label_names)}
        for name in names:
            if name not in places:
                raise InputError(
                    f"label {name!r}", expected=f"one of the {len(places):,} labels of the model", got="another one",
                    fix=f"{nearest(name, places) if len(places) <= NEAREST else ''} labels.json lists them.".strip(),
                )  # fmt: skip
        return [places[name] for name in names]


def load_system(folder: str | Path) -> SavedSystem:
    """Load a folder after checking that it is whole (`plant.serving.folder.check_folder`).

    Raises:
        InputError: as `check_folder`, or the weights do not fit the config.
    """
    path = check_folder(folder)
    parts, record = read_parts(path), files.read_json(path / places.CONFIG)
    network, system, cleaning = (record.get(name, {}) for name in ("network", "system", "cleaning"))
    config = SavedConfig(network, system, cleaning, [label["label"] for label in parts.labels])
    return SavedSystem(config, parts, read_network(config, path))


def read_network(config: SavedConfig, path: Path) -> LabelClassifier | None:
    """The network of a folder; None if the system has none, and PyTorch is then not imported.

    Raises:
        InputError: the weights do not fit the config.
    """
    if not config.network:
        return None
    from plant.serving.network import load_network

    return load_network(config, path / places.WEIGHTS)


def read_parts(path: Path) -> Parts:
    """What a folder holds beside its network."""
    scorers, arrays = {}, {}
    if (path / WORD_ARRAYS).is_file():
        arrays = {name: array.copy() for name, array in files.read_arrays(path / WORD_ARRAYS).items()}  # not mapped
        for channel, record in files.read_json(path / WORDS).items():
            own = {name.partition(".")[2]: arrays.pop(name) for name in [*arrays] if name.startswith(f"{channel}.")}
            scorers[channel] = WordScorer.from_arrays(record, own)
    listed = files.read_json(path / places.MANIFEST)["files"]
    return Parts(
        scorers, arrays, files.read_json(path / places.THRESHOLDS), files.read_json(path / places.LABELS),
        {name: (path / name).read_bytes() for name in listed if name not in STRUCTURED},
        path / STATIC if STATIC in listed else None,
    )  # fmt: skip
