"""Made-up corpora and models for the steps of `make gpu`: nothing is read but the shapes of published models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
import yaml
from torch import nn

from plant.ground.files import atomic_path
from plant.ground.seeds import generator
from plant.ground.settings import Pretrained, Random
from plant.model.batches import Corpus
from plant.model.transformer.backbone import make_random_backbone
from plant.pretraining.lists import TopTokens

SHAPES = Path(__file__).with_name("shapes.yaml")
MISTRAL = "mistralai/Mistral-7B-Instruct-v0.3"
POSITIVES = 15  # labels of a document: MIMIC-III has 14 in the median
VOCABULARY = 300


@dataclass(frozen=True)
class Place:
    """Where a step runs.

    Attributes:
        device: `cuda` or `cpu`.
        tiny: small sizes, which show that the code runs and nothing else.
        folder: for files that later steps of the same run may use.
        paths: what the user named: weights, a corpus, its tokens.
    """

    device: torch.device
    tiny: bool
    folder: Path
    paths: dict[str, Path] = field(default_factory=dict)

    def either(self, real: Any, tiny: Any) -> Any:
        """A size: of the real step, or of the tiny one."""
        return tiny if self.tiny else real


def measured(place: Place, work: Callable[[], Any], *, repeats: int = 5) -> tuple[float, float | None]:
    """Median seconds of a piece of work, and the most GB of GPU memory during it (None on a CPU).

    The first two calls are not counted: they compile kernels and take memory from the device.
    """
    cuda = place.device.type == "cuda"
    seconds = []
    for call in range(place.either(repeats, 1) + 2):
        if cuda and call == 2:
            torch.cuda.reset_peak_memory_stats()
        if cuda:
            torch.cuda.synchronize()
        start = perf_counter()
        work()
        if cuda:
            torch.cuda.synchronize()
        seconds.append(perf_counter() - start)
    return median(seconds[2:]), torch.cuda.max_memory_allocated() / 1e9 if cuda else None


def make_corpus(lengths: Iterable[int], labels: int, *, vocabulary: int = VOCABULARY, features: int = 0) -> Corpus:
    """Random documents; the first four fifths are the train split, the rest is val.

    Args:
        lengths: tokens of each document.
        labels: |L|; token 10 + l is put into a document of label l where the vocabulary has it.
        vocabulary: V.
        features: size h of random hidden states in place of a backbone; 0 for none.
    """
    random, sizes = generator(0, "gpu"), np.array(list(lengths))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    ids = random.integers(10, vocabulary, offsets[-1]).astype(np.int32)
    few = min(POSITIVES, max(1, labels // 3))
    chosen = np.stack([np.sort(random.choice(labels, few, replace=False)) for _ in sizes])
    for row, (start, size) in enumerate(zip(offsets, sizes, strict=False)):
        signs = (10 + chosen[row][chosen[row] + 10 < vocabulary])[:size]
        ids[start : start + len(signs)] = signs
    states = random.standard_normal((offsets[-1], features), dtype=np.float32).astype(np.float16) if features else None
    last = max(1, len(sizes) * 4 // 5)
    splits = {"train": (0, last), "val": (last, len(sizes)), "test": (len(sizes), len(sizes))}
    return Corpus(ids, offsets, np.arange(len(sizes) + 1) * few, chosen.ravel(), splits, states)


def make_top_tokens(labels: int, *, tokens: int = 40, vocabulary: int = VOCABULARY) -> TopTokens:
    """T_l: random tokens with falling relevance, the label's own sign first."""
    random = generator(0, "relevance")
    rows = np.stack([random.choice(np.arange(10, vocabulary), tokens, replace=False) for _ in range(labels)])
    signs = np.minimum(10 + np.arange(labels), vocabulary - 1)
    rows[:, 0] = np.where((rows == signs[:, None]).any(1), rows[:, 0], signs)
    relevance = np.tile(np.linspace(1, 0.05, tokens, dtype=np.float32), labels)
    return TopTokens.from_csr(np.arange(labels + 1) * tokens, rows.ravel(), relevance, k=tokens, vocabulary=vocabulary)


def write_tokenizer(folder: Path) -> Path:
    """A tokenizer of whole words with `VOCABULARY` of them, made without a corpus."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "a", *(f"w{i}" for i in range(3, VOCABULARY))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")
    whole.save_pretrained(folder)
    return folder


def small_backbone(place: Place, architecture: str, **options: Any) -> tuple[Random, Path]:
    """Settings and folder of a random backbone with two layers and LoRA."""
    sizes = {"hidden_size": 64, "layers": 2, "heads": 2, "attention_heads": 2, "pool_size": 4, "vocabulary": VOCABULARY}
    settings = Random.model_validate(
        {"kind": "random", "architecture": architecture, "adapter": "lora", "lora": {"rank": 2, "dropout": 0.0},
         "gradient_checkpointing": True, "chunk_tokens": 8, **sizes, **options}
    )  # fmt: skip
    folder = place.folder / architecture
    if not folder.exists():
        make_random_backbone(settings, write_tokenizer(place.folder / "tokenizer"), folder)
    return settings, folder


def large_backbone(place: Place, **options: Any) -> tuple[Pretrained, Path]:
    """Settings and folder of a backbone with the shape of Mistral-7B and random weights in bf16 (14 GB on disk)."""
    from transformers import AutoConfig, AutoModel

    folder = place.folder / "7b"
    settings = Pretrained(
        kind="pretrained", path=str(folder), gradient_checkpointing=True, max_tokens=4096, chunk_tokens=4096,
        precision="bf16", **options,
    )  # fmt: skip
    if not folder.exists():
        shape = {**yaml.safe_load(SHAPES.read_text(encoding="utf-8"))[MISTRAL]}
        shape = {key: value for key, value in shape.items() if key not in ("source", "published")}
        small = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "num_attention_heads": 8}
        config = AutoConfig.for_model(**shape | place.either({}, small | {"vocab_size": VOCABULARY}))
        with torch.device(place.device):
            model = AutoModel.from_config(config, dtype=torch.bfloat16)
        with atomic_path(folder) as partial:
            model.save_pretrained(partial)
            write_tokenizer(partial)
        del model
        if place.device.type == "cuda":
            torch.cuda.empty_cache()
    return settings, folder


class Embedding(nn.Module):
    """A backbone that looks tokens up."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.dropout = nn.Embedding(VOCABULARY, 16), nn.Dropout(0.1)

    def forward(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.table(input_ids)) * mask[..., None]
