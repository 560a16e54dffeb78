"""Losses that compute their gradient themselves, without an array of pairs that lives until the backward pass."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class WithGradient(torch.autograd.Function):
    """Losses (...) of scores (..., t) by a function that gives their gradient (..., t) too; only that is kept."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, compute: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        losses, gradient = compute(scores.detach())
        ctx.save_for_backward(gradient)
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return outputs[0][..., None].to(gradient.dtype) * gradient, None
