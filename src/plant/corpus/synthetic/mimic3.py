"""Writes a simulation as the raw files of MIMIC-III v1.4 (upper-case headers, quoted text, gzip)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from plant.corpus.simulation import Simulation, simulate
from plant.corpus.synthetic.files import write_csv
from plant.ground import seeds
from plant.ground.settings import Generate

NOTE_COLUMNS = (
    "ROW_ID",
    "SUBJECT_ID",
    "HADM_ID",
    "CHARTDATE",
    "CHARTTIME",
    "STORETIME",
    "CATEGORY",
    "DESCRIPTION",
    "CGID",
    "ISERROR",
    "TEXT",
)
CODE_COLUMNS = ("ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE")
TITLE_COLUMNS = ("ROW_ID", "ICD9_CODE", "SHORT_TITLE", "LONG_TITLE")
REPEAT_RATE = 0.05
"""How often a code is listed twice for an admission (as in the real tables)."""


def write(generate: Generate, out: Path) -> None:
    """Write a synthetic MIMIC-III: NOTEEVENTS, {DIAGNOSES,PROCEDURES}_ICD and D_ICD_* as .csv.gz in `out`.

    The same settings give the same bytes. Some admissions carry a code twice, some code rows have no code or no
    admission, as in the real tables. The descriptions name the code's first term.
    """
    simulation = simulate(generate)
    _write(out / "NOTEEVENTS.csv.gz", NOTE_COLUMNS, _note_rows(simulation))
    for name, procedures in (("DIAGNOSES", False), ("PROCEDURES", True)):
        _write(out / f"{name}_ICD.csv.gz", CODE_COLUMNS, _code_rows(simulation, generate, procedures=procedures))
        _write(out / f"D_ICD_{name}.csv.gz", TITLE_COLUMNS, _title_rows(simulation, procedures=procedures))


def _note_rows(simulation: Simulation) -> Iterable[Sequence[object]]:
    for row, note in enumerate(simulation.notes, start=1):
        admission = "" if note.admission is None else note.admission
        yield (
            row,
            note.patient,
            admission,
            f"21{row % 90 + 10}-01-01",
            "",
            "",
            note.category,
            note.description,
            "",
            "",
            note.text,
        )


def _code_rows(simulation: Simulation, generate: Generate, *, procedures: bool) -> Iterable[Sequence[object]]:
    random = seeds.generator(generate.seed, "corpus", "synthetic", "rows", int(procedures))
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


def _title_rows(simulation: Simulation, *, procedures: bool) -> Iterable[Sequence[object]]:
    codes = sorted(code for code in simulation.terms if (code in simulation.procedures) == procedures)
    for row, code in enumerate(codes, start=1):
        term = simulation.terms[code][0]
        yield row, code, term[:24], f"Invented condition, {term}"


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    write_csv(path, header, rows, quoting=csv.QUOTE_NONNUMERIC)
