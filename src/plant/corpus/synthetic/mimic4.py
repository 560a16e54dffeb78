"""Writes a simulation as the raw files of MIMIC-IV v2.2 (note/ and hosp/, lower-case headers, gzip)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from plant.corpus.simulation import Simulation, simulate
from plant.corpus.synthetic.files import write_csv
from plant.corpus.synthetic.icd10 import icd10_codes
from plant.ground.settings import Generate

NOTES = ("note_id", "subject_id", "hadm_id", "note_type", "note_seq", "charttime", "storetime", "text")
DIAGNOSES = ("subject_id", "hadm_id", "seq_num", "icd_code", "icd_version")
PROCEDURES = ("subject_id", "hadm_id", "seq_num", "chartdate", "icd_code", "icd_version")
TITLES = ("icd_code", "icd_version", "long_title")
FIRST_PATIENT, FIRST_ADMISSION = 10_000_000, 20_000_000
OTHER_VERSION_EVERY = 40
"""One admission in so many has codes of the other ICD version, as half of the real ones do."""
PADDED_EVERY = 7
"""One code row in so many is padded with spaces to the width of the column (as in some exports)."""


def write(generate: Generate, out: Path, *, icd_version: int) -> None:
    """Write note/discharge and hosp/{diagnoses,procedures}_icd, hosp/d_icd_* as .csv.gz in `out`.

    Addenda are notes of their own (note_type AD); some notes have no admission.

    Args:
        generate: the simulation.
        out: the folder.
        icd_version: 9 or 10, of all but every 40th admission.
    """
    simulation = simulate(generate)
    names = {10: icd10_codes(simulation, generate.seed), 9: {code: code for code in simulation.terms}}
    versions = {
        admission: 19 - icd_version if place % OTHER_VERSION_EVERY == OTHER_VERSION_EVERY - 1 else icd_version
        for place, admission in enumerate(simulation.codes)
    }
    _write(out / "note" / "discharge.csv.gz", NOTES, _note_rows(simulation))
    for name, procedures in (("diagnoses", False), ("procedures", True)):
        rows = _code_rows(simulation, versions, names, procedures=procedures)
        _write(out / "hosp" / f"{name}_icd.csv.gz", PROCEDURES if procedures else DIAGNOSES, rows)
        _write(out / "hosp" / f"d_icd_{name}.csv.gz", TITLES, _title_rows(simulation, names, procedures=procedures))


def _note_rows(simulation: Simulation) -> Iterable[Sequence[object]]:
    sequence = 0
    for note in simulation.notes:
        if note.is_summary:
            sequence += 1
            patient = FIRST_PATIENT + note.patient
            kind = "AD" if note.description == "Addendum" else "DS"
            admission = "" if note.admission is None else FIRST_ADMISSION + note.admission
            time = f"21{sequence % 90 + 10}-01-01 00:00:00"
            yield f"{patient}-{kind}-{sequence}", patient, admission, kind, sequence, time, time, note.text


def _code_rows(
    simulation: Simulation, versions: dict[int, int], names: dict[int, dict[str, str]], *, procedures: bool
) -> Iterable[Sequence[object]]:
    row = 0
    for admission, codes in simulation.codes.items():
        own = [code for code in codes if (code in simulation.procedures) == procedures]
        version = versions[admission]
        for position, code in enumerate(own, start=1):
            row += 1
            name = names[version][code]
            date = ("2150-01-01",) if procedures else ()
            patient = FIRST_PATIENT + simulation.patients[admission]
            padded = f"{name:<7}" if row % PADDED_EVERY == 0 else name
            yield patient, FIRST_ADMISSION + admission, position, *date, padded, version


def _title_rows(
    simulation: Simulation, names: dict[int, dict[str, str]], *, procedures: bool
) -> Iterable[Sequence[object]]:
    for code in sorted(simulation.terms):
        if (code in simulation.procedures) == procedures:
            for version in (9, 10):
                yield names[version][code], version, f"Invented condition, {simulation.terms[code][0]}"


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    write_csv(path, header, rows, quoting=csv.QUOTE_MINIMAL)
