"""The training loop that both stages share (appendix A): AdamW, cosine, accumulation, clipping, early stopping.

A run is a function of its seed. The order of the batches depends on (seed, epoch), the learning rate on the number
of the update, and dropout on a generator state that checkpoints carry. So a resumed run has the bits of a whole one.

Several processes (`plant.model.parallel`) share every batch. Each takes its documents, `mine(len(batch))`. Losses,
weights and gradients are summed over the processes, which always hold the same weights. So N processes compute what
one computes, up to the order of additions and the dropout of each process.
"""

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from plant.ground.checkpoints import STATE, damaged, load_checkpoint, save_checkpoint
from plant.ground.errors import InputError, Interrupted
from plant.ground.progress import progress
from plant.ground.seeds import stream
from plant.ground.settings import Optimisation
from plant.model.parallel import processes
from plant.model.row_adamw import RowAdamW, clip_gradients

log = logging.getLogger("plant")
CHECKPOINT_SECONDS = 900  # a checkpoint is written at least this often, at the next update


class TrainingDiverged(InputError):
    """The loss or a measure is not a number. The last checkpoint is kept."""


@dataclass(frozen=True)
class Group:
    """Parameters with one learning rate that train from one epoch on."""

    name: str
    parameters: list[nn.Parameter]
    learning_rate: float
    from_epoch: int = 1


@dataclass(frozen=True)
class TrainingRun:
    """One training run."""

    seed: int
    checkpoint: Path  # folder for the last state, from which a stopped run goes on
    digest: str  # of everything that the run depends on; a checkpoint made under another one is not used


@dataclass(frozen=True)
class Task:
    """What a stage brings to the loop.

    Attributes:
        name: for the log.
        groups: together all that is trained.
        batches: epoch (from 1) -> batches of document ids.
        loss: batch, epoch -> (sum of the losses of this process's share of the batch, their weight). The sum is a
            scalar with gradient; the weight is 0.0 where the share is empty. The loss of a batch is the sum of all
            sums over the sum of all weights.
        validate: () -> measures. Those of process 0 count.
        monitor: the measure that chooses the epoch: higher is better.
    """

    name: str
    groups: list[Group]
    batches: Callable[[int], Sequence[np.ndarray]]
    loss: Callable[[np.ndarray, int], tuple[Tensor, float]]
    validate: Callable[[], dict[str, float]]
    monitor: str


@dataclass
class State:
    """Where a run stands: what a checkpoint carries beside the tensors."""

    epoch: int = 1
    step: int = 0
    updates: int = 0
    loss_sum: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    best: float | None = None
    best_epoch: int = 0


def fit(
    model: nn.Module, task: Task, settings: Optimisation, run: TrainingRun, *, fp16_scaler: bool = False
) -> list[dict[str, float]]:
    """Train, and leave the weights of the epoch with the best monitored value in `model`.

    A checkpoint is written after each epoch, every quarter of an hour within one, and when the process is asked to
    end (SIGTERM: preemption, a time limit; Ctrl-C). A later call with the same run goes on from there and ends with
    the bits of an uninterrupted one (on one device type, with as many processes). Process 0 writes; all read.

    The parameters that require a gradient are trained. With `fp16_scaler` the loss is scaled (fp16 autocast on a GPU).

    Returns:
        One row an epoch: epoch, loss, and what `task.validate` returned.

    Raises:
        TrainingDiverged: the loss or a measure is NaN or infinite; names epoch and step.
        Interrupted: a process was asked to end; the state is written, and all of them stop at the same update.
    """
    together = processes()
    # each process has its own dropout
    torch.manual_seed(run.seed if together.first else stream(run.seed, "process", together.rank))
    fitting = _Fitting(model, task, settings, run, fp16_scaler)
    fitting.resume()
    together.wait()  # nobody overwrites what another still reads
    with termination() as asked:
        while not fitting.finished:
            fitting.epoch(asked)
    fitting.keep_best()
    return fitting.state.history


class _Fitting:
    """One run: what is trained, and everything that changes while it is."""

    def __init__(
        self, model: nn.Module, task: Task, settings: Optimisation, run: TrainingRun, fp16_scaler: bool
    ) -> None:
        self.model, self.task, self.settings = model, task, settings
        self.together = processes()
        count = self.together.count
        self.checkpoint, self.digest = run.checkpoint, run.digest if count == 1 else f"{run.digest} x {count}"
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.best = self._copy()
        self.state = State()
        entries = [{"params": g.parameters, "lr": g.learning_rate, "rate": g.learning_rate} for g in task.groups]
        self.optimiser = RowAdamW(entries, weight_decay=settings.weight_decay)
        self.gpus = sorted({p.device for p in model.parameters() if p.device.type == "cuda"}, key=str)
        device = next(model.parameters()).device
        self.scaler = torch.amp.GradScaler(device.type, enabled=fp16_scaler)
        self.updates = -(-len(task.batches(1)) // settings.accumulation) * settings.epochs
        self.saved = time.monotonic()

    @property
    def finished(self) -> bool:
        """All epochs have run, or patience is out."""
        past, patience = self.state.epoch - 1, self.settings.patience
        waited = patience is not None and past > 0 and past - self.state.best_epoch >= patience
        return past >= self.settings.epochs or waited

    def epoch(self, asked: threading.Event) -> None:
        """Train the current epoch (or what is left of it), measure, and save."""
        state, task = self.state, self.task
        # groups whose epoch has not come, or whose rate is 0, are frozen
        for group in task.groups:
            for parameter in group.parameters:
                parameter.requires_grad_(state.epoch >= group.from_epoch and group.learning_rate > 0)
        self.model.train()
        self._steps(asked)
        self.model.eval()
        row = {"epoch": state.epoch, "loss": state.loss_sum / state.step, **self.together.of_first(task.validate())}
        self._check_finite(f"epoch {state.epoch}", "measures", row)
        state.history.append(row)
        if state.best is None or row[task.monitor] > state.best:
            state.best, state.best_epoch, self.best = row[task.monitor], state.epoch, self._copy()
        shown = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if name != "epoch")
        log.info("%s epoch %d/%d  %s", task.name, state.epoch, self.settings.epochs, shown)
        state.epoch, state.step, state.loss_sum = state.epoch + 1, 0, 0.0
        self.save()

    def _steps(self, asked: threading.Event) -> None:
        """Go through the batches that are left of the epoch; update after every `accumulation` of them."""
        state, task, accumulation = self.state, self.task, self.settings.accumulation
        batches = task.batches(state.epoch)
        whole = len(batches) - len(batches) % accumulation
        rest: Iterable[Any] = batches[state.step :]
        if self.together.first:
            name = f"{task.name} epoch {state.epoch}/{self.settings.epochs}"
            rest = progress(rest, name, total=len(batches), initial=state.step)
        for batch in rest:
            # the loss of the batch: sums and weights over all processes
            number = state.step + 1
            loss, weight = task.loss(batch, state.epoch)
            total, weights = self.together.sum(np.array([loss.item(), weight])).tolist()
            weights = weights or 1.0  # a batch without a single item has no loss
            value = total / weights
            self._check_finite(f"epoch {state.epoch}, step {number}", "loss", {"loss": value})
            # gradients of this process's share; the last, shorter group is averaged over its own length
            size = accumulation if number <= whole else len(batches) % accumulation
            scaled = self.scaler.scale(loss / weights / size)
            if scaled.requires_grad:  # an empty share has no gradient
                scaled.backward()
            state.step, state.loss_sum = number, state.loss_sum + value
            if number % accumulation == 0 or number == len(batches):
                self._update()
                self._save_if_due(asked)

    def _check_finite(self, where: str, what: str, values: dict[str, float]) -> None:
        wrong = [f"{name} = {value}" for name, value in values.items() if not math.isfinite(value)]
        if wrong:
            raise TrainingDiverged(
                f"{self.task.name}, {where}", expected=f"finite {what}", got=", ".join(wrong),
                fix="Lower the learning rates or use precision bf16 or fp32; the last checkpoint is kept.",
            )  # fmt: skip

    def _update(self) -> None:
        for entry in self.optimiser.param_groups:
            entry["lr"] = entry["rate"] * cosine(self.state.updates, self.updates)
        self.together.add_gradients(self.trained.values())  # still scaled: what overflows does so on all processes
        if any(parameter.grad is not None for parameter in self.trained.values()):
            self.scaler.unscale_(self.optimiser)
            clip_gradients(self.trained.values(), self.settings.clip)
            self.scaler.step(self.optimiser)
            self.scaler.update()
        self.optimiser.zero_grad(set_to_none=True)
        self.state.updates += 1

    def _save_if_due(self, asked: threading.Event) -> None:
        here = [asked.is_set(), self.together.first and time.monotonic() - self.saved > CHECKPOINT_SECONDS]
        stop, due = self.together.sum(np.array(here, dtype=np.int64)).tolist()
        if stop or due:
            self.save()
        if stop:
            raise Interrupted(f"{self.task.name}, epoch {self.state.epoch}, step {self.state.step}")

    def keep_best(self) -> None:
        """Put the weights of the best epoch into the model."""
        state, monitor = self.state, self.task.monitor
        with torch.no_grad():
            for name, parameter in self.trained.items():
                parameter.copy_(self.best[name])
        log.info("%s: epoch %d is the best, %s %.4f", self.task.name, state.best_epoch, monitor, state.best)

    def _copy(self) -> dict[str, Tensor]:
        return {name: p.detach().clone() for name, p in self.trained.items()}

    def save(self) -> None:
        """Write everything that `resume` needs; returns on all processes when it is written."""
        tensors: dict[str, Tensor] = self._generators()
        if self.together.first:
            tensors |= {f"model/{name}": p for name, p in self.trained.items()}
            tensors |= {f"best/{name}": value for name, value in self.best.items()}
            for index, slots in self.optimiser.state_dict()["state"].items():
                tensors |= {f"optimiser/{index}/{key}": value for key, value in slots.items()}
            columns = [*self.state.history[0]] if self.state.history else []  # JSON is written with its keys in order
            state = {**vars(self.state), "columns": columns, "digest": self.digest, "scaler": self.scaler.state_dict()}
            save_checkpoint(self.checkpoint, state=state, tensors=tensors)
        self.together.wait()
        self.saved = time.monotonic()

    def _generators(self) -> dict[str, Tensor]:
        """The states of the random generators, one row a process."""
        own = {"rng/cpu": torch.get_rng_state()}
        own |= {f"rng/cuda/{i}": torch.cuda.get_rng_state(device) for i, device in enumerate(self.gpus)}
        rows: dict[str, Tensor] = {}
        for name, state in own.items():
            table = np.zeros((self.together.count, len(state)), dtype=np.uint8)
            table[self.together.rank] = state.numpy()
            rows[name] = torch.from_numpy(self.together.sum(table))
        return rows

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one of this digest."""
        found = load_checkpoint(self.checkpoint, digest=self.digest)
        if found is None:
            return
        state, tensors = found
        try:
            self._restore(state, tensors)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            file = STATE if f"model/{next(iter(self.trained), '')}" in tensors else state["tensors"]
            raise damaged(self.checkpoint / file, error) from error
        log.info("%s: resumed in epoch %d after step %d", self.task.name, self.state.epoch, self.state.step)

    def _restore(self, state: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        # weights, and those of the best epoch
        with torch.no_grad():
            for name, parameter in self.trained.items():
                parameter.copy_(tensors[f"model/{name}"])
                self.best[name].copy_(tensors[f"best/{name}"])
        # optimiser and loss scale
        slots: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimiser/"):
                _, index, key = name.split("/")
                slots.setdefault(int(index), {})[key] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": slots, "param_groups": groups})
        self.scaler.load_state_dict(state["scaler"])
        # random generators of this process
        rank = self.together.rank
        torch.set_rng_state(tensors["rng/cpu"][rank].clone())  # a generator reads a view from its storage's start
        for i, device in enumerate(self.gpus):
            torch.cuda.set_rng_state(tensors[f"rng/cuda/{i}"][rank].clone(), device)
        # where the run stands
        self.state = State(**{name: state[name] for name in vars(self.state)})
        self.state.history = [{name: row[name] for name in state["columns"]} for row in self.state.history]


@contextmanager
def termination() -> Iterator[threading.Event]:
    """An event that SIGTERM and Ctrl-C (SIGINT) set, in place of ending the process at once.

    Only the main thread gets signals; in another one the event is never set.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def cosine(update: int, updates: int) -> float:
    """Cosine annealing without restarts: 1 at the first update, towards 0 at the last (appendix A).

    >>> cosine(0, 100), round(cosine(50, 100), 6)
    (1.0, 0.5)
    """
    return 0.5 * (1 + math.cos(math.pi * min(update, updates) / max(1, updates)))
