"""How large a corpus is: published sizes, else the corpus that is there, else what its generator makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plant.ground.files import read_json
from plant.ground.settings import Network, Settings, Subset


@dataclass(frozen=True)
class Sizes:
    """Documents of each split, labels, and mean tokens of a document."""

    train: int
    val: int
    test: int
    labels: int
    tokens: float | None
    """Before cutting; None: not known."""
    sources: tuple[str, ...]
    """Where the numbers come from, in words."""

    def tokens_of(self, backbone: Network) -> float:
        """Tokens of the mean document that a backbone reads; its max_tokens where the length is not known."""
        return backbone.max_tokens if self.tokens is None else min(self.tokens, backbone.max_tokens)


def find_sizes(settings: Settings, dataset: str, backbone: str) -> Sizes | None:
    """The sizes of a dataset; None where train, test or labels are not known.

    Each field is that of the first source that has it: `expected` of the config, the statistics of the corpus if it
    has been made, the settings of its generator, and for a subset the dataset that it is a part of (an upper bound).
    `train_size`, `val_size` and `labels.top` are upper bounds of all sources.
    """
    chosen = settings.datasets[dataset]
    known: dict[str, Mapping[str, Any]] = {
        "published": chosen.expected.model_dump(),
        "corpus": _measured(settings, dataset, backbone),
        "generator": _generated(settings, dataset),
    }
    if isinstance(chosen, Subset):
        whole = find_sizes(settings, chosen.of, backbone)
        known["upper bound"] = {} if whole is None else vars(whole)
    source_of = {}
    for name in ("train", "val", "test", "labels", "tokens"):
        source = next((source for source, sizes in known.items() if sizes.get(name) is not None), None)
        if source is not None:
            source_of[name] = source
    if not {"train", "test", "labels"} <= source_of.keys():
        return None
    sizes = {name: known[source][name] for name, source in source_of.items()}
    train, labels = int(sizes["train"]), int(sizes["labels"])
    held_out = chosen.split.val / (chosen.split.train + chosen.split.val) if chosen.split.val else 0.0
    val = int(sizes.get("val", train * held_out))
    return Sizes(
        train=min(train, chosen.train_size or train),
        val=min(val, chosen.val_size or val),
        test=int(sizes["test"]),
        labels=min(labels, chosen.labels.top or labels),
        tokens=sizes.get("tokens"),
        sources=tuple(dict.fromkeys(source_of.values())),
    )


def _measured(settings: Settings, dataset: str, backbone: str) -> dict[str, Any]:
    """Of the corpus that has been made, and of its tokens."""
    folder = Path(settings.results) / "corpus" / dataset
    corpus, tokens = folder / "statistics.json", folder / backbone / "statistics.json"
    sizes: dict[str, Any] = {}
    if corpus.is_file():
        record = read_json(corpus)
        sizes = {"labels": record["labels"], **{name: part["documents"] for name, part in record["splits"].items()}}
    if tokens.is_file():
        sizes["tokens"] = read_json(tokens)["tokens_per_document"]["mean"]
    return sizes


def _generated(settings: Settings, dataset: str) -> Mapping[str, Any]:
    """Of what the generator of a stand-in makes, split by the fractions of the config."""
    chosen = settings.datasets[dataset]
    generate = getattr(chosen, "generate", None)
    if generate is None:
        return {}
    parts = {name: round(getattr(chosen.split, name) * generate.admissions) for name in ("train", "val", "test")}
    return {**parts, "labels": generate.codes, "tokens": generate.words_per_note}
