"""Section `backbones`: where hidden states come from, and how they are adapted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plant.ground.settings.base import Fraction, Frozen, Positive, Rate, Seed, Some


class Lora(Frozen):
    """Paper, appendix A: rank 16, alpha 32, dropout .05 on query, key, value and output projections."""

    rank: Positive = 16
    """r of the low-rank update (appendix A)."""
    alpha: Rate = 32.0
    """The update is multiplied by alpha / rank (appendix A, choice C32)."""
    dropout: Fraction = 0.05
    """On the update's input (appendix A)."""
    targets: Some[str] | None = None
    """Module names. None: the list known for the model type (appendix A: query, key, value, output); matching
    nothing is an error."""


class _Tokens(Frozen):
    max_tokens: Positive = 4096
    """Tokens of a document that are read; what lies beyond is cut, counted and reported."""
    chunk_tokens: Positive = 512
    """Longer documents pass through the backbone in pieces of this many tokens and come out as ONE sequence of
    hidden states (choice C09); pieces never become documents."""


class _Network(_Tokens):
    """What every backbone with a network has."""

    attention_heads: Positive = 8
    """Heads of the label attention (appendix A)."""
    pool_size: Positive = 128
    """p of the adaptive average pooling (appendix A)."""
    mask_padding: bool = True
    """False reproduces the field's fault: scores depend on the batch's padding."""
    adapter: Literal["frozen", "lora", "full"] = "lora"
    """What of the backbone is trained: nothing, LoRA matrices, or all of it."""
    lora: Lora = Lora()
    """Used where adapter is lora."""
    quantization: Literal["none", "nf4"] = "none"
    """nf4: 4-bit NormalFloat with double quantisation (appendix A). Runs on CPU too."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Autocast type of the forward pass; states and losses stay fp32 (choice C33)."""
    gradient_checkpointing: bool = False
    """Activations are computed again in the backward pass: less memory, more time (appendix A: on)."""
    cache_features: bool = False
    """Only with a frozen adapter: hidden states are computed once and kept on disk as fp16."""
    devices: Positive = 1
    """GPUs (on a CPU: processes) of one training job."""
    parallel: Literal["data", "layers"] = "data"
    """data: one process a device, each with its share of every batch (accelerate launch); layers: one process, the
    backbone's layers spread over the devices of a node (for what does not fit on one)."""
    bidirectional: bool = False
    """Turn a causal model's mask off (measured variant, not in the paper)."""

    @model_validator(mode="after")
    def _goes_together(self) -> _Network:
        if self.cache_features and self.adapter != "frozen":
            raise ValueError("cache_features needs adapter: frozen (features of a trained backbone change)")
        if self.quantization == "nf4" and self.adapter == "full":
            raise ValueError("quantization: nf4 cannot be trained in full; use adapter: lora or frozen")
        return self


class Pretrained(_Network):
    """A Hugging Face model by hub id or local folder."""

    kind: Literal["pretrained"]
    """Form of the backbone."""
    path: str
    """Hub id or folder."""
    revision: str | None = None
    """Branch, tag or commit of a hub id. None: its newest."""
    trust_remote_code: bool = False
    """Let transformers run code from the hub."""
    parameters: Rate | None = None
    """Parameters, in billions, that one token passes through (of a mixture of experts: the active ones); for the plan
    only."""


class Random(_Network):
    """A small, randomly initialised transformer with a tokenizer trained on the training split."""

    kind: Literal["random"]
    adapter: Literal["frozen", "lora", "full"] = "full"
    """What of the backbone is trained: nothing, LoRA matrices, or all of it."""
    architecture: Literal["llama", "mistral", "phi3", "deepseek_v3", "bert"] = "llama"
    """Which transformer is built."""
    hidden_size: Positive = 64
    """h of the backbone."""
    layers: Positive = 2
    """Of the backbone."""
    heads: Positive = 4
    """Self-attention heads of the backbone."""
    vocabulary: Positive = 4000
    """Size of the byte-level BPE vocabulary."""
    seed: Seed = 0
    """Of the weights."""

    @model_validator(mode="after")
    def _divides(self) -> Random:
        if self.hidden_size % self.heads or self.hidden_size % self.attention_heads:
            raise ValueError("hidden_size must be a multiple of heads and of attention_heads")
        return self


class Words(_Tokens):
    """No network: lower-cased words as tokens, for the baselines without a network."""

    kind: Literal["words"]
    min_documents: Positive = 1
    """Words in fewer training documents are dropped."""
    vocabulary: Positive | None = None
    """Keep the most frequent words. None: all."""


Backbone = Annotated[Pretrained | Random | Words, Field(discriminator="kind")]
