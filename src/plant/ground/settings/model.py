"""Section `backbones`: which model gives the hidden states, and how it is adapted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plant.ground.settings.base import Fraction, Frozen, Positive, Rate, Seed, Some


class Lora(Frozen):
    """LoRA as in appendix A: rank 16, alpha 32, dropout .05 on the query, key, value and output projections."""

    rank: Positive = 16
    """Rank r of the low-rank update (appendix A)."""
    alpha: Rate = 32.0
    """The update is multiplied by alpha / rank (appendix A, choice C32)."""
    dropout: Fraction = 0.05
    """Dropout rate on the input of the update (appendix A)."""
    targets: Some[str] | None = None
    """Names of the adapted modules. None: the known list for the model type (appendix A: query, key, value, output).
    Names that match no module are an error."""


class _Tokens(Frozen):
    max_tokens: Positive = 4096
    """Number of tokens read from a document. Longer documents are cut; the cut tokens are counted and reported."""
    chunk_tokens: Positive = 512
    """Longer documents pass through the backbone in chunks of this number of tokens. Their hidden states are joined
    into one sequence (choice C09). A chunk never becomes a document of its own."""


class _Network(_Tokens):
    """A backbone with a neural network."""

    attention_heads: Positive = 8
    """Number of heads of the label attention (appendix A)."""
    pool_size: Positive = 128
    """Output size p of the adaptive average pooling (appendix A)."""
    mask_padding: bool = True
    """False reproduces a common fault of published code: scores depend on the padding of the batch."""
    adapter: Literal["frozen", "lora", "full"] = "lora"
    """Which weights of the backbone are trained: none, LoRA matrices, or all."""
    lora: Lora = Lora()
    """LoRA settings. They are used with `adapter: lora`."""
    quantization: Literal["none", "nf4"] = "none"
    """nf4: 4-bit NormalFloat with double quantisation (appendix A). It also runs on CPU."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Autocast type of the forward pass. Hidden states and losses stay in fp32 (choice C33)."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time (appendix A: on)."""
    cache_features: bool = False
    """Compute the hidden states once and keep them on disk as fp16. It needs `adapter: frozen`."""
    devices: Positive = 1
    """Number of GPUs of one training job (on a CPU: number of processes)."""
    parallel: Literal["data", "layers"] = "data"
    """data: one process for each device, and each takes its share of every batch (accelerate launch). layers: one
    process, with the layers of the backbone spread over the devices (for models that do not fit on one device)."""
    bidirectional: bool = False
    """Turn off the causal mask of the model (a variant that we measure; the paper does not have it)."""

    @model_validator(mode="after")
    def _goes_together(self) -> _Network:
        if self.cache_features and self.adapter != "frozen":
            raise ValueError("cache_features needs adapter: frozen (features of a trained backbone change)")
        if self.quantization == "nf4" and self.adapter == "full":
            raise ValueError("quantization: nf4 cannot be trained in full; use adapter: lora or frozen")
        return self


class Pretrained(_Network):
    """A Hugging Face model, by hub id or local folder."""

    kind: Literal["pretrained"]
    """Type of the backbone."""
    path: str
    """Hub id or folder."""
    revision: str | None = None
    """Branch, tag or commit of the hub id. None: the newest version."""
    trust_remote_code: bool = False
    """Allow transformers to run code from the hub."""
    parameters: Rate | None = None
    """Number of parameters that one token uses, in billions (for a mixture of experts: the active ones). Only the plan
    uses it."""


class Random(_Network):
    """A small transformer with random weights. Its tokenizer is trained on the train split."""

    kind: Literal["random"]
    """Type of the backbone."""
    adapter: Literal["frozen", "lora", "full"] = "full"
    """Which weights of the backbone are trained: none, LoRA matrices, or all."""
    architecture: Literal["llama", "mistral", "phi3", "deepseek_v3", "bert"] = "llama"
    """Architecture of the transformer."""
    hidden_size: Positive = 64
    """Hidden size h of the backbone. It must be a multiple of `heads` and of `attention_heads`."""
    layers: Positive = 2
    """Number of layers."""
    heads: Positive = 4
    """Number of self-attention heads."""
    vocabulary: Positive = 4000
    """Number of tokens in the byte-level BPE vocabulary."""
    seed: Seed = 0
    """Seed of the random initial weights."""

    @model_validator(mode="after")
    def _divides(self) -> Random:
        if self.hidden_size % self.heads or self.hidden_size % self.attention_heads:
            raise ValueError("hidden_size must be a multiple of heads and of attention_heads")
        return self


class Words(_Tokens):
    """No neural network: the tokens are lower-cased words. The word baselines read this backbone."""

    kind: Literal["words"]
    """Type of the backbone."""
    min_documents: Positive = 1
    """Words in fewer training documents are dropped."""
    vocabulary: Positive | None = None
    """Number of words kept, the most frequent ones. None: all."""


Backbone = Annotated[Pretrained | Random | Words, Field(discriminator="kind")]
