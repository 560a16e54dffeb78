"""Writes a simulation as the zip of CodiEsp (CLEF eHealth 2020), with its own split."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from plant.corpus.simulation import Simulation, simulate
from plant.corpus.synthetic.icd10 import icd10_codes
from plant.ground.files import atomic_path
from plant.ground.settings import Generate

ARCHIVE = "codiesp.zip"
ROOT = "final_dataset_v4_to_publish"
SPLITS = ("train", "train", "dev", "test")
"""Dealt in turn: half of the cases train, a quarter each dev and test, as in the published corpus."""
BACKGROUND = 2
"""Cases without codes, as the published zip has them."""
KINDS = {"D": "DIAGNOSTICO", "P": "PROCEDIMIENTO"}


def write(generate: Generate, out: Path) -> None:
    """Write codiesp.zip in `out`: texts in two languages, codes of diagnoses (D) and procedures (P), spans (X).

    The English text is the Spanish one with every word reversed. Codes are lower case with dots; every fifth
    procedure is cut to four characters, as some of the published ones are.
    """
    simulation = simulate(generate)
    with atomic_path(out / ARCHIVE) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, text in _members(simulation, _names(simulation, generate.seed)):
            member = zipfile.ZipInfo(f"{ROOT}/{name}")  # its time is 1980, whenever it is written
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, text)


def _names(simulation: Simulation, seed: int) -> dict[str, str]:
    """Code -> as CodiEsp prints it, distinct."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for place, (code, name) in enumerate(icd10_codes(simulation, seed).items()):
        if code not in simulation.procedures:
            name = name if len(name) == 3 else f"{name[:3]}.{name[3:]}"
        elif place % 5 == 0 and name[:4].lower() not in taken:
            name = name[:4]
        names[code] = name.lower()
        taken.add(names[code])
    return names


def _members(simulation: Simulation, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(path below the root, content) of every file of the zip."""
    rows: dict[str, dict[str, list[str]]] = {split: {kind: [] for kind in "DPX"} for split in SPLITS}
    texts = simulation.texts()
    for place, (admission, text) in enumerate(texts.items()):
        split, case = SPLITS[place % len(SPLITS)], f"S0000-{admission:017d}-1"
        for code in simulation.codes[admission]:
            kind = "P" if code in simulation.procedures else "D"
            rows[split][kind].append(f"{case}\t{names[code]}\n")
            rows[split]["X"] += [
                f"{case}\t{KINDS[kind]}\t{names[code]}\t{span}\n" for span in _spans(simulation, code, text)
            ]
        yield f"{split}/text_files/{case}.txt", text
        yield f"{split}/text_files_en/{case}.txt", _translated(text)
    for split, kinds in rows.items():
        for kind, lines in kinds.items():
            yield f"{split}/{split}{kind}.tsv", "".join(lines)
    for place, text in enumerate(list(texts.values())[:BACKGROUND]):
        yield f"background/text_files/S1000-{place:017d}-1.txt", text


def _spans(simulation: Simulation, code: str, text: str) -> list[str]:
    """`text<TAB>start end` of the first mention of a code, if it is mentioned."""
    for term in simulation.terms[code]:
        if found := re.search(rf"\b{re.escape(term)}\b", text, re.IGNORECASE):
            return [f"{found[0]}\t{found.start()} {found.end()}"]
    return []


def _translated(text: str) -> str:
    return re.sub(r"[A-Za-z]+", lambda word: word[0][::-1], text)
