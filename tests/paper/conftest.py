"""A made-up experiment in the shape of the real one: numbers by hand or by seed, no model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import TypeAdapter

from plant.ground.files import write_json
from plant.ground.seeds import generator
from plant.ground.settings import Experiment, Settings, load
from plant.paper.experiment.data import ExperimentData
from plant.paper.inputs import ATTENTION_COLUMNS, INTERVAL_COLUMNS, Inputs, runs_of
from plant.paper.paths import Paths

SYSTEMS = {  # name: (macro-F1, rare F1), fractions
    "bce": (0.091, 0.011), "focal": (0.128, 0.028), "plant": (0.369, 0.228), "shuffled": (0.210, 0.090),
    "tfidf_linear": (0.165, 0.019), "mig_log_odds": (0.575, 0.459), "combined": (0.590, 0.450),
}  # fmt: skip
METRICS = ("macro_auc", "micro_f1", "macro_f1_present", "rare_f1", "rare_ap", "map", "p@5", "ndcg@5")


@dataclass(frozen=True)
class Toy:
    """Paths and settings of one made-up experiment."""

    inputs: Inputs
    settings: Settings
    folder: Path

    @property
    def experiment(self) -> Experiment:
        return self.settings.experiments["toy"]

    @property
    def data(self) -> ExperimentData:
        """What the files hold now; each file is read once."""
        return ExperimentData(self.inputs, self.settings, "toy")

    def rewrite(self, table: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Replace a statistics table by a changed one."""
        path = self.inputs.statistics / f"{table}.parquet"
        change(pl.read_parquet(path)).write_parquet(path)

    def with_config(self, experiment: dict[str, Any] | None = None, **sections: dict[str, Any]) -> Toy:
        """The same files under a config with some keys changed: of the experiment, and of a section a keyword."""
        config = toy_config()
        config["experiments"]["toy"] |= experiment or {}
        for section, keys in sections.items():
            config.setdefault(section, {}).update(keys)
        return replace(self, settings=load(config))

    def with_experiment(self, **keys: Any) -> Toy:
        return self.with_config(keys)


def toy_config() -> dict[str, Any]:
    return {
        "datasets": {"toy": {"source": "mimic3", "generate": {}, "credentialed": False}},
        "backbones": {"tiny": {"kind": "random"}, "words": {"kind": "words"}},
        "pretrainings": {
            "mig": {"epochs": 4, "patience": None, "k": 100},
            "shuffled": {"epochs": 4, "patience": None, "k": 100, "measure": "shuffled"},
        },
        "finetunings": {
            "bce": {"epochs": 12, "patience": None, "gamma": 0, "epsilon": 0, "hard_negatives": None},
            "focal_long": {"epochs": 12, "patience": None}, "focal": {"epochs": 8, "patience": None},
        },
        "variants": {
            "bce": {"finetuning": "bce", "title": "random init, BCE"},
            "focal": {"finetuning": "focal_long", "title": "random init, focal + HNM"},
            "plant": {"pretraining": "mig", "finetuning": "focal", "title": "PLANT"},
            "shuffled": {"pretraining": "shuffled", "finetuning": "focal", "title": "PLANT, shuffled relevance"},
        },
        "paper": {"metrics": list(METRICS)},
        "experiments": {
            "toy": {
                "dataset": "toy", "backbone": "tiny", "variants": ["bce", "focal", "shuffled", "plant"],
                "baselines": ["tfidf_linear", "mig_log_odds", "combined"], "reference": "plant",
            }
        },
    }  # fmt: skip


@pytest.fixture(scope="session")
def assert_latex() -> Callable[[str, str], None]:
    """There is no LaTeX here. Environments nest, braces match, rows fill their columns, nothing is left unescaped."""

    def check(text: str, environment: str) -> None:
        opened: list[str] = []
        for word, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", text):
            if word == "begin":
                opened.append(name)
            else:
                assert opened.pop() == name
        assert opened == []
        bare = re.sub(r"\\[{}]", "", text)
        assert bare.count("{") == bare.count("}")
        tables = re.findall(rf"\\begin{{{environment}}}{{([lr]+)}}(.*?)\\end{{{environment}}}", text, re.DOTALL)
        assert tables
        for columns, body in tables:
            rows = [line for line in body.splitlines() if line.endswith(r" \\") and "\\caption" not in line]
            assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}
        assert text.isascii()
        shown = re.sub(r"\\label\{[^}]*\}", "", text)  # names of tables have underscores
        assert not re.search(r"(?<!\\)[_#%](?! needs)", shown)
        assert not re.search(r"\\\\\s*\[", text)  # would be read as the argument of the line's end

    return check


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """Files of all rooms under `tmp_path`, by their contracts."""
    settings = load(toy_config())
    paths = Paths(settings.model_copy(update={"results": str(tmp_path)})).inputs("toy")
    inputs = TypeAdapter(Inputs).validate_python(paths)
    write_statistics(inputs.statistics)
    write_json(inputs.corpus / "statistics.json", corpus_statistics())
    for name, seed, folder in runs_of(inputs.evaluations):
        write_evaluation(folder, name, seed)
    for stage, runs in (("1", inputs.pretrainings), ("2", inputs.finetunings)):
        for name, seed, folder in runs_of(runs):
            write_history(folder, name, seed, stage=stage)
    for name, path in inputs.attention.items():
        write_attention(path, planted=name == "plant")
    write_json(inputs.evaluations["combined"][0] / "choices.json", {"weight": 0.4})
    return Toy(inputs, settings, tmp_path)


def value_of(system: str, metric: str) -> float:
    macro, rare = SYSTEMS[system]
    return {"macro_f1_present": macro, "rare_f1": rare, "rare_ap": rare + 0.05}.get(metric, 0.4 + macro / 2)


def write_statistics(folder: Path) -> None:
    """Differences are exact; every interval is 0.02 wide on each side, except that `focal` on P@5 is undecided."""
    folder.mkdir(parents=True)
    intervals, wilcoxon, randomization = [], [], []
    for system in SYSTEMS:
        for metric in METRICS:
            value = value_of(system, metric)
            reference = system == "plant"
            gap = value - value_of("plant", metric)
            wide = 0.5 if (system, metric) == ("focal", "p@5") else 0.02
            around = (None,) * 5 if reference else (gap + 0.001, gap - wide, gap + wide, gap - wide, gap + wide)
            intervals.append((
                system, metric, value, 0.01 if system in ("bce", "focal", "plant", "shuffled") else None, 3,
                value - 0.02, value + 0.02, "plant", None if reference else gap, *around,
            ))  # fmt: skip
            if not reference:
                aggregate = metric not in ("p@5", "ndcg@5")
                wilcoxon.append((system, metric, 10.0, 300, 1e-9, "resample" if aggregate else "document", aggregate))
                randomization.append((system, metric, gap, 0.001, 1000))
    write(folder / "intervals.parquet", intervals, INTERVAL_COLUMNS)
    columns = ["system", "metric", "statistic", "n", "p", "level", "anti_conservative"]
    write(folder / "wilcoxon.parquet", wilcoxon, columns)
    write(folder / "randomization.parquet", randomization, ["system", "metric", "difference", "p", "resamples"])


def write(path: Path, rows: list[tuple[Any, ...]], columns: Sequence[str]) -> None:
    pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None).write_parquet(path)


def write_evaluation(folder: Path, system: str, seed: int) -> None:
    random = generator(seed, "toy", system)
    write_json(
        folder / "metrics.json",
        {metric: value_of(system, metric) + 0.01 * (seed - 1) * (system in ("bce", "focal", "plant", "shuffled"))
         for metric in METRICS} | {
            "threshold": {"value": -1.2 + seed / 10, "maximises": "macro_f1_present"}, "documents": 300,
            "calibration": None, "exactness": {"scores": "all", "lower_bounds": []},
        },
    )  # fmt: skip
    n_train = np.concatenate([np.arange(1, 10).repeat(6), [12, 20, 33, 48, 60, 75, 90, 120, 300], np.zeros(3, int)])
    level = np.clip(SYSTEMS[system][1] + 0.12 * np.log1p(n_train), 0, 0.95) * (n_train > 0)
    f1 = np.clip(random.beta(0.5 + 2 * level, 2.5 - 2 * level), 0, 1) * (random.random(len(level)) < 0.3 + level)
    pl.DataFrame(
        {"label": [f"{index:03}.{index % 10}" for index in range(len(n_train))], "n_train": n_train, "n_test": 2,
         "f1": f1, "ap": f1, "tp": 1, "fp": 1, "fn": 1}
    ).write_parquet(folder / "per_label.parquet")  # fmt: skip
    write_provenance(folder, seed, seconds=2.0)


def write_history(folder: Path, name: str, seed: int, *, stage: str) -> None:
    random = generator(seed, "history", name)
    epochs = np.arange(1, 5 if stage == "1" else 13)
    rise = 1 - np.exp(-epochs / 3)
    noise = random.normal(0, 0.01, len(epochs))
    table: dict[str, Any] = {"epoch": epochs, "loss": 1.5 - rise + noise}
    if stage == "1":
        best = 0.93 if name == "mig" else 0.81
        table |= {"ndcg_train": rise * best, "ndcg_val": 0.4 + (best - 0.4) * rise + noise,
                  "attention_mass": 0.5 * rise, "attention_entropy": 1 - 0.4 * rise}  # fmt: skip
    else:
        table |= {"macro_f1": SYSTEMS[name][0] * rise + noise.clip(0), "threshold": -1.0}
    folder.mkdir(parents=True)
    pl.DataFrame(table).write_parquet(folder / "history.parquet")
    write_provenance(folder, seed, seconds=20.0 if stage == "1" else 70.0)


def write_provenance(folder: Path, seed: int, *, seconds: float) -> None:
    write_json(
        folder / "provenance.json",
        {"seed": seed, "device": {"kind": "cpu", "name": "a processor"}, "platform": "Linux", "settings": {},
         "code": {"commit": "abc123", "modified": False}, "versions": {"torch": "2.13.0", "peft": None},
         "resources": {"wall_seconds": seconds + seed, "cpu_seconds": seconds, "peak_host_mb": 700.0 + seed,
                       "peak_device_mb": None}},
    )  # fmt: skip


def write_attention(path: Path, *, planted: bool) -> None:
    random = generator(0, "attention", int(planted))
    words = re.findall(r"\w+", "patient admitted with fever and productive cough for three days denies chest pain")
    rows = []
    for document in ("d1", "d2", "d3"):
        tokens = [" " + words[i] for i in generator(0, document).integers(0, len(words), 140)]
        score = random.normal(0, 0.4, len(tokens)) + (4.0 if planted else 0.5) * np.isin(tokens, [" fever", " cough"])
        weights = np.exp(score) / np.exp(score).sum()
        rows += [
            (document, "486", True, 0.83 if planted else 0.21, i, token, float(weight),
             0.9 if planted and token in (" fever", " cough", " chest") else None)
            for i, (token, weight) in enumerate(zip(tokens, weights, strict=True))
        ]  # fmt: skip
    write(path, rows, ATTENTION_COLUMNS)


def corpus_statistics() -> dict[str, Any]:
    split = {
        "documents": 1050,
        "labels_present": 150,
        "labels_per_document": {"mean": 6.012, "median": 6.0, "quartile_1": 4.0, "quartile_3": 8.0},
    }
    return {
        "labels": 150, "splits": dict.fromkeys(("train", "val", "test"), split),
        "labels_in_test_absent_from_train": 3, "dropped": {"no text": 2},
    }  # fmt: skip
