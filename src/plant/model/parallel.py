"""Several processes of one training job: which share of a batch is mine, and sums over all processes.

`accelerate launch` starts the same script N times and tells each through the environment which one it is (RANK,
WORLD_SIZE, LOCAL_RANK). Without a launch there is one process, and everything here is the identity.

Sums of arrays run on the CPU (gloo), sums of gradients where the gradients are (nccl on GPUs). Accelerate's own
`reduce` does not serve: where there is a GPU it starts nccl alone, and it copies every tensor (docs/evidence/log.md).
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
from torch import distributed, nn

from plant.ground.errors import InputError

PATIENCE = timedelta(hours=2)  # shares of a long validation may end far apart


@dataclass(frozen=True)
class Processes:
    """This process among those of its job."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """True in the one process that writes files, logs and sidecars."""
        return self.rank == 0

    def mine(self, n: int) -> np.ndarray:
        """Positions below `n` that are this process's share: rank, rank + count, ... Shares are disjoint and cover.

        >>> Processes(1, 3).mine(8).tolist(), Processes(2, 3).mine(2).tolist()
        ([1, 4, 7], [])
        """
        return np.arange(self.rank, n, self.count)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Elementwise sum over processes of arrays of one shape and type, with the same bits on all of them.

        The result is a new array; for one process a copy.
        """
        out = np.array(values, order="C", ndmin=1)
        if self.count > 1 and out.size:
            distributed.all_reduce(torch.from_numpy(out))  # in place, in the array's memory
        return out.reshape(np.shape(values))

    def wait(self) -> None:
        """Return when every process has come here."""
        self.sum(np.zeros(1))

    def of_first(self, values: Mapping[str, float]) -> dict[str, float]:
        """The numbers of process 0 on all processes, so that all make the same decisions."""
        if self.count == 1:
            return dict(values)
        here = np.array(list(values.values()), dtype=np.float64)
        return dict(zip(values, self.sum(here if self.first else np.zeros_like(here)).tolist(), strict=True))

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Put the sum of gradients over processes into `grad`, with the same bits on all of them.

        The parameters come in the same order on all processes; those that are frozen now are left alone. A parameter
        without a gradient here counts as zeros, as another process may have one. A parameter without a gradient
        anywhere gets none, as in one process. A sparse gradient has the rows of all processes.
        """
        if self.count == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        some = [parameter.grad is not None for parameter in trained]
        sparse = [parameter.grad is not None and parameter.grad.is_sparse for parameter in trained]
        found = self.sum(np.array([some, sparse], dtype=np.int64)).T
        for parameter, (times, by_rows) in zip(trained, found, strict=True):
            if by_rows:
                parameter.grad = _sum_of_rows(parameter)
            elif times:
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.contiguous()
                distributed.all_reduce(gradient)
                parameter.grad = gradient


def _sum_of_rows(parameter: nn.Parameter) -> torch.Tensor:
    """The sum of sparse gradients (V, e) over processes: nccl sums dense tensors only, so it is dense on its way."""
    total = torch.zeros_like(parameter)
    held = torch.zeros(len(parameter), dtype=torch.int32, device=parameter.device)
    if parameter.grad is not None:
        gradient = parameter.grad.coalesce()
        rows = gradient.indices()[0]
        total[rows], held[rows] = gradient.values(), 1
    distributed.all_reduce(total)
    distributed.all_reduce(held)
    rows = held.nonzero()[:, 0]
    return torch.sparse_coo_tensor(rows[None], total[rows], total.shape, is_coalesced=True)


def processes() -> Processes:
    """Which process this is; the first call joins the group."""
    if not distributed.is_initialized():
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return Processes()
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        distributed.init_process_group(backend, timeout=PATIENCE)
    return Processes(distributed.get_rank(), distributed.get_world_size())


def own_device(name: str) -> torch.device:
    """The device of this process: `auto` is a GPU where there is one, and each process of a node takes its own GPU.

    Raises:
        InputError: `cuda` where there is none.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "compute.device",
            expected="a GPU that PyTorch can use",
            got="none",
            fix="Set `device: auto` or `cpu`, or run where there is a GPU, with a PyTorch for CUDA.",
        )
    if name != "cuda" or processes().count == 1:
        return torch.device(name)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    # before the first CUDA call: random numbers, autocast and nccl ask for the current device
    torch.cuda.set_device(device)
    return device
