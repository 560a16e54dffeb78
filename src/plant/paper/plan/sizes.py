"""How large a corpus is: published sizes, else the corpus that is there, else what its generator makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plant.ground.files import read_json
from plant.ground.settings import Settings, Subset
from plant.paper.plan.networks import NetworkBackbone

FIELDS = ("train", "val", "test", "labels", "tokens")


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

    def tokens_of(self, backbone: NetworkBackbone) -> float:
        """Tokens of the mean document that a backbone reads; its max_tokens where the length is not known."""
        return backbone.max_tokens if self.tokens is None else min(self.tokens, backbone.max_tokens)


def find_sizes(settings: Settings, dataset: str, backbone: str) -> Sizes | None:
    """The sizes of a dataset; None where train, test or labels are not known.

    A field is taken from the first that has it: `expected` of the config, the statistics of the corpus (if it was
    made), the settings of its generator, and for a subset the dataset that it is a part of (an upper bound).
    `train_size`, `val_size` and `labels.top` bound what they say.
    """
    chosen = settings.datasets[dataset]
    ways = {
        "published": chosen.expected.model_dump(),
        "corpus": _measured(settings, dataset, backbone),
        "generator": _generated(settings, dataset),
    }
    if isinstance(chosen, Subset):
        whole = find_sizes(settings, chosen.of, backbone)
        ways["upper bound"] = {} if whole is None else {name: getattr(whole, name) for name in FIELDS}
    found, sources = {}, []
    for name in FIELDS:
        way = next((way for way, sizes in ways.items() if sizes.get(name) is not None), None)
        found[name] = None if way is None else ways[way][name]
        sources += [way] if way is not None else []
    if found["train"] is None or found["test"] is None or found["labels"] is None:
        return None
    train = int(found["train"])
    held_out = chosen.split.val / (chosen.split.train + chosen.split.val) if chosen.split.val else 0.0
    val = int(train * held_out if found["val"] is None else found["val"])
    return Sizes(
        train=min(train, chosen.train_size or train),
        val=min(val, chosen.val_size or val),
        test=int(found["test"]),
        labels=min(int(found["labels"]), chosen.labels.top or int(found["labels"])),
        tokens=found["tokens"],
        sources=tuple(dict.fromkeys(sources)),
    )


def _measured(settings: Settings, dataset: str, backbone: str) -> dict[str, Any]:
    folder = Path(settings.results) / "corpus" / dataset
    found: dict[str, Any] = {}
    if (folder / "statistics.json").is_file():
        record = read_json(folder / "statistics.json")
        found = {"labels": record["labels"], **{name: part["documents"] for name, part in record["splits"].items()}}
    if (folder / backbone / "statistics.json").is_file():
        found["tokens"] = read_json(folder / backbone / "statistics.json")["tokens_per_document"]["mean"]
    return found


def _generated(settings: Settings, dataset: str) -> Mapping[str, Any]:
    """What the generator of a stand-in makes, split by fractions."""
    chosen = settings.datasets[dataset]
    generate = getattr(chosen, "generate", None)
    if generate is None:
        return {}
    parts = {name: round(getattr(chosen.split, name) * generate.admissions) for name in ("train", "val", "test")}
    return {**parts, "labels": generate.codes, "tokens": generate.words_per_note}
