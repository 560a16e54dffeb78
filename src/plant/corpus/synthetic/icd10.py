"""Codes in the patterns of ICD-10 for the ICD-9 patterns of the simulation."""

from __future__ import annotations

import numpy as np

from plant.corpus.simulation import Simulation
from plant.ground import seeds

LETTERS = "ABCDEFGHJKLMNPQRSTVWXYZ"
"""Chapters of ICD-10-CM, without O (taken for 0), I (for 1) and the reserved U; also the letters of ICD-10-PCS."""
DIGITS = "0123456789"


def icd10_codes(simulation: Simulation, seed: int) -> dict[str, str]:
    """One distinct code without dots for every code: ICD-10-CM (3 to 7 characters) or ICD-10-PCS (7)."""
    random = seeds.generator(seed, "corpus", "synthetic", "icd10")
    names: dict[str, str] = {}
    taken: set[str] = set()
    for code in sorted(simulation.terms):
        while (name := _procedure(random) if code in simulation.procedures else _diagnosis(random)) in taken:
            pass
        taken.add(name)
        names[code] = name
    return names


def _diagnosis(random: np.random.Generator) -> str:
    length = int(random.choice([3, 4, 4, 5, 5, 6, 7]))
    head = _pick(LETTERS, random) + _pick(DIGITS, random) + _pick(DIGITS, random)
    return head + "".join(_pick(DIGITS, random) for _ in range(length - 3))


def _procedure(random: np.random.Generator) -> str:
    return _pick("0B", random) + "".join(_pick(DIGITS + LETTERS, random) for _ in range(5)) + "Z"


def _pick(characters: str, random: np.random.Generator) -> str:
    return characters[int(random.integers(len(characters)))]
