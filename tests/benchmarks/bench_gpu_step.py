"""One training step with a backbone of 7 billion random parameters on a GPU: what planting adds to it.

Ways, each in bf16 and NF4, LoRA on all layers, gradient checkpointing, |L| = 8,929 and 31,000:

    Stage 1                    every label's list of tokens ranked (Eq. 2), backward, AdamW
    Stage 2                    logits of all labels, hard negatives, focal loss, backward, AdamW
    linear head, last token    the same backbone and loss with one linear map on the last token's state

Without a GPU, and with --quick, the same program runs on a transformer of two thin layers on the CPU, as a check that
every way trains what it should; its times say nothing. The batch can be set by the environment: GPU_STEP_DOCUMENTS and
GPU_STEP_TOKENS.
"""

from __future__ import annotations

import atexit
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from common import Row, fresh, row
from torch import Tensor, nn

from plant.finetuning.finetune import batch_loss
from plant.finetuning.focal_loss import focal_loss
from plant.ground.settings import Finetuning, Pretrained, Pretraining
from plant.model.batches import Corpus, multi_hot, pad_documents
from plant.model.classifier import LabelClassifier
from plant.model.encoders.transformer import Backbone, load_backbone
from plant.pretraining.lists import TopTokens
from plant.pretraining.pretrain import Ranking

STAGE_1, STAGE_2, LINEAR = "Stage 1", "Stage 2", "linear head, last token"
REPEATS = 3  # steps after one that does not count
POSITIVES = 15  # labels a document


class Shape(NamedTuple):
    """A Mistral, and the batch that it reads."""

    hidden: int
    layers: int
    heads: int
    key_heads: int
    inner: int
    vocabulary: int
    tokens: int
    documents: int
    negatives: int  # hard ones, of Stage 2
    k: int  # tokens of T_l


def seven_billion() -> Shape:
    """Mistral-7B, two documents of 2,048 tokens."""
    tokens, documents = (int(os.environ.get(f"GPU_STEP_{name}", n)) for name, n in (("TOKENS", 2048), ("DOCUMENTS", 2)))
    return Shape(4096, 32, 32, 8, 14_336, 32_000, tokens, documents, 1000, 1000)


TINY = Shape(32, 2, 4, 2, 64, 300, 24, 2, 10, 20)


def rows(quick: bool) -> list[Row]:
    """All ways; on a CPU the tiny ones, and what they must agree in."""
    real = torch.cuda.is_available() and not quick
    shape, device = (seven_billion(), "cuda") if real else (TINY, "cpu")
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    fresh(backbone_files, shape=shape, folder=str(folder), device=device)
    found: list[Row] = []
    for labels in (8_929, 31_000) if real else (60,):
        for precision in ("bf16", "nf4"):
            found += _ways(shape, folder, device, labels, precision)
    if not real:
        found.append(row("step of a 7B backbone", STAGE_2, "8,929", note="not measured: no GPU, or --quick"))
    return found


def _ways(shape: Shape, folder: Path, device: str, labels: int, precision: str) -> Iterator[Row]:
    kernel = f"step of a {'7B' if device == 'cuda' else 'tiny'} backbone, {precision}"
    taken: dict[str, Any] = {}
    for way in (LINEAR, STAGE_1, STAGE_2):
        order = {"shape": shape, "folder": str(folder), "device": device, "labels": labels, "precision": precision}
        measured = fresh(step, way=way, **order)
        taken[way] = found = measured.value
        _check(way, found)
        ratio = found["seconds"] / taken[LINEAR]["seconds"]
        memory = f"{found['peak_gb']:.1f} GB, {found['peak_gb'] - taken[LINEAR]['peak_gb']:.1f} beyond the linear head"
        speed = f"{found['utilisation']:.0%} of the speed of a large product"
        note = f"{memory}; {speed}" if device == "cuda" else "a check"
        more: dict[str, Any] = {"wall_seconds": found["seconds"], "ratio": ratio, "peak_mb": 1e3 * found["peak_gb"]}
        if device == "cuda":  # the CPU's seconds are not what a step costs
            more |= {"cpu_seconds": None, "shown": f"{1e3 * found['seconds']:,.0f} ms"}
        yield row(kernel, way, labels, measured, ratio_to=LINEAR, note=note, **more)


def _check(way: str, found: dict[str, Any]) -> None:
    if not math.isfinite(found["loss"]) or found["untrained"]:
        raise AssertionError(f"{way}: loss {found['loss']}, without a gradient: {found['untrained']}")
    if way != STAGE_1 and not found["after"] < found["loss"]:  # Stage 1's loss may rise while the order gets better
        raise AssertionError(f"{way}: the loss went from {found['loss']} to {found['after']} on the same batch")


def backbone_files(shape: list[int], folder: str, device: str) -> Callable[[], int]:
    """Write model and tokenizer as `load_backbone` reads them; the result is the number of parameters."""
    of = Shape(*shape)

    def work() -> int:
        from tokenizers import Tokenizer, models
        from transformers import MistralConfig, MistralModel, PreTrainedTokenizerFast

        config = MistralConfig(
            hidden_size=of.hidden, num_hidden_layers=of.layers, num_attention_heads=of.heads,
            num_key_value_heads=of.key_heads, intermediate_size=of.inner, vocab_size=of.vocabulary, sliding_window=None,
            max_position_embeddings=max(32, of.tokens), dtype=torch.bfloat16,
        )  # fmt: skip
        torch.manual_seed(0)
        torch.set_default_dtype(torch.bfloat16)
        with torch.device(device):
            model = MistralModel(config)
        model.save_pretrained(folder)
        words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
        PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(folder)
        return sum(parameter.numel() for parameter in model.parameters())

    return work


def step(
    shape: list[int], folder: str, device: str, labels: int, precision: str, way: str
) -> Callable[[], dict[str, Any]]:
    """Seconds of a step, peak memory in GB, utilisation, first loss and loss after the steps."""
    of, place = Shape(*shape), torch.device(device)
    torch.manual_seed(0)
    settings = Pretrained(
        kind="pretrained", path=folder, adapter="lora", precision="bf16", gradient_checkpointing=True,
        quantization="nf4" if precision == "nf4" else "none", chunk_tokens=of.tokens, max_tokens=of.tokens,
    )  # fmt: skip
    backbone = load_backbone(settings, folder, device=place).place(place).train()
    loss_of, trained = _way(way, of, backbone, labels, place)
    optimiser = torch.optim.AdamW(list(trained.values()), lr=1e-3 if device == "cpu" else 2e-5)

    def one() -> float:
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimiser.step()
        return float(loss.detach())

    def work() -> dict[str, Any]:
        first = one()
        untrained = [name for name, p in trained.items() if p.grad is None or not bool(torch.isfinite(p.grad).all())]
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        start = _now(device)
        last = [one() for _ in range(REPEATS)]
        seconds = (_now(device) - start) / REPEATS
        peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0.0
        used = flops(of, way, labels) / seconds / product_speed(device)
        return {"seconds": seconds, "peak_gb": peak, "utilisation": used, "loss": first, "after": last[-1],
                "untrained": untrained[:3]}  # fmt: skip

    return work


def _way(
    way: str, of: Shape, backbone: Backbone, labels: int, place: torch.device
) -> tuple[Callable[[], Tensor], dict[str, nn.Parameter]]:
    """The loss of the batch, and what is trained."""
    corpus, batch = _corpus(of, labels), np.arange(of.documents)
    adapter = {f"backbone.{name}": p for name, p in backbone.named_parameters() if p.requires_grad}
    if way == LINEAR:
        head = nn.Linear(of.hidden, labels).to(place)

        def plain() -> Tensor:
            documents = pad_documents(corpus, batch, place)
            last = backbone(documents.input_ids, documents.mask)[:, -1]  # documents of one length
            truth = multi_hot(corpus, batch, labels, place)
            return focal_loss(head(last), truth, gamma=2, epsilon=0.05, n_labels=labels).mean()

        return plain, adapter | dict(head.named_parameters())
    classifier = LabelClassifier(
        backbone, n_labels=labels, hidden_size=of.hidden, heads=8, pool_size=max(8, of.hidden // 32)
    ).to(place)
    if way == STAGE_2:
        settings = Finetuning(hard_negatives=of.negatives)

        def second() -> Tensor:
            loss, weight = batch_loss(classifier, corpus, batch, settings)
            return loss / weight

        return second, {name: p for name, p in classifier.named_parameters() if p.requires_grad}
    recipe = Pretraining(k=of.k, negatives=None, label_min_documents=1)
    ranking = Ranking(classifier, corpus, _top_tokens(of, labels), settings=recipe, seed=0)
    ranking.eligible, ranking.enters = np.arange(labels), np.ones(labels, bool)  # as after many documents

    def first() -> Tensor:
        loss, weight = ranking.loss(batch, 0)
        return loss / weight

    planted = {f"planted {place}": p for place, p in enumerate(classifier.attention.planted)}
    return first, adapter | planted


def _corpus(of: Shape, labels: int) -> Corpus:
    """Documents of one length, of random tokens."""
    random = np.random.default_rng(0)
    n = of.documents
    indices = np.concatenate([np.sort(random.choice(labels, POSITIVES, replace=False)) for _ in range(n)])
    return Corpus(
        random.integers(2, of.vocabulary, n * of.tokens).astype(np.int32), np.arange(n + 1) * of.tokens,
        np.arange(n + 1) * POSITIVES, indices, {"train": (0, n)},
    )  # fmt: skip


def _top_tokens(of: Shape, labels: int) -> TopTokens:
    random = np.random.default_rng(1)
    token_id = np.stack([random.permutation(of.vocabulary)[: of.k] for _ in range(min(labels, 500))])
    token_id = np.resize(token_id, (labels, of.k)).astype(np.int32)
    relevance = np.tile(np.linspace(1, 0, of.k, dtype=np.float32), labels)
    indptr = np.arange(labels + 1, dtype=np.int64) * of.k
    return TopTokens.from_csr(indptr, token_id.ravel(), relevance, k=of.k, vocabulary=of.vocabulary)


def flops(of: Shape, way: str, labels: int) -> float:
    """Operations that a step needs, activations computed once: frozen weights take part in two products, not three."""
    head_size = of.hidden // of.heads
    projections = of.hidden * head_size * (2 * of.heads + 2 * of.key_heads) + 3 * of.hidden * of.inner
    n = of.tokens
    layer = 4 * projections * n + 3 * 2 * n * n * of.hidden  # causal scores and sums, forward and twice backward
    backbone = of.layers * layer
    if way == LINEAR:
        head = 6.0 * labels * of.hidden
    elif way == STAGE_1:  # scores of all labels and tokens, W_K; gradients of queries and keys
        head = 6.0 * n * of.hidden * (labels + of.hidden) + 6.0 * labels * of.hidden**2 / of.documents
    else:  # all labels forward, the selected ones again and backward
        kept = of.negatives + POSITIVES
        head = 4.0 * n * of.hidden * (labels + 3 * kept) + 12.0 * n * of.hidden**2
        head += 12.0 * labels * of.hidden**2 / of.documents
    return of.documents * (backbone + head)


def product_speed(device: str) -> float:
    """Operations a second of a large bf16 product on this device."""
    side, kind = (8192, torch.bfloat16) if device == "cuda" else (256, torch.float32)
    a, b = (torch.randn(side, side, device=device, dtype=kind) for _ in range(2))
    (a @ b).sum()
    start = _now(device)
    for _ in range(10):
        a @ b
    return 10 * 2 * side**3 / (_now(device) - start)


def _now(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
