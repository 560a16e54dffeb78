"""Label attention and head in Stage 2: what the authors' form costs, the folded form, the same by hand.

    nn.MultiheadAttention   the paper's form: attention module, boost, adaptive pooling, linear map; the module is told
                            not to return S, or returns it as by default ("with S", at one size)
    folded                  the head folded into a vector a label, attention by scaled_dot_product_attention
    by hand                 plant.kernels.attention
    floor                   the matrix products of `by hand` alone, at the speed of a large fp32 product

A training step is logits, hard negative mining with m negatives, focal loss and gradients of all parameters; hidden
states are frozen. The folded form and the one by hand mine in two passes where m < |L| / 4, as `plant.finetuning` does.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from common import Measured, Row, fresh, row
from torch import Tensor, nn
from torch.nn import functional as F

from plant.finetuning.finetune import ONE_PASS, batch_loss, parameter_groups
from plant.finetuning.focal_loss import focal_loss
from plant.finetuning.hard_negatives import hard_labels
from plant.ground.seeds import generator
from plant.ground.settings import Finetuning
from plant.kernels.attention import product
from plant.model.batches import Corpus
from plant.model.classifier import LabelClassifier

POSITIVES = 10  # a document
MHA, WITH_S = "nn.MultiheadAttention", "nn.MultiheadAttention with S"
FOLDED, BY_HAND, ONE, FLOOR = "folded", "by hand", "by hand, one pass", "floor"


class Size(NamedTuple):
    """|L|, h, G, tokens of the longest document, B, m."""

    labels: int
    hidden: int
    heads: int
    tokens: int
    batch: int
    negatives: int


CODIESP = Size(labels=1767, hidden=384, heads=8, tokens=480, batch=8, negatives=1000)
TINY = Size(labels=40, hidden=32, heads=4, tokens=20, batch=2, negatives=20)  # loads libraries before anything counts
GROWTH: dict[str, list[tuple[int, Size]]] = {
    "|L| (h = 384, n = 480)": [(labels, CODIESP._replace(labels=labels)) for labels in (1767, 4000, 8929)],
    "n (|L| = 1,767, h = 384)": [(n, CODIESP._replace(tokens=n)) for n in (256, 480, 1500)],
    "h (|L| = 4,000, n = 600)": [
        (h, Size(4000, h, heads, 600, 4, 1000)) for h, heads in ((64, 4), (384, 8), (1024, 16))
    ],
}
QUICK = {"one size": [(200, Size(200, 32, 4, 40, 3, 20))]}


class Literal(nn.Module):
    """The paper's form with the parameters of a classifier."""

    def __init__(self, of: LabelClassifier, *, with_s: bool) -> None:
        super().__init__()
        self.with_s = with_s
        source = of.attention
        self.embeddings, self.head = source.embeddings, of.head
        self.attention = nn.MultiheadAttention(source.embeddings.shape[1], source.heads, batch_first=True)
        with torch.no_grad():
            for name in ("weight", "bias"):
                parts = [getattr(linear, name) for linear in (source.query, source.key, source.value)]
                getattr(self.attention, f"in_proj_{name}").copy_(torch.cat(parts))
        self.attention.out_proj = source.output

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        queries = self.embeddings.expand(len(hidden), -1, -1)
        attended, _ = self.attention(queries, hidden, hidden, key_padding_mask=~mask, need_weights=self.with_s)
        boosted = self.head.boost_add + attended * self.head.boost_mul
        return self.head.project(F.adaptive_avg_pool1d(boosted, self.head.project.in_features)).squeeze(-1)


def lengths_of(size: Size) -> Tensor:
    """A batch of documents of like length, as bucketing makes it: padding is 5 %."""
    return torch.linspace(0.9 * size.tokens, size.tokens, size.batch).long()


def make_classifier(size: Size) -> LabelClassifier:
    torch.manual_seed(0)
    classifier = LabelClassifier(
        None, n_labels=size.labels, hidden_size=size.hidden, heads=size.heads, pool_size=max(8, size.hidden // 3)
    )
    nn.init.normal_(classifier.head.boost_add, std=0.1)
    return classifier


def forms(way: str, size: Size) -> tuple[nn.Module, Callable[..., Tensor], nn.Parameter]:
    """Parameters, their logits, E."""
    classifier = make_classifier(size)
    if way in (MHA, WITH_S):
        literal = Literal(classifier, with_s=way == WITH_S)
        return literal, literal.forward, literal.embeddings
    logits_of = classifier.attended_logits if way == FOLDED else classifier.logits_by_hand
    return classifier, logits_of, classifier.attention.embeddings


def make_batch(size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, mask, truth."""
    torch.manual_seed(1)
    mask = torch.arange(size.tokens)[None, :] < lengths_of(size)[:, None]
    truth = torch.zeros(size.batch, size.labels, dtype=torch.bool)
    truth.scatter_(1, torch.randint(0, size.labels, (size.batch, POSITIVES)), True)
    return torch.randn(size.batch, size.tokens, size.hidden), mask, truth


def training(way: str, **sizes: int) -> Callable[[], list[float]]:
    """Loss and size of the gradient of E."""
    size = Size(**sizes)
    if size != TINY:
        training(way, **TINY._asdict())()
    module, logits_of, embeddings = forms(way, size)
    hidden, mask, truth = make_batch(size)
    m = size.negatives
    two_passes = way in (FOLDED, BY_HAND) and m < size.labels // ONE_PASS

    def step() -> list[float]:
        module.zero_grad(set_to_none=True)
        if two_passes:
            with torch.no_grad():
                everything = logits_of(hidden, mask)
            labels, selected = hard_labels(everything, truth, m)
            logits, true = logits_of(hidden, mask, labels), truth.gather(1, labels)
        else:
            logits, true = logits_of(hidden, mask), truth
            columns, inside = hard_labels(logits.detach(), truth, m)
            selected = torch.zeros_like(truth).scatter_(1, columns, inside)
        loss = focal_loss(logits, true, gamma=2, epsilon=0.05, n_labels=size.labels, selected=selected).mean()
        loss.backward()
        return [loss.item(), torch.linalg.norm(embeddings.grad).item()]

    return step


def inference(way: str, **sizes: int) -> Callable[[], list[float]]:
    """Mean and spread of the logits of all labels."""
    size = Size(**sizes)
    if size != TINY:
        inference(way, **TINY._asdict())()
    module, logits_of, _ = forms(way, size)
    hidden, mask, _ = make_batch(size)
    module.eval()

    def predict() -> list[float]:
        with torch.no_grad():
            logits = logits_of(hidden, mask)
        return [logits.mean().item(), logits.std().item()]

    return predict


def large_product(side: int) -> Callable[[], float]:
    """A product of two square matrices."""
    a, b = torch.randn(side, side), torch.randn(side, side)
    return lambda: float(product(a, b)[0, 0])


def stage_2(way: str, documents: int) -> Callable[[], float]:
    """An epoch as `plant.finetuning` runs it: cached fp16 features, one pass over 1,767 labels, AdamW."""
    random = generator(0, "benchmark")
    lengths = np.sort(random.normal(461, 150, documents).clip(60, 900).astype(np.int64))  # CodiEsp's mean
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    features = random.standard_normal((offsets[-1], CODIESP.hidden), dtype=np.float32).astype(np.float16)
    indices = random.integers(0, CODIESP.labels, documents * POSITIVES)
    corpus = Corpus(np.zeros(offsets[-1], np.int32), offsets, np.arange(documents + 1) * POSITIVES, indices,
                    {"train": (0, documents)}, features)  # fmt: skip
    classifier = make_classifier(CODIESP)
    if way == FOLDED:
        classifier.logits = lambda hidden, mask, labels=None, **_: classifier.attended_logits(hidden, mask, labels)
    settings = Finetuning(epochs=1, batch_size=CODIESP.batch, hard_negatives=CODIESP.negatives)
    groups = [
        {"params": group.parameters, "lr": group.learning_rate} for group in parameter_groups(classifier, settings)
    ]
    optimiser = torch.optim.AdamW(groups)

    def epoch() -> float:
        total = 0.0
        for start in range(0, documents, CODIESP.batch):
            loss, weight = batch_loss(classifier, corpus, np.arange(start, start + CODIESP.batch), settings)
            (loss / weight).backward()
            optimiser.step()
            optimiser.zero_grad()
            total += float(loss.detach())
        return total

    epoch()
    return epoch


def products(size: Size, *, trained: bool) -> float:
    """Floating point operations of all matrix products by hand."""
    tokens, h = int(lengths_of(size).sum()), size.hidden
    projections = 4 * tokens * h * h + 4 * size.labels * h * h
    scored = 4 * size.labels * tokens * h
    if not trained:
        return projections + scored
    kept = min(size.labels, size.negatives + POSITIVES)
    again = 4 * kept * tokens * h if size.negatives < size.labels // ONE_PASS else 0
    return 2 * projections + 4 * size.labels * h * h + scored + again + 10 * kept * tokens * h


@cache
def measured_ways(of: Size, *, trained: bool, repeats: int) -> dict[str, Measured]:
    """All ways at one size, which may stand on two axes; they must agree."""
    job = training if trained else inference
    ways = [WITH_S] * (of == CODIESP) + [MHA, FOLDED, BY_HAND]
    ways += [ONE] * (trained and of.negatives < of.labels // ONE_PASS)
    found = {way: fresh(job, repeats=repeats, way=way, **of._asdict()) for way in ways}
    for way, measured in found.items():
        if not np.allclose(measured.value, found[MHA].value, rtol=1e-3, atol=1e-6):
            raise AssertionError(f"{job.__name__}, {of}: {way} finds {measured.value}, {MHA} {found[MHA].value}")
    return found


def compare(kernel: str, size: float | str, of: Size, *, trained: bool, peak: float, repeats: int) -> list[Row]:
    """All ways at one size."""
    found = measured_ways(of, trained=trained, repeats=repeats)
    own = found[BY_HAND].extra_mb
    rows = [row(kernel, way, size, measured, ratio_to=BY_HAND, extra_mb=measured.extra_mb,
                memory_ratio=measured.extra_mb / own if own else None,
                note=f"{measured.extra_mb:,.0f} MB beyond weights and batch")
            for way, measured in found.items()]  # fmt: skip
    floor: dict[str, Any] = {"cpu_seconds": products(of, trained=trained) / peak, "extrapolated": True}
    return [*rows, row(kernel, FLOOR, size, ratio_to=BY_HAND, note=f"{peak / 1e9:.0f} GFLOP/s", **floor)]


def rows(quick: bool) -> list[Row]:
    """Training and inference over |L|, n and h, and an epoch of Stage 2."""
    side = 200 if quick else 1500
    peak = 2 * side**3 / fresh(large_product, repeats=10, side=side).cpu_seconds
    repeats = 1 if quick else 2
    found: list[Row] = []
    for axis, sizes in (QUICK if quick else GROWTH).items():
        for size, of in sizes:
            found += compare(f"training over {axis}", size, of, trained=True, peak=peak, repeats=repeats)
            found += compare(f"inference over {axis}", size, of, trained=False, peak=peak, repeats=repeats)
    documents = 8 if quick else 40
    for way in (FOLDED, BY_HAND):
        measured = fresh(stage_2, repeats=repeats, way=way, documents=documents)
        note = f"{measured.cpu_seconds / documents * 1e3:.1f} ms a document"
        found.append(row("Stage 2 epoch", way, f"{documents} documents", measured, ratio_to=BY_HAND, note=note))
    return found


if __name__ == "__main__":
    from tables import text, with_ratios

    print(text(with_ratios(rows(quick=False))))
