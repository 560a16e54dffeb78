"""Transformers: load or make one, adapt it, and read a document as one sequence of hidden states."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from plant.corpus.encoders import unreadable
from plant.ground import settings as plant_settings
from plant.ground.errors import InputError
from plant.ground.files import atomic_path, require_file
from plant.model.transformer.loading import DTYPES, NetworkBackbone, hub_options, is_placed, load_model

CPU = torch.device("cpu")
LORA_TARGETS = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma2"), ("q_proj", "k_proj", "v_proj", "o_proj")),
    "phi3": ("qkv_proj", "o_proj"),
    "deepseek_v3": ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta"), ("query", "key", "value", "attention.output.dense")),
}
"""What LoRA adapts where the config names nothing: query, key, value and output projections (appendix A)."""


class Backbone(nn.Module):
    """A Hugging Face base model that maps a padded batch of documents to hidden states.

    A document longer than `chunk_tokens` passes through in pieces. The hidden states of the pieces are joined again,
    so that label attention sees the whole document (choice C09). Each piece gets the special tokens (`prefix`,
    `suffix`) that the tokenizer puts around a text; their states are dropped. `precision` is the autocast type of the
    forward pass. `placed`: loading has put the layers on their devices, where they stay.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        chunk_tokens: int,
        prefix: tuple[int, ...] = (),
        suffix: tuple[int, ...] = (),
        precision: str = "fp32",
        placed: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.placed = model, placed
        self.chunk_tokens, self.prefix, self.suffix, self.precision = chunk_tokens, prefix, suffix, precision

    @property
    def hidden_size(self) -> int:
        return int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    def place(self, device: torch.device) -> "Backbone":
        """Move it to a device, unless loading has put it on its own."""
        return self if self.placed else self.to(device)

    def train(self, mode: bool = True) -> "Backbone":
        """Without a trained weight it stays in evaluation mode: a frozen backbone has no dropout."""
        return super().train(mode and any(parameter.requires_grad for parameter in self.parameters()))

    def forward(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        """H (B, n, h) in fp32, zeros at padding, of ids (B, n) and the mask (B, n): all tokens come before padding."""
        # cut each document into pieces of one width c: (B, n) -> (B * pieces, c)
        batch, n = input_ids.shape
        pieces = -(-n // self.chunk_tokens)
        width = pieces * self.chunk_tokens if pieces > 1 else n
        pad = (0, width - n)
        rows = nn.functional.pad(input_ids, pad).view(batch * pieces, -1)
        inside = nn.functional.pad(mask, pad).view(batch * pieces, -1)
        # pieces of padding alone do not pass through the model
        kept = inside.any(1)
        states = self.piece_states(rows[kept], inside[kept])
        out = states.new_zeros(batch * pieces, *states.shape[1:])
        out[kept] = states * inside[kept][..., None]
        return out.view(batch, width, -1)[:, :n]

    def piece_states(self, rows: Tensor, inside: Tensor) -> Tensor:
        """Hidden states of pieces (C, c) with the special tokens put around and taken off again."""
        ids, mask = self._with_special(rows, inside)
        kind = rows.device.type
        enabled = self.precision != "fp32"
        with torch.autocast(kind, dtype=DTYPES[self.precision] if enabled else None, enabled=enabled):
            states = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        start = len(self.prefix)
        return states[:, start : start + rows.shape[1]].float().to(rows.device)  # from the last layer's device

    def _with_special(self, rows: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        if not self.prefix and not self.suffix:
            return rows, inside
        count, c = rows.shape
        start = len(self.prefix)
        ids = rows.new_zeros(count, start + c + len(self.suffix))
        mask = torch.zeros_like(ids, dtype=torch.bool)
        ids[:, :start] = rows.new_tensor(self.prefix)
        ids[:, start : start + c] = rows
        mask[:, :start] = True
        mask[:, start : start + c] = inside
        ends = start + inside.sum(1)  # the suffix follows the last token, not the padding
        for shift, special in enumerate(self.suffix):
            ids.scatter_(1, (ends + shift)[:, None], special)
            mask.scatter_(1, (ends + shift)[:, None], True)
        return ids, mask


def load_backbone(settings: NetworkBackbone, folder: str | Path, *, device: torch.device = CPU) -> Backbone:
    """Load a backbone by hub id or local folder and adapt it; only the weights that are trained require a gradient.

    The device is where the job runs. Quantised and spread models go there while they are read; others need `place`.

    Raises:
        InputError: no model or tokenizer in the folder, a tokenizer of another model, or LoRA targets that match
            no module.
    """
    model = load_model(settings, folder, device)
    set_reading(model, settings)
    prefix, suffix = special_tokens(settings, folder, rows=len(model.get_input_embeddings().weight))
    if settings.gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()  # frozen embeddings would cut the gradient of checkpointed layers
    if settings.adapter == "lora":
        model = _adapt(model, settings)
    else:
        model.requires_grad_(settings.adapter == "full")
    return Backbone(
        model, chunk_tokens=settings.chunk_tokens, prefix=prefix, suffix=suffix, precision=settings.precision,
        placed=is_placed(settings),
    )  # fmt: skip


def set_reading(model: Any, settings: NetworkBackbone) -> None:
    """Make a model read documents: it keeps no keys and values, and with `bidirectional` it has no causal mask."""
    model.config.use_cache = False  # keys and values are for generation; here they would only fill memory
    if settings.bidirectional:
        for part in (model.config, *(module for module in model.modules() if hasattr(module, "is_causal"))):
            part.is_causal = False


def special_tokens(
    settings: NetworkBackbone, folder: str | Path, *, rows: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that the tokenizer puts before and after a text.

    Raises:
        InputError: there is no tokenizer, or it gives ids beyond the `rows` of the model's embedding.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **hub_options(settings))
    except (OSError, ValueError) as error:
        raise InputError(
            f"backbone {folder}", expected="a tokenizer beside the model (tokenizer.json)",
            got=unreadable(folder, error), fix="Save the model's tokenizer into the folder.",
        ) from error  # fmt: skip
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    start = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
    prefix, suffix = tuple(whole[:start]), tuple(whole[start + len(bare) :])
    largest = max({*tokenizer.get_vocab().values()} - {*tokenizer.all_special_ids} | {*prefix, *suffix})
    if largest >= rows:
        expected = f"a tokenizer whose ids are below {rows}, the rows of its embedding"
        fix = "Save the tokenizer that belongs to the model into the folder."
        raise InputError(f"backbone {folder}", expected=expected, got=f"{largest}", fix=fix)
    return prefix, suffix


def _adapt(model: Any, settings: NetworkBackbone) -> Any:
    """Put LoRA on the projections of the model type; every target must name a module, or peft would pass it by."""
    from peft import LoraConfig, get_peft_model

    lora = settings.lora
    kind = model.config.model_type
    targets = lora.targets or LORA_TARGETS.get(kind, ())
    names = [f".{name}" for name, _ in model.named_modules()]
    unmatched = [target for target in targets if not any(name.endswith(f".{target}") for name in names)]
    if not targets or unmatched:
        raise InputError(
            f"backbone of type {kind!r}",
            expected="LoRA targets that name modules of the model",
            got=f"{unmatched} that match nothing" if targets else "a model type without a known list",
            fix="Set `lora.targets` to the names of its query, key, value and output projections.",
        )
    config = LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=list(targets), bias="none"
    )
    return get_peft_model(model, config)


def make_random_backbone(settings: plant_settings.Random, tokenizer: Path, out: Path) -> None:
    """Write a small random transformer as a Hugging Face folder, with the tokenizer of another folder."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    require_file(tokenizer / "tokenizer.json")  # where it is missing, transformers asks the hub for it
    vocabulary = AutoTokenizer.from_pretrained(str(tokenizer))
    config = _random_config(settings, len(vocabulary))
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(settings.seed)
        model = AutoModel.from_config(config)
    with atomic_path(out) as partial:
        model.save_pretrained(partial)
        vocabulary.save_pretrained(partial)


def _random_config(settings: plant_settings.Random, vocabulary: int) -> Any:
    import transformers

    size, layers, heads = settings.hidden_size, settings.layers, settings.heads
    common: dict[str, Any] = {
        "vocab_size": vocabulary, "hidden_size": size, "num_hidden_layers": layers, "num_attention_heads": heads,
        "intermediate_size": 4 * size, "max_position_embeddings": settings.chunk_tokens + 8,
    }  # fmt: skip
    causal = {"num_key_value_heads": heads, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
    if settings.architecture == "llama":
        return transformers.LlamaConfig(**common, **causal)
    if settings.architecture == "mistral":
        return transformers.MistralConfig(**common, **causal, sliding_window=None)
    if settings.architecture == "phi3":
        return transformers.Phi3Config(**common, **causal)
    if settings.architecture == "bert":
        return transformers.BertConfig(**common, pad_token_id=0)
    part = size // heads
    return transformers.DeepseekV3Config(
        **common, **causal, moe_intermediate_size=size, q_lora_rank=size // 2, kv_lora_rank=size // 2,
        qk_nope_head_dim=part, qk_rope_head_dim=max(2, part // 2 * 2), v_head_dim=part, n_routed_experts=4,
        n_shared_experts=1, num_experts_per_tok=2, n_group=1, topk_group=1, first_k_dense_replace=min(1, layers - 1),
    )  # fmt: skip
