"""Random numbers: one generator for each purpose, and no global state."""

import hashlib

import numpy as np


def stream(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose, from the user's `seed`.

    It is a digest of the names. Two purposes never share a stream, and a new purpose does not change the others.

    >>> stream(0, "pretraining", "order") == stream(0, "pretraining", "order")
    True
    >>> stream(0, "pretraining", "order") == stream(0, "pretraining", "dropout")
    False
    """
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A NumPy generator on `stream(seed, *purpose)`."""
    return np.random.default_rng(stream(seed, *purpose))
