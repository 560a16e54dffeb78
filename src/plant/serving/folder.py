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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from plant.ground.errors import InputError
from plant.ground.files import atomic_path, read_json

FORMAT = 1
"""Raised when an older package can no longer read the folder."""
MANIFEST, CONFIG, WEIGHTS = "manifest.json", "config.json", "model.safetensors"
THRESHOLDS, LABELS = "thresholds.json", "labels.json"
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A model folder to be filled. It gets its manifest and its place in one step: all of it or nothing.

    Raises:
        InputError: something else than an older model is in its place.
    """
    if out.exists() and not (out / MANIFEST).is_file() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(
            str(out), expected="a new or an empty folder, or that of an older model", got="something else",
            fix="Name another folder: this one would be replaced with all that it holds.",
        )  # fmt: skip
    with atomic_path(out) as partial:
        partial.mkdir()
        yield partial
        digests = {file.name: _sha256(file) for file in sorted(partial.iterdir())}
        manifest = {"format": FORMAT, "package": f"plant-xmtc {version('plant-xmtc')}", "files": digests}
        (partial / MANIFEST).write_bytes(as_json(manifest))


def as_json(value: Any) -> bytes:
    """JSON of a file in the folder."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def check_folder(folder: str | Path) -> tuple[Path, Mapping[str, str]]:
    """The folder, if it is a whole model of this format, and the names of its files with their SHA-256.

    Raises:
        InputError: it is no folder of a model, has another format, holds a pickle, or a file is missing or has changed.
    """
    path = Path(folder)
    if not (path / MANIFEST).is_file():
        raise InputError(
            str(path), expected="a folder with a saved model", got=f"no {MANIFEST} in it" if path.is_dir() else
            "no folder there",
            fix="Name the folder that `snakemake model_<experiment>` wrote, such as results/serving/demo/best.",
        )  # fmt: skip
    pickles = sorted(file.name for file in path.rglob("*") if file.suffix.lower() in PICKLES)
    if pickles:
        raise InputError(
            str(path), expected="no pickle in a model folder (a pickle can run code when it is loaded)",
            got=pickles[0], fix="Delete it. Do not trust the folder if you do not know who made it.",
        )  # fmt: skip
    manifest = read_json(path / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise InputError(
            str(path), expected=f"a model folder of format {FORMAT}", got=f"format {manifest.get('format')}",
            fix=f"It was saved by {manifest.get('package', 'an unknown package')}: install that version, or save the "
            "model again with this one.",
        )  # fmt: skip
    listed: Mapping[str, str] = manifest["files"]
    for name, digest in listed.items():
        if not (path / name).is_file() or _sha256(path / name) != digest:
            raise InputError(
                str(path / name), expected="the file as it was saved", got="none, or one with another SHA-256",
                fix="Save the model again, or copy the whole folder again.",
            )  # fmt: skip
    return path, listed


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
