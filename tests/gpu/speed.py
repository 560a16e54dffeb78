"""Steps of `make gpu` that measure time and memory. Each yields rows for the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import torch
from samples import Place, large_backbone, make_corpus, make_top_tokens, measured
from torch import Tensor, nn

from plant.finetuning.finetune import batch_loss, finetune
from plant.finetuning.losses.focal import focal_loss
from plant.ground.settings import Finetuning, Pretrained, Pretraining
from plant.model.assemble import build_classifier, load_training_data
from plant.model.batches import Corpus, multi_hot, pad_documents
from plant.model.classifier import LabelClassifier
from plant.model.fitting import TrainingRun
from plant.model.row_adamw import RowAdamW
from plant.model.transformer.backbone import Backbone, load_backbone
from plant.pretraining.losses.pairwise import pairwise_loss
from plant.pretraining.pretrain import TokenRanking

GOAL = 1.05  # time and memory of a step beside those with a plain linear head
LABELS = 8929  # MIMIC-III
MOST_LABELS = 31_000


def _row(what: str, value: float | str | None, unit: str = "", goal: str = "") -> dict[str, Any]:
    return {"what": what, "value": value, "unit": unit, "goal": goal}


def _both(what: str, found: tuple[float, float | None]) -> list[dict[str, Any]]:
    """Rows of a time and a memory."""
    return [_row(f"{what}: time", found[0], "s"), _row(f"{what}: memory", found[1], "GB")]


@contextmanager
def _products(precision: str) -> Iterator[None]:
    """fp32 products by TF32 (`high`) or not (`highest`)."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    yield
    torch.set_float32_matmul_precision(before)


def ranking_loss(place: Place) -> Iterator[dict[str, Any]]:
    """Eq. 2 with its gradient over all labels of a document."""
    for lists, t in place.either(((LABELS, 64), (LABELS, 1000), (64, 4096)), ((4, 64),)):
        random = torch.Generator().manual_seed(0)
        scores = torch.randn(lists, t, generator=random).to(place.device).requires_grad_()
        relevance = torch.rand(lists, t, generator=random).to(place.device)

        def work(scores: Tensor = scores, relevance: Tensor = relevance) -> None:
            pairwise_loss(scores, relevance, k=1000, sigma=1.0, gain="exponential").sum().backward()

        yield from _both(f"ranking loss, {lists} lists of {t}", measured(place, work))


def _attended(model: LabelClassifier) -> Callable[[Tensor, Tensor], Tensor]:
    """Logits by nn.MultiheadAttention with the weights of the label attention, and the head as one product."""
    attention, head = model.attention, model.head
    h = attention.embeddings.shape[1]
    plain = nn.MultiheadAttention(h, attention.heads, batch_first=True).to(attention.embeddings.device)
    parts = (attention.query, attention.key, attention.value)
    with torch.no_grad():
        plain.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        plain.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        plain.out_proj.load_state_dict(attention.output.state_dict())

    def logits(hidden: Tensor, mask: Tensor) -> Tensor:
        queries = attention.embeddings[None].expand(len(hidden), -1, -1)
        states, _ = plain(queries, hidden, hidden, key_padding_mask=~mask, need_weights=False)
        w = head.project.weight[0] @ head.pooling
        return (states * (head.boost_mul * w)).sum(-1) + head.boost_add @ w + head.project.bias

    return logits


def label_attention(place: Place) -> Iterator[dict[str, Any]]:
    """Label attention and head, forward and backward, beside nn.MultiheadAttention and torch.compile."""
    labels, h, n = place.either((LABELS, 4096, 2048), (20, 64, 16))
    torch.manual_seed(0)
    model = LabelClassifier(None, n_labels=labels, hidden_size=h, heads=8, pool_size=min(128, h)).to(place.device)
    hidden = torch.randn(2, n, h, device=place.device, requires_grad=True)
    mask = torch.arange(n, device=place.device)[None] < torch.tensor([[n], [n - n // 4]], device=place.device)
    compiled = torch.compile(model.logits, backend=place.either("inductor", "eager"))
    ways = {"as it is": model.logits, "nn.MultiheadAttention": _attended(model), "torch.compile": compiled}
    with torch.no_grad(), _products("highest"):
        expected, other = model.logits(hidden, mask), ways["nn.MultiheadAttention"](hidden, mask)
    apart = float((expected - other).abs().max() / expected.abs().max())
    assert apart < 1e-3, f"nn.MultiheadAttention gives other logits: {apart:.3g} of the largest"
    for precision, name in (("highest", "fp32"), ("high", "TF32")):
        for way, compute in ways.items():
            with _products(precision):
                found = measured(place, lambda compute=compute: compute(hidden, mask).sum().backward())
            yield from _both(f"label attention, {labels} labels, {n} tokens, {name}, {way}", found)
    with torch.autocast(place.device.type, torch.bfloat16):
        found = measured(place, lambda: model.logits(hidden, mask).sum().backward())
    yield from _both(f"label attention, {labels} labels, {n} tokens, bf16, as it is", found)


class PooledLinear(nn.Module):
    """A backbone with mean pooling and one linear map: the least that a classifier can have."""

    def __init__(self, backbone: Backbone, labels: int) -> None:
        super().__init__()
        self.backbone, self.head = backbone, nn.Linear(backbone.hidden_size, labels)

    def loss(self, corpus: Corpus, batch: Any, device: torch.device) -> Tensor:
        documents = pad_documents(corpus, batch, device)
        states, mask = self.backbone(documents.input_ids, documents.mask), documents.mask[..., None]
        logits = self.head((states * mask).sum(1) / mask.sum(1))
        labels = self.head.out_features
        return focal_loss(
            logits, multi_hot(corpus, batch, labels, device), gamma=2.0, epsilon=0.1, n_labels=labels
        ).sum()


def _step(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """A training step: forward, backward, update."""
    optimiser = RowAdamW([{"params": [p for p in model.parameters() if p.requires_grad], "lr": 1e-5}])

    def work() -> None:
        loss().backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return work


def _linear_head(place: Place, backbone: Backbone, corpus: Corpus, labels: int) -> tuple[float, float | None]:
    """Time and memory of a step with the linear head, which is gone afterwards."""
    linear, batch = PooledLinear(backbone, labels).to(place.device), corpus.documents("train")
    return measured(place, _step(linear, lambda: linear.loss(corpus, batch, place.device)), repeats=3)


def _ranking(model: LabelClassifier, corpus: Corpus, settings: Pretraining) -> TokenRanking:
    """Stage 1 in which every label enters, with lists of about 64 positions in a document of 2,048 tokens."""
    ranking = TokenRanking(model, corpus, make_top_tokens(model.n_labels, tokens=9), settings=settings, seed=0)
    ranking.enters[:] = True
    ranking.eligible = np.arange(model.n_labels)
    return ranking


def seven_billion(place: Place, quantization: str) -> Iterator[dict[str, Any]]:
    """Training steps of a backbone with the shape of Mistral-7B: a linear head, then Stage 2 and Stage 1."""
    labels, n = place.either((LABELS, 2048), (40, 16))
    settings, folder = large_backbone(place, quantization=quantization)
    backbone = load_backbone(settings, folder, device=place.device).place(place.device).train()
    corpus = make_corpus((n, n, n), labels)
    name, batch = f"7B, {quantization if quantization != 'none' else 'bf16'}", corpus.documents("train")
    plain = _linear_head(place, backbone, corpus, labels)
    yield from _both(f"{name}, linear head", plain)
    h = backbone.hidden_size
    model = LabelClassifier(backbone, n_labels=labels, hidden_size=h, heads=8, pool_size=min(128, h))
    model.attention.to(place.device)
    model.head.to(place.device)
    model.train()
    stage_2 = Finetuning(hard_negatives=place.either(1000, 5))
    stage_1 = _ranking(model, corpus, Pretraining())
    losses = {
        "Stage 2": lambda: batch_loss(model, corpus, batch, stage_2)[0],
        "Stage 1": lambda: stage_1.loss(batch, 1)[0],
    }
    for stage, precision in (("Stage 2", "highest"), ("Stage 2", "high"), ("Stage 1", "highest")):
        what = f"{name}, {stage}{', TF32' if precision == 'high' else ''}"
        with _products(precision):
            found = measured(place, _step(model, losses[stage]), repeats=3)
        yield from _both(what, found)
        for kind, one, other in zip(("time", "memory"), found, plain, strict=True):
            ratio = one / other if one and other else None
            met = "" if ratio is None or place.tiny else f": {'met' if ratio <= GOAL else 'missed'}"
            yield _row(f"{what}: {kind} beside the linear head", ratio, "times", f"at most {GOAL}{met}")


def label_memory(place: Place) -> Iterator[dict[str, Any]]:
    """Time and memory of a step without a backbone: what the label set costs."""
    for labels in place.either((LABELS, MOST_LABELS), (20, 40)):
        for stage in ("Stage 2", "Stage 1 over all labels"):
            yield from _both(f"{labels} labels, {stage}, no backbone", _without_backbone(place, labels, stage))


def _without_backbone(place: Place, labels: int, stage: str) -> tuple[float, float | None]:
    h, n = place.either((4096, 2048), (16, 8))
    corpus = make_corpus((n, n, n), labels, features=h)
    torch.manual_seed(0)
    model = LabelClassifier(None, n_labels=labels, hidden_size=h, heads=8, pool_size=min(128, h)).to(place.device)
    batch = corpus.documents("train")
    if stage == "Stage 2":
        settings = Finetuning(hard_negatives=place.either(1000, 5))
        return measured(place, _step(model, lambda: batch_loss(model, corpus, batch, settings)[0]))
    ranking = _ranking(model, corpus, Pretraining(negatives=None))
    return measured(place, _step(model, lambda: ranking.loss(batch, 1)[0]))


def minilm(place: Place) -> Iterator[dict[str, Any]]:
    """An epoch of Stage 2 with LoRA on a real corpus, with the weights that the user named."""
    settings = Pretrained(
        kind="pretrained", path=str(place.paths["weights"]), precision="bf16", chunk_tokens=256,
        max_tokens=512, pool_size=place.either(128, 4), attention_heads=place.either(8, 2),
    )  # fmt: skip
    data = load_training_data(place.paths["corpus"], place.paths["tokens"])
    model = build_classifier(settings, place.paths["weights"], data, seed=0, device=place.device)
    recipe = Finetuning(epochs=1, batch_size=32, accumulation=1, learning_rate=2e-4, head_learning_rate=1e-3)
    start = perf_counter()
    (row,) = finetune(model, data.corpus, recipe, TrainingRun(0, place.folder / "epoch", str(start)))
    yield _row(f"LoRA, {len(data.trained)} labels, an epoch with validation: time", perf_counter() - start, "s")
    yield _row("LoRA, an epoch: macro-F1 of validation", row["macro_f1"])
