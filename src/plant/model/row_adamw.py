"""AdamW that changes the rows of an embedding that a batch holds, and no others.

An embedding of words has a sparse gradient: rows of words that the batch does not hold have none. For a row with the
gradient g in update t, AdamW (Loshchilov and Hutter 2019) is applied as to any weight,

    m = b1 m + (1 - b1) g    v = b2 v + (1 - b2) g^2
    w = (1 - lr decay) w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

and all other rows keep w, m and v. A step then costs what the batch holds, and not what the vocabulary holds. Where
every batch holds every row this is AdamW. (`torch.optim.SparseAdam` does the same without weight decay.)
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


class RowAdamW(torch.optim.AdamW):
    """AdamW for dense gradients; its row-wise form for sparse ones."""

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update. Sparse gradients are used up: they are None afterwards."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    self._step_rows(parameter, group)
                    parameter.grad = None
        return super().step(closure)

    @torch.no_grad()
    def _step_rows(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        gradient = parameter.grad.coalesce()  # type: ignore[union-attr]
        rows, g = gradient.indices()[0], gradient.values()  # (r), (r, e)
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        (b1, b2), lr, t = group["betas"], group["lr"], state["step"].item()
        m = state["exp_avg"][rows].lerp_(g, 1 - b1)
        v = state["exp_avg_sq"][rows].mul_(b2).addcmul_(g, g, value=1 - b2)
        denominator = (v.sqrt() / (1 - b2**t) ** 0.5).add_(group["eps"])
        w = parameter[rows].mul_(1 - lr * group["weight_decay"]).addcdiv_(m, denominator, value=-lr / (1 - b1**t))
        for table, changed in ((state["exp_avg"], m), (state["exp_avg_sq"], v), (parameter, w)):
            table.index_copy_(0, rows, changed)


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> None:
    """Scale all gradients so that their norm together is at most `limit`, sparse ones too.

    Without a sparse gradient this is `torch.nn.utils.clip_grad_norm_`.
    """
    trained = [parameter for parameter in parameters if parameter.grad is not None]
    if not any(parameter.grad.is_sparse for parameter in trained):  # type: ignore[union-attr]
        nn.utils.clip_grad_norm_(trained, limit)
        return
    parts: list[Tensor] = []
    for parameter in trained:
        if parameter.grad.is_sparse:  # type: ignore[union-attr]
            parameter.grad = parameter.grad.coalesce()  # type: ignore[union-attr]
            parts.append(parameter.grad.values())
        else:
            parts.append(parameter.grad)  # type: ignore[arg-type]
    factor = limit / (nn.utils.get_total_norm(parts) + 1e-6)
    for part in parts:
        part.mul_(factor.clamp(max=1.0).to(part.device))
