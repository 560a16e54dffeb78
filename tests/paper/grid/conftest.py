"""A made-up config in the shape of the paper's grid, and result folders written by their contracts: no model runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure

from plant.baselines.registry import baselines
from plant.ground.files import write_json
from plant.ground.seeds import generator
from plant.ground.settings import Settings, load
from plant.paper.figures.grid import grid_figure
from plant.paper.figures.style import look
from plant.paper.grid.results import Grid
from plant.paper.grid.tables import Sheet, build_sheet, to_frame
from plant.paper.inputs import INTERVAL_COLUMNS, Inputs
from plant.paper.values.transcription import load_values

VALUES = load_values()

METRICS = (
    "macro_auc", "micro_auc", "macro_f1_all", "micro_f1@micro", "p@1", "p@3", "p@5", "p@8", "p@15",
    "macro_precision_all", "micro_precision@micro", "macro_recall_all", "micro_recall@micro",
)  # fmt: skip
ABLATIONS = (
    "single_stage_bce", "single_stage_focal", "plant_bce", "plant_no_smoothing", "plant_no_hnm",
    "plant_term_frequency", "plant_mse",
)  # fmt: skip
BACKBONES = ("mistral_7b", "llama3_8b", "phi3_mini", "deepseek_v3")
EPOCHS = (1, 2, 3, 5, 7, 10)
SIZES = (50, 165, 1090, 7203)
WHOLE = 40_000
"""Training documents of a whole dataset of this made-up world."""
HALF = 0.004
"""Half of every interval, a fraction."""


def world_config() -> dict[str, Any]:
    raw = {"generate": {}, "credentialed": False}
    part = {"source": "subset", "of": "mimic3_full"}
    sizes = {
        f"{whole}_n{size}": {"source": "subset", "of": whole, "train_size": size}
        for whole in ("mimic3_full", "mimic4_full")
        for size in SIZES
    }
    epochs = {f"plant_{epoch}_epochs": {"pretraining": "mig", "finetuning": "focal", "pretraining_epoch": epoch}
              for epoch in EPOCHS}  # fmt: skip
    planted = {"pretraining": "mig", "finetuning": "focal"}
    variants = {
        "plant": {**planted, "title": "PLANT"},
        "single_stage": {"finetuning": "focal", "title": "single stage"},
        **{name: planted if name.startswith("plant") else {"finetuning": "focal"} for name in ABLATIONS},
        "equal_compute": {"finetuning": "focal_long", "title": "single stage, equal epochs"},
        **epochs,
    }
    return {
        "datasets": {
            "mimic3_full": {"source": "mimic3", **raw}, "mimic4_full": {"source": "mimic4", **raw},
            **dict.fromkeys(("mimic3_top50", "mimic3_rare50", "mimic3_few", "mimic3_few_full_test"), part), **sizes,
            "eurlex4k": {"source": "xmc", "path": "data/eurlex4k", "format": "pecos"},
            "wiki10_31k": {"source": "xmc", "path": "data/wiki10_31k", "format": "pecos"},
        },
        "backbones": {"words": {"kind": "words"}} | {name: {"kind": "random"} for name in BACKBONES},
        "pretrainings": {"mig": {"epochs": 10, "keep_epochs": True, "patience": None}},
        "finetunings": {"focal": {"patience": None}, "focal_long": {"epochs": 20, "patience": None}},
        "variants": variants,
        "statistics": {"metrics": list(METRICS)},
        "paper": {"main_backbone": "mistral_7b"},
        "experiments": world_experiments(epochs),
    }  # fmt: skip


def world_experiments(epochs: Iterable[str]) -> dict[str, Any]:
    """Every row of the paper has an experiment, except those of DeepSeek-V3 on mimic4_full."""
    pair: dict[str, Any] = {"variants": ["single_stage", "plant"], "reference": "plant", "seeds": [0, 1]}
    both = {
        **pair,
        "variants": ["single_stage", "plant", "equal_compute"],
        "baselines": ["tfidf_linear", "mig_log_odds", "combined"],
    }
    ablation = {**both, "variants": [*both["variants"], *ABLATIONS, *epochs]}
    sweep = {**pair, "report": False}
    found: dict[str, Any] = {}
    for dataset in ("mimic3_full", "mimic4_full"):
        for backbone in BACKBONES:
            if (dataset, backbone) == ("mimic4_full", "deepseek_v3"):
                continue
            full = (dataset, backbone) in {("mimic3_full", "mistral_7b"), ("mimic4_full", "llama3_8b")}
            found[f"{dataset}_{backbone}"] = {**(ablation if full else pair), "dataset": dataset, "backbone": backbone}
        for size in SIZES:
            found[f"{dataset}_n{size}"] = {**sweep, "dataset": f"{dataset}_n{size}", "backbone": "mistral_7b"}
    found["mimic4_full_mistral_7b"] |= both
    small = ("mimic3_top50", "mimic3_rare50", "mimic3_few", "mimic3_few_full_test", "eurlex4k", "wiki10_31k")
    for dataset in small:
        found[f"{dataset}_mistral_7b"] = {**both, "dataset": dataset, "backbone": "mistral_7b"}
    return found


@dataclass
class World:
    """A config and the paths of results that may or may not be there."""

    settings: Settings
    folder: Path
    paths: dict[str, Inputs] = field(init=False)
    sizes: tuple[int, ...] = (*SIZES, WHOLE)
    epochs: tuple[int, ...] = EPOCHS
    statistics: Callable[..., dict[str, Any]] = lambda *size: corpus_statistics(*size)

    def __post_init__(self) -> None:
        self.paths = {name: self._inputs(name) for name in self.settings.experiments}

    @property
    def grid(self) -> Grid:
        return Grid(self.settings, self.paths)

    def sheet(self, name: str) -> Sheet:
        return build_sheet(name, self.grid, VALUES)

    def frame(self, name: str) -> pl.DataFrame:
        """What the CSV of a table holds."""
        return to_frame(self.sheet(name))

    def draw(self, name: str) -> Figure:
        with look():
            return grid_figure(name, self.grid, VALUES)

    def change(self, **sections: dict[str, Any]) -> World:
        """The same folders under a config with some entries of sections changed."""
        config = self.settings.model_dump(mode="json")
        for section, entries in sections.items():
            for name, entry in entries.items():
                old = config[section].get(name)
                config[section][name] = old | entry if isinstance(old, dict) else entry
        return World(load(config), self.folder)

    def run(self, *experiments: str, level: Callable[[str, str], float] | None = None) -> World:
        """Write all results of some experiments (all of them, if none is named).

        Args:
            experiments: names.
            level: (system, metric) -> value of the seed mean, a fraction; seeds lie 0.001 to either side.
        """
        for name in experiments or self.settings.experiments:
            self._run(name, level or (lambda system, metric, name=name: made_up(name, system, metric)))
        return self

    def _inputs(self, name: str) -> Inputs:
        experiment = self.settings.experiments[name]
        runs = f"{experiment.dataset}/{experiment.backbone}"

        def folders(room: str, system: str) -> list[Path]:
            seeds = (0,) if system in baselines() else experiment.seeds
            return [self.folder / room / runs / system / f"seed{seed}" for seed in seeds]

        return Inputs(
            statistics=self.folder / "statistics" / name,
            corpus=self.folder / "corpus" / experiment.dataset,
            evaluations={
                each: folders("evaluation", each) for each in [*experiment.variants, *experiment.baselines]
            },
            pretrainings={"mig": folders("pretraining", "mig")},
        )  # fmt: skip

    def _run(self, name: str, level: Callable[[str, str], float]) -> None:
        experiment, paths = self.settings.experiments[name], self.paths[name]
        size = getattr(self.settings.datasets[experiment.dataset], "train_size", None) or WHOLE
        write_json(paths.corpus / "statistics.json", corpus_statistics(size))
        for system, folders in paths.evaluations.items():
            for seed, folder in enumerate(folders):
                shift = 0.002 * (seed - (len(folders) - 1) / 2)
                write_json(folder / "metrics.json", {metric: level(system, metric) + shift for metric in METRICS})
                write_labels(folder / "per_label.parquet", name, system, level(system, "macro_f1_all"))
        for seed, folder in enumerate(paths.pretrainings["mig"]):
            folder.mkdir(parents=True, exist_ok=True)
            ndcg = [0.97 - 0.32 * 0.72**epoch + 0.004 * seed for epoch in range(10)]
            pl.DataFrame({"epoch": range(1, 11), "ndcg_val": ndcg}).write_parquet(folder / "history.parquet")
        if experiment.report:
            write_intervals(paths.statistics, experiment.reference, level, paths)


def made_up(experiment: str, system: str, metric: str) -> float:
    """A level between 0.05 and 0.95 that depends on the names."""
    base = 0.45 + 0.2 * float(generator(0, "level", metric).random())
    return base + 0.02 * float(generator(0, experiment, system).normal())


def write_intervals(folder: Path, reference: str, level: Callable[[str, str], float], paths: Inputs) -> None:
    rows = []
    for system, folders in paths.evaluations.items():
        for metric in METRICS:
            value, gap = level(system, metric), level(system, metric) - level(reference, metric)
            own = (system, metric, value, 0.001, len(folders), value - HALF, value + HALF, reference)
            gaps = (None,) * 6 if system == reference else (gap, gap, gap - HALF, gap + HALF, gap - HALF, gap + HALF)
            rows.append((*own, *gaps))
    folder.mkdir(parents=True, exist_ok=True)
    table = pl.DataFrame(rows, schema=list(INTERVAL_COLUMNS), orient="row", infer_schema_length=None)
    table.write_parquet(folder / "intervals.parquet")


def write_labels(path: Path, experiment: str, system: str, level: float) -> None:
    """300 labels, the last of which has no test documents."""
    random = generator(0, "labels", experiment, system)
    n_train = [1 + 3 * index if "few" not in experiment else 1 + index % 5 for index in range(300)]
    f1 = random.beta(4 * level, 4 * (1 - level), size=300)
    pl.DataFrame(
        {"label": [f"{index:03}" for index in range(300)], "n_train": n_train, "n_test": [2] * 299 + [0], "f1": f1,
         "ap": f1}
    ).write_parquet(path)  # fmt: skip


def corpus_statistics(train: int = 700) -> dict[str, Any]:
    def split(documents: int, groups: int) -> dict[str, Any]:
        counts = {"documents": documents, "groups": groups, "labels_present": 40, "assignments": 6 * documents}
        labels = {"mean": 6.0, "quartile_1": 4.0, "median": 6.0, "quartile_3": 8.0, "max": 12.0}
        words = {"mean": 90.0, "quartile_1": 60.0, "median": 80.0, "quartile_3": 120.0, "max": 400.0}
        return counts | {"labels_per_document": labels, "words_per_document": words}

    return {
        "labels": 50, "splits": {"train": split(train, train), "val": split(100, 90), "test": split(200, 180)},
        "all": split(train + 300, train + 270), "split": {"name": "toy", "digest": "00"},
        "label_space": {"name": None, "digest": "11"}, "expected": {"train": [700, train], "labels": [50, 50]},
        "ceilings": {"p@1": 1.0, "p@3": 0.98, "p@5": 0.69, "p@8": 0.6, "p@15": 0.4},
    }  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The config, with nothing run."""
    return World(load(world_config()), tmp_path)


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The config with everything run; to be read only."""
    return World(load(world_config()), tmp_path_factory.mktemp("complete")).run()
