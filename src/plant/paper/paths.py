"""Where results are. Paths are made of names, never of hashes.

results/<room>/<dataset>/<backbone>/<recipe>/seed<seed>/<file>. The rules and this room derive them from the config.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from plant.baselines.registry import baselines
from plant.ground.settings import NO_PRETRAINING, Experiment, Settings
from plant.paper.contents import report_figures, report_tables
from plant.paper.systems import find_roles, list_networks, system_of

SCORES = ("val.scores.parquet", "test.scores.parquet")
METRICS = ("metrics.json", "per_label.parquet")
TESTS = ("intervals", "wilcoxon", "randomization")
TABLE_FORMATS = ("csv", "md", "tex")
FIGURE_FORMATS = ("pdf", "png")
STUDY_TABLES = ("effects", "factors")
ATTENTION_PAGES = {"mass": (("mass",), "mass"), "against_people": (("likeness", "differences", "drops"), "people")}
"""Tables and figure of the pages on attention."""


@dataclass(frozen=True)
class Paths:
    """The paths of a config."""

    settings: Settings

    def experiment(self, name: str) -> Experiment:
        return self.settings.experiments[name]

    def of(self, room: str, experiment: str) -> str:
        """The folder of an experiment's dataset and backbone in a room."""
        chosen = self.experiment(experiment)
        return f"{self.settings.results}/{room}/{chosen.dataset}/{chosen.backbone}"

    # --- what jobs read -----------------------------------------------------------------------

    def scores(self, experiment: str, system: str, seeds: Sequence[int] | None = None) -> list[str]:
        """Score folders of a system: one for each seed of the experiment or of `seeds`; a single one for a baseline."""
        chosen = self.experiment(experiment)
        if system in baselines():
            return [f"{self.settings.results}/evaluation/{chosen.dataset}/words/{system}/seed0"]
        folder = f"{self.of('evaluation', experiment)}/{system_of(self.settings.variants[system])}"
        return [f"{folder}/seed{seed}" for seed in seeds or chosen.seeds]

    def systems(self, experiment: str) -> dict[str, list[str]]:
        """System -> its score folders."""
        chosen = self.experiment(experiment)
        return {system: self.scores(experiment, system) for system in (*chosen.variants, *chosen.baselines)}

    def score_files(self, experiment: str, *files: str) -> list[str]:
        """Files of all systems of an experiment."""
        return in_folders(self.systems(experiment).values(), files)

    def runs(self, experiment: str, stage: str) -> dict[str, list[str]]:
        """Training folders of an experiment: recipe (Stage 1) or variant (Stage 2) -> one folder for each seed.

        Variants that differ in Stage 3 alone share a network. It has the name of the first of them.
        """
        networks = list_networks(self.settings, self.experiment(experiment))
        variants = {name: self.settings.variants[name] for name in networks}
        folders = {name: variant.network for name, variant in variants.items()}
        if stage == "pretraining":
            recipes = {variant.pretraining for variant in variants.values()} - {NO_PRETRAINING}
            folders = {recipe: recipe for recipe in sorted(recipes)}
        base, seeds = self.of(stage, experiment), self.experiment(experiment).seeds
        return {name: [f"{base}/{folder}/seed{seed}" for seed in seeds] for name, folder in folders.items()}

    def attention(self, experiment: str) -> dict[str, str]:
        """System -> attention of the planted system and of its control (first seed); empty if no text may be shown."""
        chosen = self.experiment(experiment)
        if not self.settings.documents_shown(chosen.dataset):
            return {}
        roles = find_roles(self.settings, chosen)
        names = [system.name for system in (roles.planted, roles.control) if system is not None]
        base, first = self.of("evaluation", experiment), chosen.seeds[:1]  # baselines alone may have no seed
        networks = {name: self.settings.variants[name].network for name in names}
        return {name: f"{base}/{own}/seed{seed}/attention.parquet" for name, own in networks.items() for seed in first}

    def attention_tables(self, experiment: str, file: str) -> dict[str, list[str]]:
        """System -> a file on the attention of its network for each seed; systems that share a network come once."""
        base = self.of("evaluation", experiment)
        runs = self.runs(experiment, "finetuning")
        return {name: [f"{base}/{'/'.join(run.split('/')[-2:])}/{file}" for run in own] for name, own in runs.items()}

    def inputs(self, experiment: str) -> dict[str, Any]:
        """All that the tables, figures and report of an experiment read: the fields of `plant.paper.inputs.Inputs`."""
        corpus = f"{self.settings.results}/corpus/{self.experiment(experiment).dataset}"
        by_name: dict[str, dict[str, Any]] = {
            "evaluations": self.systems(experiment),
            "pretrainings": self.runs(experiment, "pretraining"),
            "finetunings": self.runs(experiment, "finetuning"),
            "attention": self.attention(experiment),
            "stages": {
                "corpus": [corpus],
                "relevance": [self.of("relevance", experiment)],
                "backbone": [self.of("model", experiment)],
            },
        }
        ordered = {kind: dict(sorted(paths.items())) for kind, paths in by_name.items()}
        return {"statistics": f"{self.settings.results}/statistics/{experiment}", "corpus": corpus, **ordered}

    def input_files(self, experiment: str) -> list[str]:
        """The files behind `inputs`, for the rules that wait for them."""
        chosen = self.experiment(experiment)
        runs = [*self.runs(experiment, "pretraining").values(), *self.runs(experiment, "finetuning").values()]
        weighed = [self.scores(experiment, "combined")] if chosen.report and "combined" in chosen.baselines else []
        return [
            *(f"{self.settings.results}/statistics/{experiment}/{test}.parquet" for test in TESTS if chosen.report),
            f"{self.settings.results}/corpus/{chosen.dataset}/statistics.json",
            *self.score_files(experiment, *METRICS),
            *in_folders(weighed, ["choices.json"]),
            *in_folders(runs, ["history.parquet", "provenance.json"]),
            *(self.attention(experiment).values() if chosen.report else ()),
        ]

    # --- what comes out -----------------------------------------------------------------------

    def tables(self, experiment: str) -> list[str]:
        return _written(f"{self.settings.results}/paper/{experiment}", tables=report_tables())

    def figures(self, experiment: str) -> list[str]:
        return _written(f"{self.settings.results}/paper/{experiment}", figures=report_figures())

    def report(self, experiment: str) -> str:
        return f"{self.settings.results}/paper/{experiment}/report.html"

    def outputs(self, experiment: str) -> list[str]:
        """Everything of an experiment: its tables, figures and report, or the metrics alone."""
        if not self.experiment(experiment).report:
            return self.score_files(experiment, *METRICS)
        return [*self.tables(experiment), *self.figures(experiment), self.report(experiment)]

    def item(self, name: str) -> list[str]:
        """A table or figure of the paper (`table_6`, `awd_figure_2`), or the table `cost`, in its formats."""
        kind = "figures" if "figure_" in name else "tables"
        return _written(f"{self.settings.results}/paper", **{kind: [name]})

    def attention_page(self, experiment: str, name: str) -> list[str]:
        """Tables, figure and page of `attention_<name>`, which is `mass` or `against_people`."""
        folder, (tables, figure) = f"{self.settings.results}/paper/{experiment}/attention_{name}", ATTENTION_PAGES[name]
        return [f"{folder}/page.md", *_written(folder, tables, [figure])]

    def study(self, name: str) -> list[str]:
        """Table of effects, table of factors, figure and page of a study."""
        folder = f"{self.settings.results}/paper/studies/{name}"
        return [*_written(folder, STUDY_TABLES, ["effects"]), f"{folder}/page.md"]


def in_folders(folders: Iterable[Iterable[str]], files: Sequence[str]) -> list[str]:
    """Each of the files in each folder of each group."""
    return [f"{folder}/{file}" for group in folders for folder in group for file in files]


def _written(folder: str, tables: Iterable[str] = (), figures: Iterable[str] = ()) -> list[str]:
    """Tables and figures of a folder in all their formats."""
    files = [f"{folder}/tables/{name}.{kind}" for name in tables for kind in TABLE_FORMATS]
    return files + [f"{folder}/figures/{name}.{kind}" for name in figures for kind in FIGURE_FORMATS]
