"""The training loop that both stages share (appendix A): AdamW, cosine, accumulation, clipping, early stopping.

A run is a function of its seed: the order of batches depends on (seed, epoch), the learning rate on the number
of the update, and dropout on a generator state that checkpoints carry. So a resumed run is the uninterrupted one.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from plant.checkpoints import load_checkpoint, save_checkpoint
from plant.errors import InputError
from plant.settings import Optimisation

log = logging.getLogger("plant")


class TrainingDiverged(InputError):
    """The loss is not a number. The last checkpoint is kept."""


@dataclass(frozen=True)
class Group:
    """Parameters with one learning rate that train from one epoch on."""

    name: str
    parameters: list[nn.Parameter]
    learning_rate: float
    from_epoch: int = 1


@dataclass(frozen=True)
class Task:
    """What a stage brings to the loop.

    Attributes:
        name: for the log.
        groups: parameters and their learning rates; together all that is trained.
        batches: epoch (from 1) -> batches of document ids.
        loss: batch -> scalar, the mean over its documents.
        validate: () -> measures; `monitor` is one of them, higher is better.
        monitor: the measure that chooses the epoch.
    """

    name: str
    groups: list[Group]
    batches: Callable[[int], Sequence[np.ndarray]]
    loss: Callable[[np.ndarray, int], Tensor]
    validate: Callable[[], dict[str, float]]
    monitor: str


@dataclass
class Run:
    """State that a checkpoint carries beside the tensors."""

    epoch: int = 1
    step: int = 0
    updates: int = 0
    loss_sum: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    best: float = -math.inf
    best_epoch: int = 0


def fit(
    model: nn.Module,
    task: Task,
    settings: Optimisation,
    *,
    seed: int,
    checkpoint: Path,
    digest: str,
    fp16_scaler: bool = False,
) -> list[dict[str, float]]:
    """Train, keep the epoch with the best monitored value, and leave its weights in `model`.

    Args:
        model: parameters that require a gradient are trained and checkpointed.
        task: the stage.
        settings: epochs, patience, rates.
        seed: of the run.
        checkpoint: folder for the last state; a run that finds one of the same `digest` continues from it.
        digest: of everything that the run depends on.
        fp16_scaler: scale the loss (fp16 autocast on a GPU).

    Returns:
        One row an epoch: epoch, loss, learning_rate, and what `task.validate` returned.

    Raises:
        TrainingDiverged: the loss is NaN or infinite; names epoch and step.
    """
    device = next(model.parameters()).device
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    optimiser = _optimiser(task.groups, settings)
    scaler = torch.amp.GradScaler(device.type, enabled=fp16_scaler)
    torch.manual_seed(seed)
    run, best = Run(), {name: p.detach().clone() for name, p in trained.items()}
    found = load_checkpoint(checkpoint, digest=digest)
    if found is not None:
        run, best = _restore(found, trained, optimiser, scaler)
        log.info("%s: resumed after epoch %d", task.name, run.epoch - 1)
    updates = _updates_per_epoch(task, settings) * settings.epochs
    while run.epoch <= settings.epochs and not _out_of_patience(run, settings):
        for group in task.groups:
            for parameter in group.parameters:
                parameter.requires_grad_(run.epoch >= group.from_epoch and group.learning_rate > 0)
        model.train()
        _one_epoch(task, run, optimiser, scaler, settings, trained, updates)
        model.eval()
        row = {"epoch": run.epoch, "loss": run.loss_sum / run.step, **task.validate()}
        run.history.append(row)
        if row[task.monitor] > run.best:
            run.best, run.best_epoch = row[task.monitor], run.epoch
            best = {name: p.detach().clone() for name, p in trained.items()}
        shown = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if name != "epoch")
        log.info("%s epoch %d/%d  %s", task.name, run.epoch, settings.epochs, shown)
        run.epoch, run.step, run.loss_sum = run.epoch + 1, 0, 0.0
        _save(checkpoint, digest, run, trained, best, optimiser, scaler)
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(best[name])
    log.info("%s: epoch %d is the best, %s %.4f", task.name, run.best_epoch, task.monitor, run.best)
    return run.history


def _one_epoch(
    task: Task,
    run: Run,
    optimiser: torch.optim.AdamW,
    scaler: Any,
    settings: Optimisation,
    trained: dict[str, nn.Parameter],
    updates: int,
) -> None:
    batches = task.batches(run.epoch)
    bar = tqdm(batches, desc=f"{task.name} {run.epoch}/{settings.epochs}", delay=10, mininterval=10, leave=False)
    for number, batch in enumerate(bar, start=1):
        # the last, shorter group of an epoch is averaged over its own length
        last_group = len(batches) - len(batches) % settings.accumulation
        size = settings.accumulation if number <= last_group else len(batches) % settings.accumulation
        loss = task.loss(batch, run.epoch)
        value = loss.item()
        if not math.isfinite(value):
            raise TrainingDiverged(
                f"{task.name}, epoch {run.epoch}, step {number}",
                expected="a finite loss",
                got=str(value),
                fix="Lower the learning rates or use precision bf16 or fp32; the last checkpoint is kept.",
            )
        scaler.scale(loss / size).backward()
        run.step, run.loss_sum = number, run.loss_sum + value
        if number % settings.accumulation == 0 or number == len(batches):
            for entry in optimiser.param_groups:
                entry["lr"] = entry["rate"] * cosine(run.updates, updates)
            scaler.unscale_(optimiser)
            nn.utils.clip_grad_norm_(trained.values(), settings.clip)
            scaler.step(optimiser)
            scaler.update()
            optimiser.zero_grad(set_to_none=True)
            run.updates += 1


def cosine(update: int, updates: int) -> float:
    """Cosine annealing without restarts: 1 at the first update, towards 0 at the last (appendix A).

    >>> cosine(0, 100), round(cosine(50, 100), 6)
    (1.0, 0.5)
    """
    return 0.5 * (1 + math.cos(math.pi * min(update, updates) / max(1, updates)))


def _optimiser(groups: list[Group], settings: Optimisation) -> torch.optim.AdamW:
    entries = [{"params": group.parameters, "lr": group.learning_rate, "rate": group.learning_rate} for group in groups]
    return torch.optim.AdamW(entries, weight_decay=settings.weight_decay)


def _updates_per_epoch(task: Task, settings: Optimisation) -> int:
    return -(-len(task.batches(1)) // settings.accumulation)


def _out_of_patience(run: Run, settings: Optimisation) -> bool:
    return settings.patience is not None and run.epoch - 1 - run.best_epoch >= settings.patience and run.epoch > 1


def _save(
    folder: Path,
    digest: str,
    run: Run,
    trained: dict[str, nn.Parameter],
    best: dict[str, Tensor],
    optimiser: torch.optim.AdamW,
    scaler: Any,
) -> None:
    tensors: dict[str, Tensor] = {f"model/{name}": p for name, p in trained.items()}
    tensors |= {f"best/{name}": value for name, value in best.items()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser/{index}/{key}": value for key, value in state.items()}
    tensors["rng/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["rng/cuda"] = torch.cuda.get_rng_state()
    finite_best = None if math.isinf(run.best) else run.best
    state = {**vars(run), "best": finite_best, "digest": digest, "scaler": scaler.state_dict()}
    save_checkpoint(folder, state=state, tensors=tensors)


def _restore(
    found: tuple[dict[str, Any], dict[str, Tensor]],
    trained: dict[str, nn.Parameter],
    optimiser: torch.optim.AdamW,
    scaler: Any,
) -> tuple[Run, dict[str, Tensor]]:
    state, tensors = found
    device = next(iter(trained.values())).device
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(tensors[f"model/{name}"])
    slots: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimiser/"):
            _, index, key = name.split("/")
            slots.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": slots, "param_groups": optimiser.state_dict()["param_groups"]})
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(tensors["rng/cpu"])
    if "rng/cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["rng/cuda"])
    best = {name: tensors[f"best/{name}"].to(device) for name in trained}
    run = Run(**{name: state[name] for name in vars(Run())})
    run.best = -math.inf if run.best is None else run.best
    return run, best
