"""Checkpoints of a training run, as safetensors and JSON (never pickle). A checkpoint is replaced in one step."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from plant.ground.errors import InputError
from plant.ground.files import atomic_path, read_json, usual_mode, write_json

if TYPE_CHECKING:
    from torch import Tensor

STATE = "state.json"


def save_tensors(target: Path, tensors: Mapping[str, "Tensor"]) -> None:
    """Write tensors as one safetensors file, atomically. Tensors that share memory are written separately."""
    with atomic_path(target) as partial:
        save_file({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, partial)
        usual_mode(partial)


def load_tensors(source: Path) -> dict[str, "Tensor"]:
    """Read a safetensors file.

    Raises:
        InputError: it is missing or unreadable.
    """
    try:
        return load_file(source)
    except (OSError, SafetensorError) as error:
        raise InputError(
            str(source), expected="a safetensors file", got=str(error), fix="Delete it and run the rule again."
        ) from error


def save_checkpoint(folder: Path, *, state: Mapping[str, Any], tensors: Mapping[str, "Tensor"]) -> None:
    """Replace the checkpoint in `folder`. After a crash, the old or the new one is complete.

    The tensors are written to a file named by epoch and step. The JSON file that names it is replaced last.
    """
    name = f"{state['epoch']}-{state['step']}.safetensors"
    save_tensors(folder / name, tensors)
    write_json(folder / STATE, {**state, "tensors": name})
    for other in folder.glob("*.safetensors"):
        if other.name != name:
            other.unlink()


def load_checkpoint(folder: Path, *, digest: str) -> tuple[dict[str, Any], dict[str, "Tensor"]] | None:
    """The checkpoint in `folder`. None: there is none, or its `digest`, of all that a run depends on, is another one.

    Raises:
        InputError: a file is damaged. The error names it, and the command that makes it again.
    """
    if not (folder / STATE).is_file():
        return None
    try:
        state = read_json(folder / STATE)
        if state["digest"] != digest:
            return None
        source = folder / state["tensors"]
    except (InputError, KeyError, TypeError) as error:
        raise damaged(folder / STATE, error) from error
    try:
        return state, load_file(source)
    except (OSError, SafetensorError) as error:
        raise damaged(source, error) from error


def damaged(file: Path, error: Exception) -> InputError:
    """The error for a checkpoint file that cannot be used."""
    return InputError(
        str(file), expected="a whole checkpoint", got=f"a damaged one ({type(error).__name__}: {error})",
        fix=f"Delete the folder {file.parent} and run the same command again: the stage starts from its beginning.",
    )  # fmt: skip


def discard_checkpoint(folder: Path) -> None:
    """Remove a checkpoint, once the results of the run are written."""
    if folder.is_dir():
        shutil.rmtree(folder)
