"""The folder of a saved model: what is in it, that it is whole, and how it is written.

config.json           Hugging Face form: model_type `plant`, settings of backbone and system, label names
model.safetensors     backbone with its adapter, label attention, head; absent if the system has no network
tokenizer.json, ...   of the backbone; vocabulary.json of a word network
static_attention.safetensors   relevance of tokens, if the system has static planting
words.json, words.safetensors   word scores and the weights of Stage 3, if the system reads words
thresholds.json       the threshold rules, tuned on validation
labels.json           label, description, number of training documents
README.md             the model card
manifest.json         format of the folder, version of the package, SHA-256 of every other file
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from plant.ground.errors import InputError
from plant.ground.files import atomic_path, read_json, usual_mode

FORMAT = 1
"""Raised when an older package can no longer read the folder."""
MANIFEST, CONFIG, WEIGHTS, CARD = "manifest.json", "config.json", "model.safetensors", "README.md"
THRESHOLDS, LABELS = "thresholds.json", "labels.json"
REQUIRED = (CONFIG, THRESHOLDS, LABELS, CARD)
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib")
AGAIN = "Save the model again, or copy the whole folder again."


def write_folder(out: Path, files: Mapping[str, bytes | Path]) -> None:
    """Write a model folder with its manifest, in one step: all of it or nothing.

    An older model in its place is replaced. A file is given by its content, or by a path that is moved into the
    folder.

    Raises:
        InputError: something else is in its place.
    """
    if out.exists() and not (out / MANIFEST).is_file() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(
            str(out), expected="a new or an empty folder, or that of an older model", got="something else",
            fix="Name another folder: this one would be replaced with all that it holds.",
        )  # fmt: skip
    with atomic_path(out) as partial:
        partial.mkdir()
        for name, content in files.items():
            if isinstance(content, Path):
                content.replace(partial / name)
            else:
                (partial / name).write_bytes(content)
            usual_mode(partial / name)
        digests = {name: _sha256(partial / name) for name in sorted(files)}
        manifest = {"format": FORMAT, "package": f"plant-xmtc {version('plant-xmtc')}", "files": digests}
        (partial / MANIFEST).write_bytes(as_json(manifest))


def as_json(value: Any) -> bytes:
    """JSON of a file in the folder."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def check_folder(folder: str | Path) -> Path:
    """The folder, if it is a whole model of this format.

    Raises:
        InputError: it is no folder, is incomplete, has another format, holds a pickle, or a file has changed.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(
            str(path), expected="a folder with a saved model", got="no folder there",
            fix="Name the folder that `snakemake model_<experiment>` wrote, such as results/serving/demo/best.",
        )  # fmt: skip
    pickles = sorted(file.name for file in path.rglob("*") if file.suffix.lower() in PICKLES)
    if pickles:
        raise InputError(
            str(path), expected="no pickle in a model folder (a pickle can run code when it is loaded)",
            got=pickles[0], fix="Delete it. Do not trust the folder if you do not know who made it.",
        )  # fmt: skip
    if not (path / MANIFEST).is_file():
        raise InputError(
            str(path), expected=f"{MANIFEST} of a model that this package saved", got="none",
            fix="Name the folder of a saved model. A training run is saved by `snakemake model_<experiment>`.",
        )  # fmt: skip
    read = read_json(path / MANIFEST)
    manifest = read if isinstance(read, dict) else {}
    if manifest.get("format") != FORMAT:
        raise InputError(
            str(path), expected=f"a model folder of format {FORMAT}", got=f"format {manifest.get('format')}",
            fix=f"It was saved by {manifest.get('package', 'an unknown package')}: install that version, or save the "
            "model again with this one.",
        )  # fmt: skip
    listed = manifest.get("files", {})
    missing = sorted({*REQUIRED, *listed} - {name for name in listed if (path / name).is_file()})
    if missing:
        raise InputError(str(path), expected=f"the file {missing[0]}", got=f"{len(missing)} missing", fix=AGAIN)
    changed = [name for name, digest in listed.items() if _sha256(path / name) != digest]
    if changed:
        raise InputError(
            str(path / changed[0]), expected="the file as it was saved", got="another SHA-256 than in the manifest",
            fix=AGAIN,
        )  # fmt: skip
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
