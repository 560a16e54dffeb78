"""Loads a transformer from its files: precision, quantisation, and the devices that it goes to."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from plant.corpus.encoders import unreadable
from plant.ground import settings as plant_settings
from plant.ground.errors import InputError
from plant.model.parallel import processes

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ROOM = 0.85  # share of a GPU's free memory for layers; the rest is for activations, label attention and head
NetworkBackbone = plant_settings.Pretrained | plant_settings.Random


def load_model(settings: NetworkBackbone, folder: str | Path, device: torch.device) -> Any:
    """Load a Hugging Face base model; quantise it and spread it over the GPUs of a node where the settings say so.

    It is on the CPU unless `is_placed(settings)`. The device is that of a quantised model, or of the first layer of a
    spread one.

    Raises:
        InputError: the folder has no model, or one that lacks weights or brings a quantisation of its own; NF4 would
            leave weights out; there are too few GPUs, or too small ones.
    """
    from transformers import AutoModel
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # a log is not a terminal
    options = {"use_safetensors": True, **hub_options(settings), **_weights(settings, folder)}
    options |= _placement(settings, device) if is_placed(settings) else {}
    try:
        model, found = AutoModel.from_pretrained(str(folder), output_loading_info=True, **options)
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(
            f"backbone {folder}",
            expected="a Hugging Face model (config.json, safetensors) by folder or hub id, without a quantisation of "
            "its own, that fits on the devices",
            got=unreadable(folder, error),
            fix="Check `path` (a local folder on offline machines, else a hub id of the form organisation/name; 16 or "
            "32 bits for NF4) and `devices`; a model that brings its own code needs `trust_remote_code: true`.",
        ) from error
    _check_weights(found["missing_keys"], folder)
    _check_placement(model, settings, folder)
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            # else the first evaluation packs the weights for a kernel without a gradient, which training then uses
            module.support_avx512bf16_for_cpu = False
    return model


def hub_options(settings: NetworkBackbone) -> dict[str, Any]:
    """Options for loading from a hub id."""
    if isinstance(settings, plant_settings.Random):
        return {}
    return {"revision": settings.revision, "trust_remote_code": settings.trust_remote_code}


def is_placed(settings: NetworkBackbone) -> bool:
    """Whether loading puts the model on its devices: it is quantised there, or its layers go to several GPUs."""
    return settings.quantization != "none" or settings.parallel == "layers"


def _weights(settings: NetworkBackbone, folder: str | Path) -> dict[str, Any]:
    """Options for the type or the quantisation of the weights."""
    if settings.quantization == "nf4":
        return {"quantization_config": _nf4(settings, folder)}
    if settings.adapter != "full" and settings.precision != "fp32":
        return {"dtype": DTYPES[settings.precision]}  # frozen weights need no fp32 master copy
    return {"dtype": torch.float32}


def _nf4(settings: NetworkBackbone, folder: str | Path) -> Any:
    from transformers import AutoConfig, BitsAndBytesConfig

    try:
        kind = AutoConfig.from_pretrained(str(folder), **hub_options(settings)).model_type
    except (OSError, ValueError):
        kind = ""  # loading the model says what is wrong
    from plant.model.transformer.experts import WITH_EXPERTS, ExpertsConfig

    make: Any = ExpertsConfig if kind in WITH_EXPERTS else BitsAndBytesConfig
    return make(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=DTYPES[settings.precision],
    )  # fmt: skip


def _placement(settings: NetworkBackbone, device: torch.device) -> dict[str, Any]:
    """Options that say where transformers puts the layers while it reads them."""
    if settings.parallel != "layers":
        return {"device_map": {"": device}}
    if (count := processes().count) > 1:
        raise InputError("backbone", expected="one process (parallel: layers)", got=f"{count}", fix="Launch one.")
    if device.type != "cuda":
        return {"device_map": {"": device}}
    found = torch.cuda.device_count()
    if found < settings.devices:
        fix = "Ask the scheduler for as many on one node, or lower `devices`."
        raise InputError(
            "backbone.devices", expected=f"{settings.devices} GPUs in this process", got=f"{found}", fix=fix
        )
    free = {index: int(torch.cuda.mem_get_info(index)[0] * ROOM) for index in range(settings.devices)}
    return {"device_map": "balanced", "max_memory": free}


def _check_weights(missing: set[str], folder: str | Path) -> None:
    """Refuse a file that lacks weights: they would be random. Only a pooler may be missing: it is not used here."""
    lacking = sorted(name for name in missing if "pooler" not in name.split("."))
    if lacking:
        raise InputError(
            f"backbone {folder}",
            expected="a file with all weights of the model",
            got=f"{len(lacking)} missing, the first is {lacking[0]}",
            fix="Download or save the model again; check that its config.json belongs to it.",
        )


def _check_placement(model: nn.Module, settings: NetworkBackbone, folder: str | Path) -> None:
    """Refuse a model with layers that found no GPU, or with weights that stayed in full precision."""
    places = {str(place) for place in getattr(model, "hf_device_map", {}).values()}
    if places & {"cpu", "disk"} and places != {"cpu"}:
        raise InputError(
            f"backbone {folder}", expected=f"a model that fits on {settings.devices} GPUs",
            got=f"layers on {' and '.join(sorted(places))}", fix="Use `quantization: nf4`, or more or larger GPUs.",
        )  # fmt: skip
    if settings.quantization == "nf4":
        left = [n for n, p in model.named_parameters() if p.is_floating_point() and p.ndim > 2]
        if left:
            raise InputError(
                f"backbone {folder}",
                expected="weights that NF4 can take: linear layers, experts of a known model type",
                got=f"stacked weights of another kind, {left[0]}",
                fix="Use `quantization: none`.",
            )
