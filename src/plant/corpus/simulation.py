"""Draws a synthetic corpus in the shape of MIMIC-III. `plant.corpus.synthetic` writes it as raw files.

Nothing in it is clinical: words are random syllables, and codes follow the patterns of ICD-9. Each code has indicator
terms of its own. This favours relevance measures that look at the presence of words, so a result on this corpus is no
evidence for a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from plant.ground import seeds
from plant.ground.settings import Generate

SYNONYMS = (0.6, 0.3, 0.1)
"""Probability of the first, second and third term of a code."""
RARE_SHARE = 0.1
"""Fraction of the codes that are on one or two admissions only."""
ADDENDUM_RATE = 0.15
READMISSION_RATE = 0.2
NEGATION = "nonu"
"""The word before a term whose code the admission does not have."""
SUMMARY = "Discharge summary"
OTHER_WORD = "extraneo"
"""A word of every note that is not a discharge summary. It must never reach the corpus."""


@dataclass(frozen=True)
class Note:
    """One row of NOTEEVENTS."""

    patient: int
    admission: int | None
    category: str
    description: str
    text: str


@dataclass(frozen=True)
class Simulation:
    """The corpus as it was drawn.

    Attributes:
        notes: rows of NOTEEVENTS, in file order.
        codes: admission -> its codes, without dots.
        patients: admission -> patient.
        procedures: the codes that are procedures. All others are diagnoses.
        terms: code -> its three indicator terms, the most frequent one first.
    """

    notes: tuple[Note, ...]
    codes: dict[int, tuple[str, ...]]
    patients: dict[int, int]
    procedures: frozenset[str]
    terms: dict[str, tuple[str, ...]]


def simulate(generate: Generate) -> Simulation:
    """Draw a corpus. The same settings give the same corpus on every machine.

    An admission has 1 + Poisson(codes_per_admission - 1) codes, drawn without replacement from a Zipf distribution. A
    patient who returns keeps about half of the earlier codes. The rarest tenth of the codes is on one or two admissions
    each. A code shows one of its terms with probability `indicator_rate`. With probability `distractor_rate` a note
    mentions, in negated form, a term of a code that the admission does not have.
    """
    random = seeds.generator(generate.seed, "corpus", "synthetic")
    words = _words(generate.words + 6 * generate.codes, random)
    background, indicators = words[: generate.words], words[generate.words :]
    diagnoses, procedures = _code_names(generate.codes, random)
    names = random.permutation(np.array(diagnoses + procedures)).tolist()
    terms = {name: _terms(indicators[6 * i : 6 * i + 6], random) for i, name in enumerate(names)}
    patients = _patients(generate.admissions, random)
    codes = _codes(names, patients, generate, random)
    writer = _Writer(generate, background, terms, random)
    notes = [note for admission in patients for note in writer.notes(admission, patients[admission], codes[admission])]
    return Simulation(tuple(notes), codes, patients, frozenset(procedures), terms)


def _words(number: int, random: np.random.Generator) -> list[str]:
    """Different words of two or three syllables, in random order."""
    syllables = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]
    words = random.permutation(np.array([a + b for a, b in product(syllables, syllables)])).tolist()
    while len(words) < number:
        extra = ["".join(random.choice(syllables, size=3)) + str(random.choice(list("nrslm"))) for _ in range(number)]
        words = list(dict.fromkeys([*words, *extra]))
    return words[:number]


def _code_names(number: int, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """Diagnoses and procedures (about a quarter). Some start with V, E or 0, as in ICD-9."""
    n_procedures = number // 4
    patterns = [
        lambda: f"{random.integers(1, 1000):03d}{random.integers(0, 100):02d}",
        lambda: f"{random.integers(1, 140):03d}{random.integers(0, 10)}",
        lambda: f"{random.integers(1, 1000):03d}",
        lambda: f"V{random.integers(1, 87):02d}{random.integers(0, 100):02d}",
        lambda: f"E{random.integers(800, 1000)}{random.integers(0, 10)}",
    ]
    diagnoses = dict.fromkeys(["0389", "042"][: number - n_procedures])
    turn = 0
    while len(diagnoses) < number - n_procedures:
        diagnoses.setdefault(patterns[(0, 0, 1, 0, 2, 3, 4)[turn % 7]](), None)
        turn += 1
    procedures = dict.fromkeys(["0066"][:n_procedures])
    while len(procedures) < n_procedures:
        code = f"{random.integers(0, 100):02d}{random.integers(0, 100):02d}"
        if code not in diagnoses:
            procedures.setdefault(code, None)
    return list(diagnoses), list(procedures)


def _terms(words: Sequence[str], random: np.random.Generator) -> tuple[str, ...]:
    """Three terms from the six words of a code. Some terms have two words."""
    long = random.random(3) < 0.3
    return tuple(f"{words[2 * j]} {words[2 * j + 1]}" if long[j] else words[2 * j] for j in range(3))


def _patients(admissions: int, random: np.random.Generator) -> dict[int, int]:
    """Admission -> patient."""
    patients: dict[int, int] = {}
    known = 0
    for admission in range(100001, 100001 + admissions):
        if known and random.random() < READMISSION_RATE:
            patients[admission] = 1 + int(random.integers(known))
        else:
            patients[admission] = known = known + 1
    return patients


def _codes(
    names: Sequence[str], patients: dict[int, int], generate: Generate, random: np.random.Generator
) -> dict[int, tuple[str, ...]]:
    """Admission -> its codes."""
    common = len(names) - int(RARE_SHARE * len(names))
    weights = (np.arange(common) + 4.0) ** -1.2
    weights /= weights.sum()
    codes: dict[int, list[str]] = {}
    last: dict[int, list[str]] = {}  # patient -> codes of the last admission
    for admission, patient in patients.items():
        size = min(common, 1 + int(random.poisson(max(0.0, generate.codes_per_admission - 1))))
        kept = [code for code in last.get(patient, []) if random.random() < 0.5][:size]
        drawn = [names[i] for i in random.choice(common, size=size, replace=False, p=weights)]
        codes[admission] = last[patient] = list(dict.fromkeys([*kept, *drawn]))[:size]
    for i, name in enumerate(names[common:]):
        for admission in random.choice(list(patients), size=min(len(patients), 1 + i % 2), replace=False):
            codes[int(admission)].append(name)
    return {admission: tuple(own) for admission, own in codes.items()}


class _Writer:
    """Writes the notes of an admission."""

    def __init__(
        self, generate: Generate, background: list[str], terms: dict[str, tuple[str, ...]], random: np.random.Generator
    ) -> None:
        self.generate, self.terms, self.random = generate, terms, random
        self.background, self.names = np.array(background), list(terms)
        weights = 1.0 / (np.arange(len(background)) + 2.7)
        self.cumulated = np.cumsum(weights / weights.sum())

    def notes(self, admission: int, patient: int, codes: Sequence[str]) -> list[Note]:
        """A nursing note, the discharge report, sometimes an addendum, and rarely a note without an admission."""
        mentions = [self._term(code) for code in codes if self.random.random() < self.generate.indicator_rate]
        if self.random.random() < self.generate.distractor_rate:
            absent = [name for name in self.names if name not in codes]
            if absent:
                mentions.append(f"{NEGATION} {self._term(absent[int(self.random.integers(len(absent)))])}")
        length = max(10, round(self.generate.words_per_note * float(self.random.lognormal(-0.08, 0.4))))
        notes, addendum = [self._other(patient, admission)], []
        if self.random.random() < ADDENDUM_RATE:
            late = [mentions.pop()] if len(mentions) > 1 else []
            addendum = [Note(patient, admission, SUMMARY, "Addendum", self._text(max(5, length // 6), late))]
        notes += [Note(patient, admission, SUMMARY, "Report", self._text(length, mentions)), *addendum]
        if self.random.random() < 0.02:
            notes.append(Note(patient, None, SUMMARY, "Report", self._text(20, [])))
        return notes

    def _term(self, code: str) -> str:
        return self.terms[code][int(self.random.choice(3, p=SYNONYMS))]

    def _other(self, patient: int, admission: int) -> Note:
        """A note of another category. It names a random code, and it is not part of the corpus."""
        code = self.names[int(self.random.integers(len(self.names)))]
        text = self._text(25, [OTHER_WORD, self._term(code)])
        return Note(patient, None if self.random.random() < 0.3 else admission, "Nursing", "Report", text)

    def _text(self, length: int, mentions: Sequence[str]) -> str:
        """Background words with the mentions at random places, in lines with capitals, quotes, commas and numbers."""
        words = self.background[np.searchsorted(self.cumulated, self.random.random(length))].tolist()
        for mention in mentions:
            words.insert(int(self.random.integers(len(words) + 1)), mention)
        lines = [" ".join([words[i].capitalize(), *words[i + 1 : i + 12]]) + "." for i in range(0, len(words), 12)]
        number = int(self.random.integers(1, 100))
        lines[0] += f' "{words[-1]}", {number} [**{number + 2100}-{number % 12 + 1}-{number % 28 + 1}**]'
        return "\n".join(lines) + "\n"
