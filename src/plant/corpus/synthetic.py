"""Writes synthetic raw files, so that a run needs no download: MIMIC-III, MIMIC-IV or PECOS.

The files have the names, headers, compression and separators of the published ones. `plant.corpus.sources` reads them
in the same way. Words and codes are invented, so numbers on these files say nothing about the real corpora.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plant.corpus.simulation import SUMMARY, Simulation, simulate
from plant.ground import seeds, settings
from plant.ground.files import atomic_path
from plant.ground.settings import Generate

NOTES_III = (
    *("ROW_ID", "SUBJECT_ID", "HADM_ID", "CHARTDATE", "CHARTTIME", "STORETIME", "CATEGORY", "DESCRIPTION", "CGID"),
    *("ISERROR", "TEXT"),
)
CODES_III = ("ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE")
TITLES_III = ("ROW_ID", "ICD9_CODE", "SHORT_TITLE", "LONG_TITLE")
REPEAT_RATE = 0.05
"""Fraction of MIMIC-III admissions that list a code twice, as some real ones do."""

NOTES_IV = ("note_id", "subject_id", "hadm_id", "note_type", "note_seq", "charttime", "storetime", "text")
DIAGNOSES_IV = ("subject_id", "hadm_id", "seq_num", "icd_code", "icd_version")
PROCEDURES_IV = ("subject_id", "hadm_id", "seq_num", "chartdate", "icd_code", "icd_version")
TITLES_IV = ("icd_code", "icd_version", "long_title")
FIRST_PATIENT, FIRST_ADMISSION = 10_000_000, 20_000_000
OTHER_VERSION_EVERY = 40
"""Every 40th admission of MIMIC-IV has codes of the other ICD version."""
PADDED_EVERY = 7
"""Every 7th code of MIMIC-IV is padded with spaces, as in some exports."""

LETTERS = "ABCDEFGHJKLMNPQRSTVWXYZ"
"""Letters of ICD-10 codes. O and I look like digits, and U is reserved."""
DIGITS = "0123456789"

TEST_PLACES = (2, 5, 8)
"""Of every ten documents in PECOS format, those at these places are test documents."""

Rows = Iterable[Sequence[object]]


def write_raw(dataset: settings.Dataset, out: Path) -> None:
    """Write the raw files of a dataset with `generate` into the folder `out`. The same settings give the same bytes."""
    match dataset:
        case settings.Mimic3(generate=Generate() as generate):
            _write_mimic3(simulate(generate), Path(out), seed=generate.seed)
        case settings.Mimic4(generate=Generate() as generate):
            _write_mimic4(simulate(generate), Path(out), seed=generate.seed, icd_version=dataset.icd_version)
        case settings.Xmc(generate=Generate() as generate):
            _write_pecos(simulate(generate), Path(out))


def _write_mimic3(simulation: Simulation, out: Path, *, seed: int) -> None:
    """NOTEEVENTS, {DIAGNOSES,PROCEDURES}_ICD and D_ICD_* as .csv.gz: quoted, with upper-case headers."""
    quoting = csv.QUOTE_NONNUMERIC
    _write_csv(out / "NOTEEVENTS.csv.gz", NOTES_III, _notes_iii(simulation), quoting)
    for name, procedures in (("DIAGNOSES", False), ("PROCEDURES", True)):
        random = seeds.generator(seed, "corpus", "synthetic", "rows", int(procedures))
        _write_csv(out / f"{name}_ICD.csv.gz", CODES_III, _codes_iii(simulation, random, procedures), quoting)
        titles = (
            (row, code, term[:24], f"Invented condition, {term}")
            for row, (code, term) in enumerate(_first_terms(simulation, procedures), start=1)
        )
        _write_csv(out / f"D_ICD_{name}.csv.gz", TITLES_III, titles, quoting)


def _notes_iii(simulation: Simulation) -> Rows:
    for row, note in enumerate(simulation.notes, start=1):
        admission, date = note.admission or "", f"21{row % 90 + 10}-01-01"
        yield row, note.patient, admission, date, "", "", note.category, note.description, "", "", note.text


def _codes_iii(simulation: Simulation, random: np.random.Generator, procedures: bool) -> Rows:
    """Some admissions list a code twice. The last two rows lack a code or an admission, as some real rows do."""
    row = 0
    for admission, own in _codes_of(simulation, procedures):
        if own and random.random() < REPEAT_RATE:
            own.append(own[0])
        for position, code in enumerate(own, start=1):
            row += 1
            yield row, simulation.patients[admission], admission, position, code
    yield row + 1, 1, 100001, "", ""
    yield row + 2, 1, "", 1, ""


def _codes_of(simulation: Simulation, procedures: bool) -> Iterator[tuple[int, list[str]]]:
    """Each admission and its procedures, or its diagnoses."""
    for admission, codes in simulation.codes.items():
        yield admission, [code for code in codes if (code in simulation.procedures) == procedures]


def _first_terms(simulation: Simulation, procedures: bool) -> list[tuple[str, str]]:
    """The procedures, or the diagnoses, with their first terms, sorted by code."""
    terms = sorted(simulation.terms.items())
    return [(code, own[0]) for code, own in terms if (code in simulation.procedures) == procedures]


def _write_mimic4(simulation: Simulation, out: Path, *, seed: int, icd_version: int) -> None:
    """note/discharge, hosp/{diagnoses,procedures}_icd and hosp/d_icd_* as .csv.gz, with lower-case headers."""
    names = {10: icd10_codes(simulation, seed), 9: {code: code for code in simulation.terms}}
    quoting = csv.QUOTE_MINIMAL
    _write_csv(out / "note" / "discharge.csv.gz", NOTES_IV, _notes_iv(simulation), quoting)
    for name, header, procedures in (("diagnoses", DIAGNOSES_IV, False), ("procedures", PROCEDURES_IV, True)):
        rows = _codes_iv(simulation, names, icd_version, procedures)
        _write_csv(out / "hosp" / f"{name}_icd.csv.gz", header, rows, quoting)
        titles = (
            (names[version][code], version, f"Invented condition, {term}")
            for code, term in _first_terms(simulation, procedures)
            for version in (9, 10)
        )
        _write_csv(out / "hosp" / f"d_icd_{name}.csv.gz", TITLES_IV, titles, quoting)


def _notes_iv(simulation: Simulation) -> Rows:
    """An addendum is a note with the type AD. Some notes have no admission."""
    summaries = (note for note in simulation.notes if note.category == SUMMARY)
    for sequence, note in enumerate(summaries, start=1):
        patient, kind = FIRST_PATIENT + note.patient, "AD" if note.description == "Addendum" else "DS"
        admission = "" if note.admission is None else FIRST_ADMISSION + note.admission
        time = f"21{sequence % 90 + 10}-01-01 00:00:00"
        yield f"{patient}-{kind}-{sequence}", patient, admission, kind, sequence, time, time, note.text


def _codes_iv(simulation: Simulation, names: dict[int, dict[str, str]], icd_version: int, procedures: bool) -> Rows:
    row = 0
    for place, (admission, own) in enumerate(_codes_of(simulation, procedures), start=1):
        version = icd_version if place % OTHER_VERSION_EVERY else 19 - icd_version
        patient = FIRST_PATIENT + simulation.patients[admission]
        for position, code in enumerate(own, start=1):
            row += 1
            name = names[version][code]
            date = ("2150-01-01",) if procedures else ()
            padded = name if row % PADDED_EVERY else f"{name:<7}"
            yield patient, FIRST_ADMISSION + admission, position, *date, padded, version


def icd10_codes(simulation: Simulation, seed: int) -> dict[str, str]:
    """ICD-9 code -> a code without dots in the form of ICD-10-CM (3 to 7 characters) or ICD-10-PCS (7). All differ."""
    random = seeds.generator(seed, "corpus", "synthetic", "icd10")
    names: dict[str, str] = {}
    for code in sorted(simulation.terms):
        while (name := _icd10_code(random, procedure=code in simulation.procedures)) in names.values():
            pass
        names[code] = name
    return names


def _icd10_code(random: np.random.Generator, *, procedure: bool) -> str:
    length = 7 if procedure else int(random.choice([3, 4, 4, 5, 5, 6, 7]))
    places = ["0B", *[DIGITS + LETTERS] * 5] if procedure else [LETTERS, *[DIGITS] * (length - 1)]
    return "".join(place[int(random.integers(len(place)))] for place in places) + ("Z" if procedure else "")


def _write_pecos(simulation: Simulation, out: Path) -> None:
    """X.{trn,tst}.txt, Y.{trn,tst}.npz and output-items.txt. The name of a label is the first term of its code."""
    from scipy.sparse import csr_matrix, save_npz

    codes = sorted(simulation.terms)
    numbers = {code: number for number, code in enumerate(codes)}
    texts: dict[int, str] = {}
    for note in simulation.notes:
        if note.category == SUMMARY and note.admission is not None:
            texts[note.admission] = texts.get(note.admission, "") + note.text
    for short in ("trn", "tst"):
        chosen = [one for place, one in enumerate(texts) if (place % 10 in TEST_PLACES) == (short == "tst")]
        _write_lines(out / f"X.{short}.txt", [" ".join(texts[admission].split()) for admission in chosen])
        rows = [sorted(numbers[code] for code in simulation.codes[admission]) for admission in chosen]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        indices = np.array([number for row in rows for number in row], dtype=np.int32)
        data: Any = (np.ones(len(indices), dtype=np.float32), indices, indptr)
        with atomic_path(out / f"Y.{short}.npz") as partial, partial.open("wb") as file:
            save_npz(file, csr_matrix(data, shape=(len(rows), len(codes))))
    _write_lines(out / "output-items.txt", [simulation.terms[code][0] for code in codes])


def _write_csv(path: Path, header: Sequence[str], rows: Rows, quoting: Any) -> None:
    """Write a table as gzip without a name or a time in its head, so that the same rows give the same bytes."""
    with (
        atomic_path(path) as partial,
        partial.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as text,
    ):
        csv.writer(text, quoting=quoting, lineterminator="\n").writerows([header, *rows])


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="") as text:
        text.writelines(f"{line}\n" for line in lines)
