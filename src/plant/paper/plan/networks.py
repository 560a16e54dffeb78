"""How large a backbone is: its weights, those that one token passes through, and those that LoRA adds.

They are counted from the numbers of a Hugging Face `config.json`; no model is loaded. Symbols: h hidden size, f width
of the feed-forward layer, d size of an attention head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plant.ground.files import read_json
from plant.ground.settings import Pretrained, Random
from plant.model.lora_targets import LORA_TARGETS
from plant.paper.values.transcription import read_yaml

NetworkBackbone = Pretrained | Random
ARCHITECTURES = Path(__file__).with_name("architectures.yaml")


@dataclass(frozen=True)
class Network:
    """A backbone in numbers. Counts are parameters of the base model, without the language-model head."""

    kind: str
    """model_type."""
    hidden: int
    layers: int
    linear: int
    """Weights of the layers' linear maps."""
    experts: int
    """Weights of routed experts; 0 for a dense model."""
    other: int
    """Embeddings, norms, biases and router, which keep the precision that they are loaded with."""
    passed: float
    """Weights that one token is multiplied with: of the experts the chosen ones; no embeddings, which are looked up."""
    score_width: int
    """Widths of queries and values, summed over layers: self-attention takes 2 x this x length FLOPs for a token."""
    saved_width: int
    """Numbers that one layer keeps of a token for its backward pass: inputs of its maps, with fused attention."""
    maps: Mapping[str, tuple[int, int]]
    """Linear maps of one layer that LoRA may adapt: name -> (in, out)."""

    @property
    def quantised(self) -> int:
        """Weights that 4-bit quantisation reaches: linear maps and experts (`plant.model.encoders.experts`)."""
        return self.linear + self.experts

    @property
    def parameters(self) -> int:
        """All of them."""
        return self.quantised + self.other

    def lora_parameters(self, rank: int, targets: tuple[str, ...] | None) -> int:
        """Weights of the low-rank matrices of all layers. A name that is no map of the layers adds nothing."""
        names = targets or LORA_TARGETS[self.kind]
        return self.layers * rank * sum(sum(self.maps[name]) for name in names if name in self.maps)


def find_network(settings: NetworkBackbone) -> Network | None:
    """The network of a backbone; None where neither its folder nor architectures.yaml gives a shape that is known."""
    if isinstance(settings, Random):
        return count(_random_shape(settings))
    local = Path(settings.path).expanduser() / "config.json"
    shape = read_json(local) if local.is_file() else read_yaml(ARCHITECTURES).get(settings.path)
    return count(shape) if shape is not None and shape.get("model_type") in _COUNTERS else None


def count(shape: Mapping[str, Any]) -> Network:
    """A network from the numbers of its config.json.

    Args:
        shape: with `model_type` (one of LORA_TARGETS) and the sizes of that model type.
    """
    return _COUNTERS[shape["model_type"]](shape)


def _random_shape(settings: Random) -> dict[str, Any]:
    """The sizes that `plant.model.encoders.transformer.make_random_backbone` gives to a model (a test compares)."""
    h, heads = settings.hidden_size, settings.heads
    part = h // heads
    shape = {
        "model_type": settings.architecture, "hidden_size": h, "num_hidden_layers": settings.layers,
        "intermediate_size": 4 * h, "num_attention_heads": heads, "vocab_size": settings.vocabulary,
        "max_position_embeddings": settings.chunk_tokens + 8,
    }  # fmt: skip
    if settings.architecture == "deepseek_v3":
        shape |= {
            "q_lora_rank": h // 2, "kv_lora_rank": h // 2, "qk_nope_head_dim": part,
            "qk_rope_head_dim": max(2, part // 2 * 2), "v_head_dim": part, "moe_intermediate_size": h,
            "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
        }  # fmt: skip
    return shape


def _decoder(shape: Mapping[str, Any]) -> Network:
    """Llama, Mistral, Phi-3: grouped-query attention and a gated feed-forward layer."""
    h, f, layers = shape["hidden_size"], shape["intermediate_size"], shape["num_hidden_layers"]
    heads = shape["num_attention_heads"]
    d = shape.get("head_dim") or h // heads
    wide, narrow = heads * d, (shape.get("num_key_value_heads") or heads) * d
    maps = {
        "q_proj": (h, wide), "k_proj": (h, narrow), "v_proj": (h, narrow), "o_proj": (wide, h),
        "gate_proj": (h, f), "up_proj": (h, f), "down_proj": (f, h),
    }  # fmt: skip
    linear = layers * _weights(maps)
    if shape["model_type"] == "phi3":  # the same weights under joint names
        maps = {"qkv_proj": (h, wide + 2 * narrow), "o_proj": (wide, h), "gate_up_proj": (h, 2 * f),
                "down_proj": (f, h)}  # fmt: skip
    return Network(
        kind=shape["model_type"], hidden=h, layers=layers, linear=linear, experts=0,
        other=shape["vocab_size"] * h + 2 * h * layers + h, passed=linear, score_width=2 * wide * layers,
        saved_width=4 * h + 2 * wide + 2 * narrow + 4 * f, maps=maps,
    )  # fmt: skip


def _deepseek(shape: Mapping[str, Any]) -> Network:
    """DeepSeek-V3: latent attention, a few dense layers, then shared and routed experts."""
    h, f, layers = shape["hidden_size"], shape["intermediate_size"], shape["num_hidden_layers"]
    heads, q, kv = shape["num_attention_heads"], shape["q_lora_rank"], shape["kv_lora_rank"]
    nope, rope, v = shape["qk_nope_head_dim"], shape["qk_rope_head_dim"], shape["v_head_dim"]
    small, dense = shape["moe_intermediate_size"], min(layers, shape["first_k_dense_replace"])
    routed, chosen, sparse = shape["n_routed_experts"], shape["num_experts_per_tok"], layers - dense
    maps = {
        "q_a_proj": (h, q), "q_b_proj": (q, heads * (nope + rope)), "kv_a_proj_with_mqa": (h, kv + rope),
        "kv_b_proj": (kv, heads * (nope + v)), "o_proj": (heads * v, h),
    }  # fmt: skip
    expert = 3 * h * small
    linear = layers * _weights(maps) + dense * 3 * h * f + sparse * shape["n_shared_experts"] * expert
    router = sparse * routed * h
    norms = (2 * h + q + kv) * layers + h
    width = max(f if dense else 0, (shape["n_shared_experts"] + chosen) * small)
    return Network(
        kind="deepseek_v3", hidden=h, layers=layers, linear=linear, experts=sparse * routed * expert,
        other=shape["vocab_size"] * h + norms + router, passed=linear + sparse * chosen * expert + router,
        score_width=heads * (nope + rope + v) * layers,
        saved_width=4 * h + q + kv + heads * (2 * (nope + rope) + 2 * v) + 4 * width, maps=maps,
    )  # fmt: skip


def _bert(shape: Mapping[str, Any]) -> Network:
    """BERT: biases on all maps, a feed-forward layer without a gate, learned positions, an unused pooler."""
    h, f, layers = shape["hidden_size"], shape["intermediate_size"], shape["num_hidden_layers"]
    maps = {
        "query": (h, h), "key": (h, h), "value": (h, h), "attention.output.dense": (h, h),
        "intermediate.dense": (h, f), "output.dense": (f, h),
    }  # fmt: skip
    linear = layers * _weights(maps)
    rows = shape["vocab_size"] + shape["max_position_embeddings"] + shape.get("type_vocab_size", 2)
    biases_and_norms = layers * (5 * h + f + 4 * h)
    return Network(
        kind="bert", hidden=h, layers=layers, linear=linear, experts=0,
        other=rows * h + 2 * h + biases_and_norms + h * h + h, passed=linear, score_width=2 * h * layers,
        saved_width=8 * h + 2 * f, maps=maps,
    )  # fmt: skip


def _weights(maps: Mapping[str, tuple[int, int]]) -> int:
    return sum(inputs * outputs for inputs, outputs in maps.values())


_COUNTERS = {"llama": _decoder, "mistral": _decoder, "phi3": _decoder, "deepseek_v3": _deepseek, "bert": _bert}
