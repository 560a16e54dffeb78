"""NF4 for the experts of a mixture.

transformers 5 keeps all experts of a layer as two stacked parameters, and bitsandbytes replaces linear layers only
(its issue 1849). Asked for 4 bits, the two leave 97 % of DeepSeek-V3 in 16 bits. Here a loader quantises the experts
of each layer as it reads them, one at a time; a product with an expert expands that expert for the product alone.
While a layer is read, all its experts are on the device in 16 bits, more than once for a moment (DeepSeek-V3: 23 GB).
"""

from typing import Any

import bitsandbytes
import torch
from bitsandbytes.functional import QuantState, quantize_4bit
from torch import Tensor, nn
from transformers import BitsAndBytesConfig
from transformers.integrations.bitsandbytes import Bnb4bitQuantize
from transformers.quantizers.auto import register_quantizer
from transformers.quantizers.quantizer_bnb_4bit import Bnb4BitHfQuantizer
from transformers.quantizers.quantizers_utils import get_module_from_name

STACKED = ("gate_up_proj", "down_proj")  # (experts, 2 i, h) with the gate first, (experts, h, i)
WITH_EXPERTS = ("deepseek_v3",)  # model types whose experts are stacked like that
METHOD = "nf4_with_experts"


class ExpertsConfig(BitsAndBytesConfig):
    """NF4 of linear layers and of stacked experts."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.quant_method = METHOD


class QuantisedExperts(nn.Module):
    """The experts of one layer in 4 bits; they replace the model's own."""

    def __init__(self, experts: nn.Module, options: BitsAndBytesConfig) -> None:
        super().__init__()
        self.act_fn: Any = experts.act_fn
        self.options = options
        self.states: dict[str, list[QuantState]] = {}
        for name in STACKED:
            setattr(self, name, nn.Parameter(getattr(experts, name).detach(), requires_grad=False))

    def quantise(self, name: str, weights: Tensor) -> nn.Parameter:
        """A stacked parameter in 4 bits: u8 (experts, half the numbers of an expert)."""
        packed, self.states[name] = [], []
        for weight in weights:
            data, state = quantize_4bit(
                weight.contiguous(),
                compress_statistics=self.options.bnb_4bit_use_double_quant,
                quant_type=self.options.bnb_4bit_quant_type,
            )
            packed.append(data.view(-1))
            self.states[name].append(state)
        return nn.Parameter(torch.stack(packed), requires_grad=False)

    def project(self, x: Tensor, name: str, expert: int) -> Tensor:
        """x W^T for the weights W of one expert."""
        packed = getattr(self, name)[expert]
        return bitsandbytes.matmul_4bit(x, packed, quant_state=self.states[name][expert])

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """Weighted sum over each token's experts: states (tokens, h), index and weights (tokens, k) -> (tokens, h)."""
        out = torch.zeros_like(hidden_states)
        kind = self.options.bnb_4bit_compute_dtype
        for expert in top_k_index.unique().tolist():
            token, place = torch.where(top_k_index == expert)
            gate, up = self.project(hidden_states[token].to(kind), "gate_up_proj", expert).chunk(2, dim=-1)
            result = self.project(self.act_fn(gate) * up, "down_proj", expert)
            out = out.index_add(0, token, (result * top_k_weights[token, place, None]).to(out.dtype))
        return out


class _Quantise(Bnb4bitQuantize):
    """Quantises one parameter that was read."""

    def convert(
        self,
        input_dict: dict[str, list[Tensor]],
        full_layer_name: str | None = None,
        model: nn.Module | None = None,
        **kwargs: Any,
    ) -> dict[str, Tensor]:
        converted: dict[str, Tensor] = {}
        for name, value in input_dict.items():
            module, last = get_module_from_name(model, name)
            if isinstance(module, QuantisedExperts):
                converted[name] = module.quantise(last, value[0] if isinstance(value, list) else value)
            else:
                converted |= super().convert({name: value}, full_layer_name, model, **kwargs)
        return converted


@register_quantizer(METHOD)
class _Quantizer(Bnb4BitHfQuantizer):
    """The 4-bit loader of transformers, for stacked experts too."""

    def _process_model_before_weight_loading(self, model: nn.Module, device_map: Any = None, **kwargs: Any) -> None:
        super()._process_model_before_weight_loading(model, device_map, **kwargs)
        for name, module in list(model.named_modules()):
            if {last for last, _ in module.named_parameters(recurse=False)} == set(STACKED):
                model.set_submodule(name, QuantisedExperts(module, self.quantization_config))

    def param_needs_quantization(self, model: nn.Module, param_name: str, **kwargs: Any) -> bool:
        module, last = get_module_from_name(model, param_name)
        if isinstance(module, QuantisedExperts):
            return last in STACKED
        return super().param_needs_quantization(model, param_name, **kwargs)

    def get_quantize_ops(self) -> Bnb4bitQuantize:
        return _Quantise(self)
