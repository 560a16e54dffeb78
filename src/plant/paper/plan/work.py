"""What one job computes and holds: floating-point operations, unpacked 4-bit weights and device memory.

docs/cost-model.md derives the formulas. Symbols: P weights that one token passes through, n tokens of a document,
h hidden size, L labels, m labels with a gradient, b documents of a micro-batch. The product of an (r, s) with an (s, t)
matrix takes 2 r s t FLOPs. Norms, softmax and the ranking loss are no matrix products and are left out: less than 1%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plant.ground.settings import Finetuning, Hardware, Optimisation, Pretraining
from plant.paper.plan.networks import Network, NetworkBackbone
from plant.paper.plan.sizes import Sizes

# Every constant of this file is printed in the plan, in this order; docs/cost-model.md gives its source.
FP32_SLOWER = 15.0
"""fp32 products take so many times longer than bf16 ones: 989 against 67 TFLOP/s on an H100 SXM, 312 against 19.5 on an
A100 (data sheets). Label attention and head run in fp32, outside the autocast of the backbone."""
FLOPS_A_BYTE = 295.0
"""bf16 FLOPs in the time that one byte takes to or from memory: 989 TFLOP/s / 3.35 TB/s (H100 SXM data sheet)."""
DEQUANTISATION_BYTES = 4.5
"""Memory traffic of one NF4 weight in one pass: read as half a byte, written and read again as bf16."""
NF4_BYTES = 0.516
"""Bytes of a weight in NF4 with double quantisation: 4 + 0.127 bits (Dettmers et al. 2023, section 3)."""
TRAINED_BYTES = 16
"""Bytes beside a trained fp32 weight: gradient, two moments of AdamW, and the copy of the best epoch."""
KEPT_COPIES = 1.7
"""The backward pass keeps the inputs of a layer's maps so many times, as norms and LoRA keep fp32 copies (1.4 to 1.7
times, counted on the real models)."""
LAST_PIECE = 0.5
"""Share of the last piece of a document that is padding, on average."""
LONGEST = 10
"""The longest document of a batch has at most this many times the mean tokens, and never more than max_tokens."""
POSITIVES = 15
"""Labels of a document where the corpus has not been made yet (MIMIC-III and IV: median 14)."""
DESCRIPTION_TOKENS = 16
"""Tokens of a label's description."""
FEATURE_TOKENS = 8192
"""Tokens that pass through a frozen backbone together when its states are cached."""
WORKSPACE_GB = 3.0
"""CUDA context, work space of the libraries, one unpacked layer and the allocator's slack."""
START = 0.02
"""Standard deviation of E at its random start (choice C10). A head that moves less than this stays where it began."""
ONE_PASS = 4
"""Hard negatives are searched in a pass of their own if they are fewer than the labels divided by this (Stage 2)."""


@dataclass(frozen=True)
class Work:
    """What one job computes, on all its devices together."""

    products: float = 0.0
    """FLOPs of the backbone."""
    head: float = 0.0
    """FLOPs of label attention and head, in fp32."""
    dequantised: float = 0.0
    """4-bit weights that are unpacked, counted once for each pass."""

    def __add__(self, other: Work) -> Work:
        return Work(self.products + other.products, self.head + other.head, self.dequantised + other.dequantised)

    def __mul__(self, times: float) -> Work:
        return Work(self.products * times, self.head * times, self.dequantised * times)

    @property
    def flops(self) -> float:
        return self.products + self.head

    def gpu_hours(self, hardware: Hardware, backbone: NetworkBackbone) -> float:
        """Hours of all GPUs that the job holds, at the config's share of the peak.

        Data parallelism divides the time by the devices and holds all of them: the sum stays the same. Layers that are
        spread over devices work one after the other while all devices are held: the sum grows with the devices.
        """
        slower = FP32_SLOWER if backbone.precision == "fp32" else 1.0
        operations = self.products * slower + self.head * FP32_SLOWER
        operations += self.dequantised * DEQUANTISATION_BYTES * FLOPS_A_BYTE
        held = backbone.devices if backbone.parallel == "layers" else 1
        return held * operations / (hardware.tflops * 1e12 * hardware.utilisation) / 3600


@dataclass(frozen=True)
class Setup:
    """A backbone on a corpus: the start of every formula below."""

    network: Network
    backbone: NetworkBackbone
    sizes: Sizes

    @property
    def passed(self) -> float:
        """P: as the config says, or counted."""
        given = getattr(self.backbone, "parameters", None)
        return self.network.passed if given is None else given * 1e9

    @property
    def lora(self) -> int:
        """Trained weights of the low-rank matrices."""
        lora = self.backbone.lora
        return self.network.lora_parameters(lora.rank, lora.targets) if self.backbone.adapter == "lora" else 0

    @property
    def tokens(self) -> float:
        """n: the mean document, cut at max_tokens."""
        return self.sizes.tokens_of(self.backbone)

    @property
    def computed(self) -> float:
        """Tokens that the backbone computes for the mean document: padding fills up its last piece."""
        n, piece = self.tokens, self.backbone.chunk_tokens
        return n if n <= piece else n + LAST_PIECE * piece

    @property
    def frozen(self) -> bool:
        """True if no gradient reaches the backbone."""
        return self.backbone.adapter == "frozen"

    @property
    def devices(self) -> int:
        """Devices that share the documents of a batch."""
        return self.backbone.devices if self.backbone.parallel == "data" else 1

    def read(self, documents: float, batch: int, *, training: bool) -> Work:
        """The backbone over documents: forward, or forward and backward. Nothing where its states are cached."""
        if self.backbone.cache_features:
            return Work()
        scores = 2 * self.network.score_width * min(self.tokens, self.backbone.chunk_tokens)
        forward = 2 * self.passed + scores + 2 * self.lora
        a_token, passes = forward, 1
        if training and not self.frozen:
            again = self.backbone.gradient_checkpointing
            weights = 4 if self.backbone.adapter == "full" else 2  # 2: gradients of the inputs alone
            a_token += again * forward + weights * self.passed + 2 * scores + 4 * self.lora
            passes += again + 1
        quantised = self.network.quantised if self.backbone.quantization == "nf4" else 0
        batches = documents / max(1.0, batch / self.devices)
        return Work(products=a_token * self.computed * documents, dequantised=quantised * passes * batches)


def stage1(setup: Setup, recipe: Pretraining) -> Work:
    """All epochs of Stage 1. After each, the validation split is scored, and as many documents of train."""
    sizes, h, n = setup.sizes, setup.network.hidden, setup.tokens
    positives = min(POSITIVES, sizes.labels)
    lists = sizes.labels if recipe.negatives is None else min(sizes.labels, positives + recipe.negatives)
    keys = 2 * n * h * h

    def scored(labels: float) -> float:
        return 2 * labels * h * h + 2 * labels * n * h

    training = keys * (2 if setup.frozen else 3) + 3 * scored(lists)
    epoch = setup.read(sizes.train, recipe.batch_size, training=True) + Work(head=sizes.train * training)
    checked = sizes.val + min(sizes.train, sizes.val)
    epoch += setup.read(checked, recipe.batch_size, training=False)
    epoch += Work(head=2 * checked * (keys + scored(positives)))  # logits, then probabilities for mass and entropy
    return epoch * recipe.epochs


def stage2(setup: Setup, recipe: Finetuning) -> Work:
    """All epochs of Stage 2. After each, the validation split is predicted."""
    sizes = setup.sizes
    pool, chosen = labels_in_play(sizes.labels, recipe)
    b = recipe.batch_size / setup.devices
    training = label_pass(setup, b, chosen, gradient=True)
    if chosen < pool:
        training += label_pass(setup, b, pool, gradient=False)
    epoch = setup.read(sizes.train, recipe.batch_size, training=True) + Work(head=sizes.train / b * training)
    return (epoch + predict(setup, recipe, sizes.val)) * recipe.epochs


def predict(setup: Setup, recipe: Finetuning, documents: float) -> Work:
    """Scores of the documents for all labels, or for their shortlist."""
    b = recipe.batch_size / setup.devices
    pool, _ = labels_in_play(setup.sizes.labels, recipe)
    head = Work(head=documents / b * label_pass(setup, b, pool, gradient=False))
    return setup.read(documents, recipe.batch_size, training=False) + head


def encode(setup: Setup, texts: float) -> Work:
    """One forward pass of the backbone over texts of the length of a document, to cache its states."""
    uncached = setup.backbone.model_copy(update={"cache_features": False})
    batch = max(1, int(FEATURE_TOKENS / setup.tokens))
    return Setup(setup.network, uncached, setup.sizes).read(texts, batch, training=False)


def count_updates(documents: int, recipe: Optimisation) -> int:
    """Updates of all epochs. The last batch and the last group of batches of an epoch may be smaller.

    >>> count_updates(136, Finetuning(epochs=5))
    25
    """
    return math.ceil(documents / (recipe.batch_size * recipe.accumulation)) * recipe.epochs


def largest_movement(documents: int, recipe: Optimisation) -> float:
    """How far AdamW moves a weight of the head at most: its rate at every update, halved on average by the cosine."""
    return count_updates(documents, recipe) * recipe.head_learning_rate / 2


def labels_in_play(labels: int, recipe: Finetuning) -> tuple[int, int]:
    """(labels with a score, labels with a gradient) of a document in Stage 2."""
    pool, m = labels, recipe.hard_negatives
    if recipe.shortlist is not None and labels > recipe.shortlist_above:
        pool = min(labels, recipe.shortlist + POSITIVES)
    return pool, min(pool, m + POSITIVES) if m is not None and m < pool // ONE_PASS else pool


def label_pass(setup: Setup, b: float, labels: int, *, gradient: bool) -> float:
    """FLOPs of label attention and the folded head over a micro-batch of b documents.

    Keys and values of every token: 4 b n h^2. Queries W_Q E and head vectors of every label, once for a batch: 4 L h^2.
    Scores and weighted sums: 4 b m n h. Backward, each product has one product for each of its two factors; frozen
    states need no gradient.
    """
    h, n = setup.network.hidden, setup.tokens
    states, shared, scores = 4 * b * n * h * h, 4 * setup.sizes.labels * h * h, 4 * b * labels * n * h
    forward = states + shared + scores
    return forward + gradient * ((1 if setup.frozen else 2) * states + 2 * shared + 2 * scores)


@dataclass(frozen=True)
class Memory:
    """What one device holds at the largest batch, GB."""

    weights: float
    trained: float
    """Gradients, moments and copies of what is trained."""
    activations: float
    """Kept for the backward pass of the backbone."""
    states: float
    """Hidden states, keys and values of label attention in fp32, with their gradients."""
    scores: float
    """Scores and probabilities of label attention where no fused kernel avoids them. Not in the total."""

    @property
    def total(self) -> float:
        return WORKSPACE_GB + self.weights + self.trained + self.activations + self.states


def device_memory(setup: Setup, recipe: Pretraining | Finetuning, *, training: bool) -> Memory:
    """An upper estimate of the memory of one device.

    Args:
        setup: backbone and corpus.
        recipe: of Stage 1, which trains E, W_Q and W_K, or of Stage 2, which trains E, all attention and the head.
        training: with gradients and optimiser; else prediction.
    """
    network, backbone, h, labels = setup.network, setup.backbone, setup.network.hidden, setup.sizes.labels
    width = {"fp32": 4, "bf16": 2, "fp16": 2}[backbone.precision]
    loaded = 0 if backbone.cache_features else 1
    spread = backbone.devices if backbone.parallel == "layers" else 1

    full = backbone.adapter == "full"
    each = 4 if full else width
    maps = NF4_BYTES if backbone.quantization == "nf4" else each
    frozen = loaded * (network.quantised * maps + network.other * each)
    adapter = network.parameters if full else setup.lora
    head = trained_head = 3 * labels * h + 4 * (h * h + h) + backbone.pool_size + 1
    scored = 0
    if isinstance(recipe, Pretraining):
        trained_head = labels * h + 2 * (h * h + h)
    else:
        pool, kept = labels_in_play(labels, recipe)
        scored = max(pool, 2 * kept if training else 0)

    documents = math.ceil(recipe.batch_size / setup.devices)
    longest = min(backbone.max_tokens, LONGEST * setup.sizes.tokens_of(backbone))
    a_layer = KEPT_COPIES * network.saved_width * width
    if not training or setup.frozen:
        activations = float(network.saved_width * width)  # of one layer, while it is computed
    elif backbone.gradient_checkpointing:
        activations = network.layers * h * width / spread + a_layer
    else:
        activations = network.layers * a_layer / spread
    gb = 1e9
    return Memory(
        weights=(frozen / spread + 4 * (setup.lora / spread + head)) / gb,
        trained=training * TRAINED_BYTES * (adapter / spread + trained_head) / gb,
        activations=loaded * documents * longest * activations / gb,
        states=documents * longest * h * 4 * (6 if training else 3) / gb,
        scores=2 * 4 * documents * backbone.attention_heads * longest * scored / gb,
    )
