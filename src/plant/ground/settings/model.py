"""Section `backbones`: which model gives the hidden states, and how it is adapted."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from plant.ground.settings.base import (
    Dropout,
    FilePath,
    Frozen,
    LearningRate,
    Positive,
    Rate,
    Seed,
    Size,
    Some,
    Vocabulary,
)
from plant.ground.settings.recipes import Optimisation


class Lora(Frozen):
    """LoRA as in appendix A: rank 16, alpha 32, dropout .05 on the query, key, value and output projections."""

    rank: Size = 16
    """Rank r of the low-rank update (appendix A)."""
    alpha: Rate = 32.0
    """The update is multiplied by alpha / rank (appendix A, choice C32)."""
    dropout: Dropout = 0.05
    """Dropout rate on the input of the update (appendix A)."""
    targets: Some[str] | None = None
    """Names of the adapted modules. None: the known list for the model type (appendix A: query, key, value, output).
    Names that match no module are an error."""


class _Length(Frozen):
    kind: str
    """Type of the backbone."""
    max_tokens: Positive = 4096
    """Number of tokens read from a document. Longer documents are cut; the cut tokens are counted and reported."""


class _Vocabulary(Frozen):
    """Lower-cased words as tokens."""

    min_documents: Positive = 1
    """Words in fewer training documents are dropped."""
    vocabulary: Positive | None = None
    """Number of words kept, the most frequent ones. None: all."""


class _Network(Frozen):
    """A backbone with a neural network, and the label attention on top of it."""

    attention: str = "multi_head"
    """Name of the label attention with its head. multi_head: that of the paper. docs/explanation/encoders.md lists
    them all."""
    attention_heads: Size = 8
    """Number of heads of the label attention `multi_head` (appendix A)."""
    pool_size: Size = 128
    """Output size p of the adaptive average pooling of `multi_head` (appendix A)."""
    attention_size: Size | None = None
    """Size of the projected states, for label attentions that project them. None: that of the hidden states."""
    mask_padding: bool = True
    """False reproduces a common fault of published code: scores depend on the padding of the batch."""
    devices: Annotated[int, Field(gt=0, le=1024)] = 1
    """Number of GPUs of one training job (on a CPU: number of processes)."""


class _Transformer(_Length, _Network):
    """A backbone that is a transformer."""

    chunk_tokens: Positive = 512
    """Longer documents pass through the backbone in chunks of this number of tokens. Their hidden states are joined
    into one sequence (choice C09). A chunk never becomes a document of its own."""
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
    parallel: Literal["data", "layers"] = "data"
    """data: one process for each device, and each takes its share of every batch (accelerate launch). layers: one
    process, with the layers of the backbone spread over the devices (for models that do not fit on one device)."""
    bidirectional: bool = False
    """Turn off the causal mask of the model (a variant that we measure; the paper does not have it)."""

    @model_validator(mode="after")
    def _goes_together(self) -> _Transformer:
        if self.cache_features and self.adapter != "frozen":
            raise ValueError("cache_features needs adapter: frozen (features of a trained backbone change)")
        if self.quantization == "nf4" and self.adapter == "full":
            raise ValueError("quantization: nf4 cannot be trained in full; use adapter: lora or frozen")
        return self


class Pretrained(_Transformer):
    """A Hugging Face model, by hub id or local folder."""

    kind: Literal["pretrained"]
    path: FilePath
    """Hub id or folder."""
    revision: str | None = None
    """Branch, tag or commit of the hub id. None: the newest version."""
    trust_remote_code: bool = False
    """Allow transformers to run code from the hub."""
    parameters: Rate | None = None
    """Number of parameters that one token uses, in billions (for a mixture of experts: the active ones). Only the plan
    uses it."""


class Random(_Transformer):
    """A small transformer with random weights. Its tokenizer is trained on the train split."""

    kind: Literal["random"]
    adapter: Literal["frozen", "lora", "full"] = "full"
    architecture: Literal["llama", "mistral", "phi3", "deepseek_v3", "bert"] = "llama"
    """Architecture of the transformer."""
    hidden_size: Size = 64
    """Hidden size h of the backbone. It must be a multiple of `heads` and of `attention_heads`."""
    layers: Size = 2
    """Number of layers."""
    heads: Size = 4
    """Number of self-attention heads."""
    vocabulary: Vocabulary = 4000
    """Number of tokens in the byte-level BPE vocabulary."""
    seed: Seed = 0
    """Seed of the random initial weights."""

    @model_validator(mode="after")
    def _divides(self) -> Random:
        several = self.attention_heads if self.attention == "multi_head" else 1
        if self.hidden_size % self.heads or self.hidden_size % several:
            raise ValueError("hidden_size must be a multiple of heads and of attention_heads")
        if self.architecture in ("llama", "mistral", "phi3") and self.hidden_size // self.heads % 2:
            raise ValueError(f"hidden_size / heads must be even: {self.architecture} rotates pairs of numbers")
        return self


class WordVectors(Frozen):
    """How word vectors are trained on the training split: word2vec, continuous bag of words or skip-gram."""

    epochs: Positive = 5
    """Passes over the training documents."""
    window: Positive = 5
    """Largest distance, in words, between a word and those that it is predicted from."""
    skip_gram: bool = False
    """True: skip-gram. False: continuous bag of words."""
    seed: Seed = 0
    """Seed of the random initial vectors and of the negative samples."""


class LanguageModel(Optimisation):
    """A language model of the training texts, from which a recurrent encoder starts (earlier version, A.3 and A.6)."""

    epochs: Positive = 20
    """Largest number of passes over the training documents (A.6)."""
    learning_rate: LearningRate = 1e-3
    """Learning rate. The earlier version's 1e-5 is for published weights (A.6)."""
    start: FilePath | None = None
    """File of published weights (docs/explanation/encoders.md gives its form). None: random weights."""
    seed: Seed = 0
    """Seed of the random initial weights and of the order of the documents."""


class WordNetwork(_Length, _Vocabulary, _Network):
    """A network over the lower-cased words of a document, such as a convolution or a recurrent network."""

    kind: Literal["word_network"]
    encoder: str
    """Name of the network: a module of plant/model/encoders/. docs/explanation/encoders.md has their equations."""
    embedding_size: Size = 100
    """Size of a word vector."""
    hidden_size: Size = 256
    """Size h of the hidden state of a word, as label attention reads it (of both directions, or of all kernels). For
    awd_lstm: size of the layers before the last one, and label attention reads `embedding_size`."""
    layers: Size = 1
    """Number of layers, for encoders that have several."""
    kernel_sizes: Some[Size] = (9,)
    """Width of each convolution in words, for encoders that have some."""
    dropout: Dropout = 0.2
    """Dropout rate on the word vectors."""
    word_vectors: Literal["trained"] | FilePath | None = None
    """Initial word vectors. None: random. trained: word2vec on the training split. Else a file: safetensors with
    `vectors` and `words`, or the text format of word2vec."""
    word2vec: WordVectors = WordVectors()
    """Settings of `word_vectors: trained`."""
    language_model: LanguageModel | None = None
    """Train the encoder as a language model of the training texts first. It takes the place of `word_vectors`. Only for
    encoders that can be one."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Further settings of one encoder alone, by name. docs/explanation/encoders.md lists them."""
    # what rules ask of every network
    parallel: ClassVar[str] = "data"
    cache_features: ClassVar[bool] = False

    @property
    def sources(self) -> dict[str, str]:
        """Key -> the file that it names."""
        start = self.language_model.start if self.language_model else None
        vectors = None if self.language_model or self.word_vectors == "trained" else self.word_vectors
        named = {"language_model.start": start, "word_vectors": vectors}
        return {key: path for key, path in named.items() if path is not None}

    @model_validator(mode="after")
    def _divides(self) -> WordNetwork:
        key = "embedding_size" if self.encoder == "awd_lstm" else "hidden_size"  # what label attention reads
        if self.attention == "multi_head" and getattr(self, key) % self.attention_heads:
            raise ValueError(f"{key} must be a multiple of attention_heads")
        return self


class Words(_Length, _Vocabulary):
    """No neural network: the tokens are lower-cased words. The word baselines read this backbone."""

    kind: Literal["words"]


Network = Pretrained | Random | WordNetwork
"""A backbone that can be trained."""
Backbone = Annotated[Pretrained | Random | WordNetwork | Words, Field(discriminator="kind")]
