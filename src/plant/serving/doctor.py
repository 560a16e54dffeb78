"""What this machine can run, and what is missing: `plant doctor`."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import torch

EXTRAS = {
    "baselines": "word baselines and Stage 3 (needed to train and to save them)",
    "workflow": "training with Snakemake",
    "paper": "tables, figures and the report",
    "serve": "plant serve",
    "quantisation": "4-bit backbones",
}
"""What each extra of the package is for."""
SIZES = {"22M (small sentence encoder)": 0.022, "110M (BERT base)": 0.11, "1B": 1.0, "4B": 3.8, "8B": 8.0}
"""Billions of parameters of backbones."""
BYTES = {"frozen": 2.0, "lora": 2.5, "nf4": 0.7, "full": 16.0}
"""Bytes for each parameter: weights in 16 bits; the same with LoRA and its optimiser; in 4 bits; all weights in fp32
with their gradients and AdamW. Activations come on top: `ROOM`."""
ROOM = 0.7
"""Share of the memory for weights."""
GIB = 2**30


def examine() -> Iterator[str]:
    """Lines about devices, memory, packages and the sizes of backbones that fit."""
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, torch {torch.__version__}"
    memory = _host_memory()
    free = shutil.disk_usage(Path.cwd()).free
    yield f"{os.cpu_count()} processors, {memory / GIB:.1f} GiB memory, {free / GIB:.1f} GiB free on this disk"
    devices = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    yield from (f"GPU: {device.name}, {device.total_memory / GIB:.0f} GiB" for device in devices)
    if not devices:
        yield "GPU: none; training and prediction run on the processors"
    yield "\nPieces:"
    for extra, purpose in EXTRAS.items():
        missing = missing_of(extra)
        state = f"missing {', '.join(missing)}: pip install '.[{extra}]' in the checkout" if missing else "ready"
        yield f"  {extra:<13} {purpose}: {state}"
    room = ROOM * (max(device.total_memory for device in devices) if devices else memory)
    yield f"\nBackbones that can be trained here (weights within {room / GIB:.0f} GiB; speed is another question):"
    for how, size in BYTES.items():
        if how == "nf4" and not devices:
            continue
        fitting = [name for name, billions in SIZES.items() if billions * 1e9 * size <= room]
        yield f"  {how:<7} up to {fitting[-1] if fitting else 'none of them'}"


def missing_of(extra: str) -> list[str]:
    """The packages of an extra that are not installed."""
    lines = [line for line in requires("plant-xmtc") or [] if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    names = [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines]
    return [name for name in names if name != "plant-xmtc" and not _installed(name)]


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _host_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
