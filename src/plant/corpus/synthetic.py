"""Stand-ins for raw files, so that no run needs a download: a simulation, written as MIMIC-III, MIMIC-IV or PECOS.

The files have the names, headers, packing and separators of the published ones, and `plant.corpus.sources` reads
them as it reads those. Words and codes are invented: a number on a stand-in says nothing about the corpus that it is
named for.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plant.corpus.simulation import Simulation, simulate
from plant.ground import seeds, settings
from plant.ground.errors import InputError
from plant.ground.files import atomic_path
from plant.ground.settings import Generate

NOTES_III = (
    *("ROW_ID", "SUBJECT_ID", "HADM_ID", "CHARTDATE", "CHARTTIME", "STORETIME", "CATEGORY", "DESCRIPTION", "CGID"),
    *("ISERROR", "TEXT"),
)
CODES_III = ("ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE")
TITLES_III = ("ROW_ID", "ICD9_CODE", "SHORT_TITLE", "LONG_TITLE")
REPEAT_RATE = 0.05
"""How often an admission of MIMIC-III lists a code twice (as in the real tables)."""

NOTES_IV = ("note_id", "subject_id", "hadm_id", "note_type", "note_seq", "charttime", "storetime", "text")
DIAGNOSES_IV = ("subject_id", "hadm_id", "seq_num", "icd_code", "icd_version")
PROCEDURES_IV = ("subject_id", "hadm_id", "seq_num", "chartdate", "icd_code", "icd_version")
TITLES_IV = ("icd_code", "icd_version", "long_title")
FIRST_PATIENT, FIRST_ADMISSION = 10_000_000, 20_000_000
OTHER_VERSION_EVERY = 40
"""One admission in so many has codes of the other ICD version, as half of the real ones do."""
PADDED_EVERY = 7
"""One code row in so many is padded with spaces to the width of the column (as in some exports)."""

LETTERS = "ABCDEFGHJKLMNPQRSTVWXYZ"
"""Chapters of ICD-10-CM, without O (taken for 0), I (for 1) and the reserved U; also the letters of ICD-10-PCS."""
DIGITS = "0123456789"

XMC_SPLITS = ("train", "train", "test", "train", "train", "test", "train", "train", "test", "train")
"""Dealt in turn: three of ten documents test (EURLEX-4K a fifth, WIKI10-31K a third)."""

Table = Iterable[Sequence[object]]


def write_raw(dataset: settings.Dataset, out: Path) -> None:
    """Write the stand-in of a dataset with `generate` into the folder `out`. The same settings give the same bytes.

    Raises:
        InputError: the dataset has no `generate`.
    """
    match dataset:
        case settings.Mimic3(generate=Generate() as generate):
            _write_mimic3(generate, Path(out))
        case settings.Mimic4(generate=Generate() as generate):
            _write_mimic4(generate, Path(out), icd_version=dataset.icd_version)
        case settings.Xmc(generate=Generate() as generate):
            _write_pecos(simulate(generate), Path(out))
        case _:
            raise InputError(
                "synthetic", expected="a dataset with `generate`", got=f"source {dataset.source} without",
                fix="Add it to the config.",
            )  # fmt: skip


# --- MIMIC-III ------------------------------------------------------------------------------------


def _write_mimic3(generate: Generate, out: Path) -> None:
    """NOTEEVENTS, {DIAGNOSES,PROCEDURES}_ICD and D_ICD_* as .csv.gz, quoted, with upper-case headers.

    Some admissions carry a code twice, and some code rows have no code or no admission, as in the real tables.
    """
    simulation = simulate(generate)
    quoting = csv.QUOTE_NONNUMERIC
    _write_csv(out / "NOTEEVENTS.csv.gz", NOTES_III, _notes_iii(simulation), quoting)
    for name, procedures in (("DIAGNOSES", False), ("PROCEDURES", True)):
        random = seeds.generator(generate.seed, "corpus", "synthetic", "rows", int(procedures))
        _write_csv(out / f"{name}_ICD.csv.gz", CODES_III, _codes_iii(simulation, random, procedures), quoting)
        _write_csv(out / f"D_ICD_{name}.csv.gz", TITLES_III, _titles_iii(simulation, procedures), quoting)


def _notes_iii(simulation: Simulation) -> Table:
    for row, note in enumerate(simulation.notes, start=1):
        admission = "" if note.admission is None else note.admission
        date = f"21{row % 90 + 10}-01-01"
        yield row, note.patient, admission, date, "", "", note.category, note.description, "", "", note.text


def _codes_iii(simulation: Simulation, random: np.random.Generator, procedures: bool) -> Table:
    row = 0
    for admission, codes in simulation.codes.items():
        own = [code for code in codes if (code in simulation.procedures) == procedures]
        if own and random.random() < REPEAT_RATE:
            own.append(own[0])
        for position, code in enumerate(own, start=1):
            row += 1
            yield row, simulation.patients[admission], admission, position, code
    yield row + 1, 1, 100001, "", ""
    yield row + 2, 1, "", 1, ""


def _titles_iii(simulation: Simulation, procedures: bool) -> Table:
    for row, (code, term) in enumerate(_first_terms(simulation, procedures), start=1):
        yield row, code, term[:24], f"Invented condition, {term}"


def _first_terms(simulation: Simulation, procedures: bool) -> Iterator[tuple[str, str]]:
    """Code and first term of the procedures, or of the diagnoses, by code."""
    for code in sorted(simulation.terms):
        if (code in simulation.procedures) == procedures:
            yield code, simulation.terms[code][0]


# --- MIMIC-IV -------------------------------------------------------------------------------------


def _write_mimic4(generate: Generate, out: Path, *, icd_version: int) -> None:
    """note/discharge and hosp/{diagnoses,procedures}_icd, hosp/d_icd_* as .csv.gz, with lower-case headers.

    Addenda are notes of their own (note_type AD). Some notes have no admission. Every 40th admission has codes of the
    other ICD version than `icd_version`.
    """
    simulation = simulate(generate)
    names = {10: icd10_codes(simulation, generate.seed), 9: {code: code for code in simulation.terms}}
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


def _notes_iv(simulation: Simulation) -> Table:
    summaries = (note for note in simulation.notes if note.is_summary)
    for sequence, note in enumerate(summaries, start=1):
        patient = FIRST_PATIENT + note.patient
        kind = "AD" if note.description == "Addendum" else "DS"
        admission = "" if note.admission is None else FIRST_ADMISSION + note.admission
        time = f"21{sequence % 90 + 10}-01-01 00:00:00"
        yield f"{patient}-{kind}-{sequence}", patient, admission, kind, sequence, time, time, note.text


def _codes_iv(simulation: Simulation, names: dict[int, dict[str, str]], icd_version: int, procedures: bool) -> Table:
    row = 0
    for place, (admission, codes) in enumerate(simulation.codes.items()):
        own = [code for code in codes if (code in simulation.procedures) == procedures]
        version = 19 - icd_version if place % OTHER_VERSION_EVERY == OTHER_VERSION_EVERY - 1 else icd_version
        patient = FIRST_PATIENT + simulation.patients[admission]
        for position, code in enumerate(own, start=1):
            row += 1
            name = names[version][code]
            date = ("2150-01-01",) if procedures else ()
            padded = f"{name:<7}" if row % PADDED_EVERY == 0 else name
            yield patient, FIRST_ADMISSION + admission, position, *date, padded, version


def icd10_codes(simulation: Simulation, seed: int) -> dict[str, str]:
    """ICD-9 code of the simulation -> a distinct code without dots: ICD-10-CM (3 to 7 characters) or ICD-10-PCS (7)."""
    random = seeds.generator(seed, "corpus", "synthetic", "icd10")
    names: dict[str, str] = {}
    for code in sorted(simulation.terms):
        draw = _procedure if code in simulation.procedures else _diagnosis
        while (name := draw(random)) in names.values():
            pass
        names[code] = name
    return names


def _diagnosis(random: np.random.Generator) -> str:
    length = int(random.choice([3, 4, 4, 5, 5, 6, 7]))
    return _pick(LETTERS, random) + "".join(_pick(DIGITS, random) for _ in range(length - 1))


def _procedure(random: np.random.Generator) -> str:
    return _pick("0B", random) + "".join(_pick(DIGITS + LETTERS, random) for _ in range(5)) + "Z"


def _pick(characters: str, random: np.random.Generator) -> str:
    return characters[int(random.integers(len(characters)))]


# --- PECOS ----------------------------------------------------------------------------------------


def _write_pecos(simulation: Simulation, out: Path) -> None:
    """X.{trn,tst}.txt, Y.{trn,tst}.npz and output-items.txt: a label is called after the first term of its code."""
    from scipy.sparse import csr_matrix, save_npz

    codes = sorted(simulation.terms)
    numbers = {code: number for number, code in enumerate(codes)}
    documents = list(simulation.texts().items())
    for split, short in (("train", "trn"), ("test", "tst")):
        chosen = [one for place, one in enumerate(documents) if XMC_SPLITS[place % len(XMC_SPLITS)] == split]
        _write_lines(out / f"X.{short}.txt", [" ".join(text.split()) for _, text in chosen])
        rows = [sorted(numbers[code] for code in simulation.codes[admission]) for admission, _ in chosen]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        indices = np.array([number for row in rows for number in row], dtype=np.int32)
        data: Any = (np.ones(len(indices), dtype=np.float32), indices, indptr)
        with atomic_path(out / f"Y.{short}.npz") as partial, partial.open("wb") as file:
            save_npz(file, csr_matrix(data, shape=(len(rows), len(codes))))
    _write_lines(out / "output-items.txt", [simulation.terms[code][0] for code in codes])


# --- files ----------------------------------------------------------------------------------------


def _write_csv(path: Path, header: Sequence[str], rows: Table, quoting: Any) -> None:
    """A gzipped table without a name or a time inside, so that the same rows give the same bytes."""
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
