"""How a job computes: on which device, with how many threads, and whether two runs must have the same bits."""

import os
from collections.abc import Mapping
from typing import Any

import torch

from plant.ground.settings import Compute
from plant.model.parallel import own_device

WORKSPACE = ":4096:8"  # of cuBLAS: one of the two sizes with which its products have one order of additions


def set_up(section: Mapping[str, Any]) -> torch.device:
    """Prepare torch by the section `compute` of the config; every job that runs a model begins with it.

    On the CPU the same seed gives the same bits anyway: the number of threads is fixed. On a GPU some kernels add in
    the order in which threads come; with `deterministic` torch takes others, or stops with an error where it has none.
    It does not look into the kernels of bitsandbytes.

    Numbers below 1e-38 become 0. A sharp attention has many of them, and a CPU needs up to ten times as long for each.

    Returns the device of this process. It is chosen before CUDA starts: cuBLAS reads its workspace once.
    """
    compute = Compute.model_validate(section)
    torch.set_flush_denormal(True)  # before the threads, which inherit it
    torch.set_num_threads(compute.threads)
    if compute.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", WORKSPACE)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(compute.deterministic)
    return own_device(compute.device)
