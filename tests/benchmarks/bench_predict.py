"""`plant predict` beside the arithmetic of its backbone. fast: the command after loading; plain: the backbone alone.

A network of MiniLM's shape with random weights (BERT, 6 layers, h 384) reads a CSV of made-up documents. The plain way
is the floor: each document passes through the backbone at its own length, without padding, and nothing else happens. So
"times faster" is the share of the floor that the command reaches: 0.9 says that a tenth of its time goes into reading,
tokens, padding, label attention, reasons and output.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import torch
from run import Job

from plant.corpus.tokens import train_tokenizer
from plant.ground.settings import Finetuning, parse_backbone
from plant.model.assemble import make_classifier
from plant.model.batches import pad_documents
from plant.model.transformer.backbone import load_backbone, make_random_backbone
from plant.serving.inputs import open_documents
from plant.serving.modeling import PlantConfig, PlantForDocuments
from plant.serving.network import backbone_record, corpus_of, network_of, tokens_of
from plant.serving.predict import predictions
from plant.serving.show import FORMATS
from plant.serving.system import SavedSystem, load_system

JOBS = {
    f"256 documents, 50 labels, {reasons} reasons": Job(
        "predict", {"documents": 256, "labels": 50, "reasons": reasons},
        {"documents": 4, "labels": 5, "reasons": reasons, "layers": 1},
    )
    for reasons in (0, 5)
}  # fmt: skip
WORDS = 5_000


def predict(way: str, documents: int, labels: int, reasons: int, layers: int = 6) -> Callable[[], int]:
    """The number of documents."""
    folder, texts = Path(tempfile.mkdtemp()), make_texts(documents)
    save_network(folder, texts, labels, layers)
    model = load_system(folder / "model")

    def command() -> int:
        source = open_documents(str(folder / "texts.csv"), kind=None, text_column="text", id_column="id")
        lines = list(FORMATS["jsonl"](predictions(model, source.documents, top=5, reasons=reasons)))
        (folder / "out.jsonl").write_text("".join(lines), encoding="utf-8")
        return len(lines)

    corpus, backbone = corpus_of(model, [ids for ids, _ in tokens_of(model, texts)]), network_of(model).backbone
    assert backbone is not None

    def floor() -> int:
        with torch.no_grad():
            padded = (pad_documents(corpus, [document], torch.device("cpu")) for document in range(documents))
            return sum(len(backbone(one.input_ids, one.mask)) for one in padded)

    return floor if way == "plain" else command


def make_texts(documents: int) -> list[str]:
    """Texts whose lengths are spread as those of notes are."""
    random = np.random.default_rng(0)
    sizes = np.clip(random.lognormal(5.0, 0.7, documents), 20, 1_500).astype(int)
    return [" ".join(f"word{number}" for number in random.integers(0, WORDS, size)) for size in sizes]


def save_network(folder: Path, texts: list[str], labels: int, layers: int) -> None:
    """texts.csv and the model folder `model`, with a tokenizer of the texts."""
    with (folder / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *enumerate(texts)])
    shape = {"hidden_size": 384, "layers": layers, "heads": 12, "vocabulary": 8_000}
    settings = parse_backbone({"kind": "random", "architecture": "bert", **shape})
    pl.DataFrame({"text": texts}).write_parquet(folder / "train.parquet")
    train_tokenizer(folder / "train.parquet", vocabulary=settings.vocabulary, out=folder / "tokenizer")
    make_random_backbone(settings, folder / "tokenizer", folder / "backbone")
    backbone = load_backbone(settings, folder / "backbone")
    classifier = make_classifier(settings, backbone, n_labels=labels)
    names = {place: f"L{place}" for place in range(labels)}
    network = backbone_record(classifier, settings.model_dump(mode="json")) | {
        "finetuning": Finetuning().model_dump(mode="json"), "skipped": [0, 1, 2, 3], "labels": labels,
        "trained": list(range(labels)), "vocabulary": settings.vocabulary,
    }  # fmt: skip
    system = {
        "name": "made up", "kind": "network", "channels": ["network"], "natural_threshold": 0.0, "top": 100,
        "dense_limit": 20_000,
    }  # fmt: skip
    files = {name: (folder / "tokenizer" / name).read_bytes() for name in ("tokenizer.json", "tokenizer_config.json")}
    saved = SavedSystem(
        network, system, {"style": "raw", "max_words": None}, {"value": 0.0},
        [{"label": name, "description": None} for name in names.values()],
        files={**files, "README.md": b"made up\n"}, classifier=classifier,
    )  # fmt: skip
    config = PlantConfig(
        network, system, saved.cleaning, id2label=names, label2id={name: place for place, name in names.items()}
    )
    PlantForDocuments(config, saved).save_pretrained(folder / "model")
