"""Writes a simulation in the formats of extreme classification: train and test, no validation split."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from plant.corpus.simulation import Simulation, simulate
from plant.corpus.synthetic.files import one_line, packed_text, write_lines
from plant.ground.files import write_with
from plant.ground.settings import Generate

SPLITS = ("train", "train", "test", "train", "train", "test", "train", "train", "test", "train")
"""Dealt in turn: three of ten documents test (EURLEX-4K a fifth, WIKI10-31K a third)."""
SHORT = {"train": "trn", "test": "tst"}

Rows = list[tuple[str, list[int]]]  # text, label numbers


def write(generate: Generate, out: Path, *, form: str) -> None:
    """Write the files of one format (`pecos`, `attentionxml`, `xmc_json` or `libmultilabel`) in `out`.

    A label is called after the first term of its code; where labels are separated by spaces, its own are `_`.
    """
    simulation = simulate(generate)
    codes = sorted(simulation.terms)
    numbers = {code: number for number, code in enumerate(codes)}
    splits: dict[str, Rows] = {"train": [], "test": []}
    for place, (admission, text) in enumerate(simulation.texts().items()):
        splits[SPLITS[place % len(SPLITS)]].append((text, [numbers[code] for code in simulation.codes[admission]]))
    writers: dict[str, Callable[[Path, dict[str, Rows], list[str]], None]] = {
        "pecos": _pecos,
        "attentionxml": _attentionxml,
        "xmc_json": _xmc_json,
        "libmultilabel": _libmultilabel,
    }
    writers[form](out, splits, _titles(simulation, codes))


def _titles(simulation: Simulation, codes: list[str]) -> list[str]:
    return [simulation.terms[code][0] for code in codes]


def _pecos(out: Path, splits: dict[str, Rows], titles: list[str]) -> None:
    import numpy as np
    from scipy.sparse import csr_matrix, save_npz

    for split, rows in splits.items():
        write_lines(out / f"X.{SHORT[split]}.txt", [one_line(text) for text, _ in rows])
        indices = np.array([number for _, own in rows for number in sorted(own)], dtype=np.int32)
        indptr = np.concatenate([[0], np.cumsum([len(own) for _, own in rows])])
        shape = (len(rows), len(titles))
        matrix = csr_matrix((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=shape)

        def save(path: Path, matrix: csr_matrix = matrix) -> None:
            with path.open("wb") as file:  # a name without .npz would get one
                save_npz(file, matrix)

        write_with(out / f"Y.{SHORT[split]}.npz", save)
    write_lines(out / "output-items.txt", titles)


def _attentionxml(out: Path, splits: dict[str, Rows], titles: list[str]) -> None:
    for split, rows in splits.items():
        write_lines(out / f"{split}_raw_texts.txt", [one_line(text) for text, _ in rows])
        write_lines(out / f"{split}_labels.txt", [_spaced(own, titles) for _, own in rows])


def _xmc_json(out: Path, splits: dict[str, Rows], titles: list[str]) -> None:
    for split, rows in splits.items():
        with packed_text(out / f"{SHORT[split]}.json.gz") as file:
            for place, (text, own) in enumerate(rows):
                title, _, content = text.partition("\n")
                entry = {"uid": f"{SHORT[split]}{place:06d}", "title": title, "content": one_line(content)}
                file.write(json.dumps(entry | {"target_ind": own, "target_rel": [1.0] * len(own)}) + "\n")
    with packed_text(out / "lbl.json.gz") as file:
        file.writelines(json.dumps({"uid": f"lbl{i:06d}", "title": title}) + "\n" for i, title in enumerate(titles))


def _libmultilabel(out: Path, splits: dict[str, Rows], titles: list[str]) -> None:
    for split, rows in splits.items():
        lines = [f"{i}\t{_spaced(own, titles)}\t{one_line(text)}" for i, (text, own) in enumerate(rows)]
        write_lines(out / f"{split}.txt", lines)


def _spaced(own: list[int], titles: list[str]) -> str:
    return " ".join(titles[number].replace(" ", "_") for number in own)
