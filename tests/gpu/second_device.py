"""A second device on a machine that has only a CPU: real numbers, and an error wherever code mixes devices.

A tensor that is moved there says that its device is `meta`, and holds its numbers in a CPU tensor that only this module
sees. So code takes its way for GPUs, and its results can be compared. What comes back to the host is written down.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

AWAY = torch.device("meta")
aten = torch.ops.aten


class Away(torch.Tensor):
    """A tensor on the second device."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Away:
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=AWAY,
        )  # fmt: skip
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func}: a tensor of the second device left its mode")


class SecondDevice(TorchDispatchMode):
    """While it is entered, `meta` is a device with real numbers.

    Attributes:
        read: how many numbers came back to the host, by kind: `item` (a single number) and `copy`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        away = [x for x in tensors if isinstance(x, Away)]
        here = [x for x in tensors if not isinstance(x, Away) and x.ndim]
        to = kwargs.get("device")
        goes = bool(away) if to is None else torch.device(to) == AWAY
        moves = func in (aten._to_copy.default, aten.copy_.default)
        assert moves or not (away and here), (
            f"{func}: tensors of two devices, {[tuple(x.shape) for x in here]} on the host"
        )
        if func is aten._local_scalar_dense.default and away:
            self.read["item"] += 1
        if func is aten._to_copy.default and away and not goes:
            self.read["copy"] += 1
        if func is aten.copy_.default:
            goes = isinstance(args[0], Away)
            self.read["copy"] += bool(away) and not goes
        if to is not None and goes:
            kwargs["device"] = torch.device("cpu")
        known = {id(x.inner): x for x in away}
        if torch.Tag.inplace_view in func.tags and away:
            # changes the shape of a tensor in place (squeeze_): inside and outside, and nothing more
            func(*tree_map(_inner, args), **kwargs)
            return return_and_correct_aliasing(func, args, kwargs, args[0])
        if func is aten.histc.default and not args[0].is_floating_point():  # of whole numbers: on GPUs alone
            return Away(torch.histc(args[0].inner.float(), *args[1:]).to(args[0].dtype))
        out = func(*tree_map(_inner, args), **tree_map(_inner, kwargs))

        def wrapped(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            return (
                known[id(x)] if id(x) in known else Away(x)
            )  # an operation in place returns the tensor that it changed

        return tree_map(wrapped, out) if goes else out


def _inner(x: Any) -> Any:
    return x.inner if isinstance(x, Away) else x
