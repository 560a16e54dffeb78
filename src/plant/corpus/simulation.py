"""Draws a corpus in the shape of MIMIC-III; `plant.corpus.synthetic` writes it in published raw forms.

Nothing clinical: words are invented syllables, codes are drawn from the patterns of ICD-9. Every code has its own
indicator terms, so this corpus FAVOURS relevance by presence; a result on it is no evidence for a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from plant.ground import seeds
from plant.ground.settings import Generate

SYNONYMS = (0.6, 0.3, 0.1)
"""How often the first, second and third term of a code stands for it."""
RARE_SHARE = 0.1
"""Share of the codes that occur on one or two admissions only."""
ADDENDUM_RATE = 0.15
READMISSION_RATE = 0.2
NEGATION = "nonu"
"""The invented word before a mention that says that the admission does not have the code."""
SUMMARY = "Discharge summary"
OTHER_WORD = "extraneo"
"""Stands in every note that is no discharge summary: it must never reach the corpus."""


@dataclass(frozen=True)
class Note:
    """One row of NOTEEVENTS."""

    patient: int
    admission: int | None
    category: str
    description: str
    text: str

    @property
    def is_summary(self) -> bool:
        return self.category == SUMMARY


@dataclass(frozen=True)
class Simulation:
    """What the generator knows.

    Attributes:
        notes: rows of NOTEEVENTS in file order.
        codes: admission -> its raw codes without dots, procedures apart from diagnoses by `procedures`.
        patients: admission -> patient.
        procedures: those of the codes that are procedures.
        terms: code -> its indicator terms, the most frequent first.
    """

    notes: tuple[Note, ...]
    codes: dict[int, tuple[str, ...]]
    patients: dict[int, int]
    procedures: frozenset[str]
    terms: dict[str, tuple[str, ...]]

    def texts(self) -> dict[int, str]:
        """Admission -> its discharge summaries, one after the other, for the forms that know no notes."""
        texts: dict[int, str] = {}
        for note in self.notes:
            if note.is_summary and note.admission is not None:
                texts[note.admission] = texts.get(note.admission, "") + note.text
        return texts


def simulate(generate: Generate) -> Simulation:
    """Draw a corpus. The same settings give the same corpus on every machine.

    Codes of an admission: 1 + Poisson(codes_per_admission - 1) without replacement from a Zipf law; a readmitted
    patient keeps about half of the former ones. The rarest tenth of the codes is put on one or two admissions each.
    A code shows one of its terms with probability `indicator_rate`; with probability `distractor_rate` a note
    mentions, after the negation word, a term of a code that the admission does not have.
    """
    random = seeds.generator(generate.seed, "corpus", "synthetic")
    words = _words(generate.words + 6 * generate.codes, random)
    background, indicators = words[: generate.words], words[generate.words :]
    diagnoses, procedures = _code_names(generate.codes, random)
    names = random.permutation(np.array(diagnoses + procedures)).tolist()
    terms = _terms(names, indicators, random)
    patients = _patients(generate.admissions, random)
    codes = _codes(names, patients, generate, random)
    writer = _Writer(generate, background, terms, random)
    notes = [
        note for admission, patient in patients.items() for note in writer.notes(admission, patient, codes[admission])
    ]
    return Simulation(tuple(notes), codes, patients, frozenset(procedures), terms)


def _words(number: int, random: np.random.Generator) -> list[str]:
    """Distinct invented words of two or three syllables, in random order."""
    syllables = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]
    pairs = ["".join(pair) for pair in product(syllables, syllables)]
    words = random.permutation(np.array(pairs)).tolist()
    while len(words) < number:
        extra = ["".join(random.choice(syllables, size=3)) + str(random.choice(list("nrslm"))) for _ in range(number)]
        words = list(dict.fromkeys([*words, *extra]))
    return words[:number]


def _code_names(number: int, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """ICD-9 patterns: about a quarter procedures; diagnoses with V, E and leading-zero codes among them."""
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
    found = dict.fromkeys(["0066"][:n_procedures])
    while len(found) < n_procedures:
        code = f"{random.integers(0, 100):02d}{random.integers(0, 100):02d}"
        if code not in diagnoses:
            found.setdefault(code, None)
    return list(diagnoses), list(found)


def _terms(names: Sequence[str], words: Sequence[str], random: np.random.Generator) -> dict[str, tuple[str, ...]]:
    """Three terms a code; some of two words. No word serves two codes."""
    terms = {}
    for i, name in enumerate(names):
        own = words[6 * i : 6 * i + 6]
        long = random.random(3) < 0.3
        terms[name] = tuple(f"{own[2 * j]} {own[2 * j + 1]}" if long[j] else own[2 * j] for j in range(3))
    return terms


def _patients(admissions: int, random: np.random.Generator) -> dict[int, int]:
    """Admission -> patient; some patients come back."""
    patients: dict[int, int] = {}
    known: list[int] = []
    for admission in range(100001, 100001 + admissions):
        if known and random.random() < READMISSION_RATE:
            patients[admission] = known[int(random.integers(len(known)))]
        else:
            known.append(len(known) + 1)
            patients[admission] = known[-1]
    return patients


def _codes(
    names: Sequence[str], patients: dict[int, int], generate: Generate, random: np.random.Generator
) -> dict[int, tuple[str, ...]]:
    n_rare = int(RARE_SHARE * len(names))
    common = len(names) - n_rare
    weights = (np.arange(common) + 4.0) ** -1.2
    weights /= weights.sum()
    codes: dict[int, list[str]] = {}
    last: dict[int, list[str]] = {}
    for admission, patient in patients.items():
        size = min(common, 1 + int(random.poisson(max(0.0, generate.codes_per_admission - 1))))
        kept = [code for code in last.get(patient, []) if random.random() < 0.5][:size]
        drawn = [names[i] for i in random.choice(common, size=size, replace=False, p=weights)]
        codes[admission] = list(dict.fromkeys([*kept, *drawn]))[:size]
        last[patient] = codes[admission]
    admissions = np.array(list(patients))
    for i, name in enumerate(names[common:]):
        for admission in random.choice(admissions, size=min(len(admissions), 1 + i % 2), replace=False):
            codes[int(admission)].append(name)
    return {admission: tuple(own) for admission, own in codes.items()}


class _Writer:
    """Writes the notes of an admission."""

    def __init__(
        self,
        generate: Generate,
        background: Sequence[str],
        terms: dict[str, tuple[str, ...]],
        random: np.random.Generator,
    ) -> None:
        self.generate, self.terms, self.random = generate, terms, random
        self.background = np.array(background)
        weights = 1.0 / (np.arange(len(background)) + 2.7)
        self.cumulated = np.cumsum(weights / weights.sum())
        self.names = list(terms)

    def notes(self, admission: int, patient: int, codes: Sequence[str]) -> list[Note]:
        """Nursing note, discharge report, perhaps an addendum, and now and then a note without admission."""
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
        """A note of another category: it names codes at random and must be left out."""
        named = self.names[int(self.random.integers(len(self.names)))]
        text = self._text(25, [OTHER_WORD, self._term(named)])
        return Note(patient, None if self.random.random() < 0.3 else admission, "Nursing", "Report", text)

    def _text(self, length: int, mentions: Sequence[str]) -> str:
        """Background words with the mentions put in at random places; lines, capitals, quotes, commas, numbers."""
        drawn = self.background[np.searchsorted(self.cumulated, self.random.random(length))]
        parts = drawn.astype(object).tolist()
        for mention in mentions:
            parts.insert(int(self.random.integers(len(parts) + 1)), mention)
        lines = []
        for start in range(0, len(parts), 12):
            line = parts[start : start + 12]
            line[0] = str(line[0]).capitalize()
            lines.append(" ".join(line) + ".")
        number = int(self.random.integers(1, 100))
        lines[0] = f'{lines[0]} "{parts[-1]}", {number} [**{number + 2100}-{number % 12 + 1}-{number % 28 + 1}**]'
        return "\n".join(lines) + "\n"
