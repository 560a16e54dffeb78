"""The page `attention_against_people_<experiment>`: is attention like what people marked, and is it what is used?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from plant.ground.settings import Settings
from plant.paper.attention.pairs import POINT_TITLES, Pairs, bounds, cell, fields, read_pairs, rows_of, sure
from plant.paper.figures.forest import ForestPanel, ForestRow, means_figure
from plant.paper.pages import write_page
from plant.paper.render import Table, TableCell, breaks, row_of
from plant.paper.systems import KIND_COLOURS
from plant.paper.wording import fixed, percent
from plant.statistics.pairs import Estimate

LIKENESS = ("ndcg", "mass", "recall")
METRICS = (*LIKENESS, "drop")
START, END = "before_stage_2", "after_stage_2"
REFERENCES = {"uniform": "uniform attention", "random": "random attention", "relevance": "MIG alone"}
OWN = {**POINT_TITLES, "occlusion": "leave-one-out occlusion"}
BOLD = "Bold: the interval is on one side of 0. It is not corrected for the number of rows."
HIDDEN = {
    END: "top tokens of attention after Stage 2", "occlusion": "top tokens of occlusion",
    "relevance": "top tokens of MIG", "marked": "tokens that people marked", "random": "random tokens",
}  # fmt: skip


def write_people_page(settings: Settings, experiment: str, tables: Mapping[str, Sequence[Path]], out: Path) -> None:
    """Write tables/{likeness,differences,drops}.{csv,md,tex}, figures/people.{pdf,png} and page.md.

    Args:
        tables: system -> attention_marks.parquet of each seed.
    """
    pairs = read_pairs(settings, experiment, tables, scorer="scorer", metrics=METRICS)
    made = (likeness_table(pairs), differences_table(pairs), drops_table(pairs))
    values = {"pairs": pairs, "k": settings.attention_study.at, "answers": answers(pairs)}
    write_page(out, made, {"people": partial(_figure, pairs)}, __package__, "people.md.j2", **values)


def likeness_table(pairs: Pairs) -> Table:
    """One row for each reference, and for each network and what scores the tokens."""
    entries = [(pairs.reference.name, "", scorer, title) for scorer, title in REFERENCES.items()]
    entries += [(each.name, each.title, scorer, title) for each in pairs.systems for scorer, title in OWN.items()]
    return Table(
        name="likeness",
        title="How like what people marked: attention over the tokens of test documents (×100)",
        columns=("System", "Tokens scored by", *_titles(pairs)),
        rows=tuple(
            row_of(heading, title, *(cell(pairs.estimate(system, scorer, metric)) for metric in LIKENESS))
            for system, heading, scorer, title in entries
        ),
        data=rows_of(pairs, METRICS, (*REFERENCES, "marked", *OWN)),
        notes=(_means(pairs), "Occlusion: a random sample of the documents only (`attention_study`)."),
        rules=breaks([heading for _, heading, _, _ in entries]),
        text_columns=2,
    )


def differences_table(pairs: Pairs) -> Table:
    """Each network against the reference network, at the start of Stage 2 and after it; and against MIG alone."""
    body: list[tuple[TableCell, ...]] = []
    rows: list[dict[str, object]] = []
    for system in pairs.systems:
        others = [] if system == pairs.reference else [(pairs.reference, None)]
        for (other, scorer), point in product((*others, (system, "relevance")), (START, END)):
            sides = (system.name, point), (other.name, scorer or point)
            found = {metric: pairs.difference(*sides, metric) for metric in METRICS}
            against = other.title if scorer is None else REFERENCES[scorer]
            cells = (cell(found[metric], signed=True) for metric in LIKENESS)
            body.append(row_of(system.title, POINT_TITLES[point], against, *cells))
            key = {"system": system.name, "scorer": point, "against": scorer or other.name}
            rows += [{**key, "metric": metric, **fields(own, "difference")} for metric, own in found.items()]
    return Table(
        name="differences",
        title="Differences in likeness to what people marked, in points (×100)",
        columns=("System", "Weights", "Against", *_titles(pairs)),
        rows=tuple(body),
        data=pl.DataFrame(rows, infer_schema_length=None),
        notes=(_means(pairs), BOLD),
        text_columns=3,
    )


def drops_table(pairs: Pairs) -> Table:
    """By how much the logit drops without the top tokens of each scorer, and beside random tokens."""
    body, rows = [], []
    for system, (scorer, title) in product(pairs.systems, HIDDEN.items()):
        own = pairs.estimate(system.name, scorer, "drop")
        beside = pairs.difference((system.name, scorer), (system.name, "random"), "drop")
        more = "" if scorer == "random" else cell(beside, nats=True, signed=True)
        body.append(row_of(system.title, title, cell(own, nats=True), more))
        rows.append({"system": system.name, "hidden": scorer, **fields(own, "drop")})
    return Table(
        name="drops",
        title="Faithfulness: by how much the label's logit drops when tokens are taken out of the document",
        columns=("System", "Taken out", "Drop of the logit", "More than random tokens"),
        rows=tuple(body),
        data=pl.DataFrame(rows, infer_schema_length=None),
        notes=(
            "As many tokens as people marked for the label are taken out. The network is the one after Stage 2.",
            _means(pairs),
            BOLD,
        ),
        rules=breaks([row["system"] for row in rows]),
        text_columns=2,
    )


def answers(pairs: Pairs) -> list[str]:
    """What the numbers say, one sentence each."""
    k, reference = pairs.settings.attention_study.at, pairs.reference
    found = []
    for system in pairs.systems[1:]:
        start, end = (pairs.difference((system.name, at), (reference.name, at), "ndcg") for at in (START, END))
        found.append(
            f"{system.title} against {reference.title}, nDCG@{k}: {_points(start)} when Stage 2 starts, {_points(end)} "
            "after it."
        )
    for system in pairs.systems:
        beside = pairs.difference((system.name, END), (system.name, "relevance"), "ndcg")
        found.append(f"{system.title} after Stage 2 against MIG alone, nDCG@{k}: {_points(beside)}.")
    for system in pairs.systems:
        drop = pairs.difference((system.name, END), (system.name, "random"), "drop")
        if drop is not None:
            claim = "attention shows" if drop.low > 0 else "this does not show that it is"
            found.append(
                f"{system.title}: without its top attended tokens the logit drops by {fixed(drop.value, 2)} more "
                f"{bounds(drop, nats=True)} than without random tokens; {claim} what the network uses."
            )
    return found


def _points(own: Estimate | None) -> str:
    """A difference with its interval and a word.

    >>> _points(Estimate(0.031, 0.012, 0.05, 3))
    '+3.1 points [1.2, 5.0], higher'
    """
    if own is None:
        return "not measured"
    word = "not told apart" if not sure(own) else "higher" if own.value > 0 else "lower"
    return f"{percent(own.value, signed=True)} points {bounds(own)}, {word}"


def _titles(pairs: Pairs) -> tuple[str, str, str]:
    return f"nDCG@{pairs.settings.attention_study.at}", "Mass on marked tokens", "Recall at equal length"


def _means(pairs: Pairs) -> str:
    return f"{pairs.means('a label with marked tokens, in')}."


def _figure(pairs: Pairs) -> Figure:
    k, first = pairs.settings.attention_study.at, pairs.reference.name

    def row(group: str, title: str, colour: str, system: str, scorer: str, metrics: Sequence[str]) -> ForestRow:
        return ForestRow(group, title, colour, {each: pairs.estimate(system, scorer, each) for each in metrics})

    # the logit is that of one network: its drop belongs to no reference of all
    rows = [row("References", title, "#444444", first, scorer, LIKENESS) for scorer, title in REFERENCES.items()]
    for system in pairs.systems:
        colour = KIND_COLOURS[system.kind]
        rows += [row(system.title, title, colour, system.name, scorer, METRICS) for scorer, title in OWN.items()]
    base = rows[0].estimates
    lines = {metric: None if (own := base[metric]) is None else 100 * own.value for metric in LIKENESS}
    panels = (
        ForestPanel("ndcg", f"nDCG@{k} of marked tokens (×100)", line=lines["ndcg"]),
        ForestPanel("mass", "Mass on marked tokens (%)", line=lines["mass"]),
        ForestPanel("recall", "Recall at equal length (%)", line=lines["recall"]),
        ForestPanel("drop", "Drop of the logit without its top tokens", scale=1.0, line=0.0),
    )
    note = f"{pairs.level} intervals; dashed: uniform attention (likeness), no drop (right)"
    return means_figure(rows, panels, title=f"Attention against what people marked: {pairs.experiment}", note=note)
