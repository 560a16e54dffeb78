"""A tiny corpus, a tiny tokenizer and tiny random backbones, made once a session."""

from pathlib import Path

import polars as pl
import pytest

from plant.corpus.tokens import train_tokenizer
from plant.ground.seeds import generator
from plant.ground.settings import Random
from plant.model.transformer.backbone import make_random_backbone


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    random = generator(0, "words")
    words = ["".join(random.choice(list("abcdefgh"), 5)) for _ in range(60)]
    texts = [" ".join(random.choice(words, 30)) for _ in range(40)]
    table = pl.DataFrame({"document_id": [str(i) for i in range(40)], "group_id": [str(i) for i in range(40)],
                          "text": texts, "labels": [["x"]] * 40})  # fmt: skip
    table.write_parquet(folder / "train.parquet")
    train_tokenizer(folder / "train.parquet", vocabulary=300, out=folder / "tokenizer")
    return folder / "tokenizer"


@pytest.fixture(scope="session")
def tiny():
    """(options) -> settings of a tiny random backbone."""
    sizes = {"hidden_size": 16, "layers": 1, "heads": 2, "attention_heads": 2, "pool_size": 8, "vocabulary": 300}
    return lambda **options: Random.model_validate({"kind": "random", **sizes, **options})


@pytest.fixture(scope="session")
def backbone_folder(tokenizer, tmp_path_factory):
    """(settings) -> folder of the random backbone, made once an architecture."""
    made: dict[str, Path] = {}

    def make(settings: Random):
        key = f"{settings.architecture}{settings.hidden_size}x{settings.layers}"
        if key not in made:
            made[key] = tmp_path_factory.mktemp(key) / "backbone"
            make_random_backbone(settings, tokenizer, made[key])
        return made[key]

    return make
