"""Equal budgets: how good each network was on validation after the passes, and after the seconds, of the reference."""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from plant.paper.contents import ReportTable
from plant.paper.costs import STAGE1, STAGE2, TRAINING
from plant.paper.experiment.data import ExperimentData
from plant.paper.inputs import read_histories
from plant.paper.render import Table, row_of
from plant.paper.wording import fixed, percent, seconds

_BUDGETS = ("passes", "seconds")


def training_curves(data: ExperimentData) -> pl.DataFrame:
    """Macro-F1 on validation of every network after every epoch of Stage 2.

    Returns:
        name, seed, epoch, `macro_f1` (0 to 1), and what was spent until then: `passes` over the training documents and
        CPU `seconds`, both with the epochs of Stage 1 that the network starts from. A run's epochs are taken as equally
        long.
    """
    spent: dict[tuple[str, str, int], float] = defaultdict(float)
    before: dict[tuple[str, int], int] = {}
    for cost in data.costs:
        if cost["stage"] in TRAINING:
            spent[cost["stage"], cost["name"], cost["seed"]] += cost["cpu_seconds"]
        if cost["stage"] == STAGE1:
            before[cost["name"], cost["seed"]] = cost["epochs"]
    curves = read_histories(data.inputs.finetunings, ("macro_f1",))
    last = {key: run.height for key, run in curves.group_by("name", "seed")}
    passes, times = [], []
    for name, seed, epoch in curves.select("name", "seed", "epoch").iter_rows():
        stage1 = str(data.networks[name].pretraining)
        ran = before.get((stage1, seed), 0)
        read = data.settings.variants[name].pretraining_epoch or ran  # a variant may start from an earlier epoch
        passes.append(read + epoch)
        first = spent[STAGE1, stage1, seed] * (read / ran if ran else 0.0)
        times.append(first + spent[STAGE2, name, seed] * epoch / last[name, seed])
    return curves.with_columns(
        pl.Series("passes", passes, dtype=pl.Int64), pl.Series("seconds", times, dtype=pl.Float64)
    )


def budget_table(data: ExperimentData) -> Table:
    """The best macro-F1 on validation: of all passes, within the reference's passes, within its seconds.

    Only this table compares networks before they are trained to the end. It reads validation, because weights of other
    epochs are not kept.
    """
    curves = training_curves(data)
    best = curves.sort("macro_f1", "epoch", descending=[True, False]).unique(["name", "seed"], keep="first")
    budgets = best.filter(name=_network_of_reference(data)).select("seed", pl.col(_BUDGETS).name.prefix("reference_"))
    values = best.select("name", "seed", pl.col("macro_f1").alias("best"), *_BUDGETS)
    for budget in _BUDGETS:
        within = curves.join(budgets, on="seed").filter(pl.col(budget) <= pl.col(f"reference_{budget}"))
        own = within.group_by("name", "seed").agg(pl.col("macro_f1").max().alias(f"best_in_equal_{budget}"))
        values = values.join(own, on=["name", "seed"], how="left")
    values = values.sort("name", "seed")
    rows = []
    for name, network in data.networks.items():
        mean = values.filter(name=name).select(pl.col(pl.Float64, pl.Int64).mean()).row(0, named=True)
        shares = (percent(mean[f"best_in_equal_{budget}"]) for budget in _BUDGETS)
        spent = fixed(mean["passes"], 1), seconds(mean["seconds"])
        rows.append(row_of(network.title, percent(mean["best"]), *spent, *shares))
    return Table(
        columns=(
            "System", "Best of all epochs", "Passes until then", "CPU time until then",
            "Best within the reference's passes", "Best within its CPU time",
        ),
        rows=tuple(rows),
        data=values,
    )  # fmt: skip


BUDGETS = ReportTable(
    name="budgets",
    function="budget_table",
    section="stages",
    place=4,
    heading="Equal budgets",
    caption="macro-F1 on validation within the passes and the CPU time of the reference",
    title="Macro-F1 on validation at equal budgets (×100, means over seeds)",
    notes="""
The reference ({{ data.reference.title }}) spent its budget until its own best epoch, seed by seed. A dash: no epoch of
the system ends within that budget, or the reference has no network.

Passes are epochs over the training documents; those of Stage 1 count. CPU time is that of the training jobs, divided
evenly over their epochs. Validation chose the epoch, so these values are a little too high for every system.
""",
)


def _network_of_reference(data: ExperimentData) -> str:
    """The reference's network in the curves, "" for a baseline. Variants that differ in Stage 3 alone share one."""
    variants = data.settings.variants
    if data.reference.name not in variants:
        return ""
    network = variants[data.reference.name].network
    return next((name for name in data.networks if variants[name].network == network), "")
