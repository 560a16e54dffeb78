"""The page `attention_against_people_<experiment>`: is attention like what people marked, and is it what is used?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from plant.ground.files import write_text
from plant.ground.settings import Settings
from plant.paper.attention.mass import nats_cell, share_cell, sure
from plant.paper.attention.pairs import POINT_TITLES, Pairs, number, read_pairs, rows_of
from plant.paper.figures.attention import Panel, Row, means_figure
from plant.paper.figures.style import look, save
from plant.paper.render import Table, row_of, template, to_markdown, write_table
from plant.paper.systems import KIND_COLOURS
from plant.paper.wording import OVER, interval, percent
from plant.statistics.pairs import Estimate

LIKENESS = ("ndcg", "mass", "recall")
METRICS = (*LIKENESS, "drop")
START, END = "before_stage_2", "after_stage_2"
REFERENCES = {"uniform": "uniform attention", "random": "random attention", "relevance": "MIG alone"}
OWN = {**POINT_TITLES, "occlusion": "leave-one-out occlusion"}
HIDDEN = {
    END: "top tokens of attention after Stage 2", "occlusion": "top tokens of occlusion",
    "relevance": "top tokens of MIG", "marked": "tokens that people marked", "random": "random tokens",
}  # fmt: skip


def write_people_page(settings: Settings, experiment: str, tables: Mapping[str, Sequence[Path]], out: Path) -> None:
    """Write tables/{likeness,differences,drops}.{csv,md,tex}, figures/people.{pdf,png} and page.md.

    Args:
        settings: the config.
        experiment: name of the experiment.
        tables: system -> attention_marks.parquet of each seed.
        out: folder.

    Raises:
        InputError: see `read_pairs`.
    """
    pairs = read_pairs(settings, experiment, tables, scorer="scorer", metrics=METRICS)
    made = (likeness_table(pairs), differences_table(pairs), drops_table(pairs))
    for table in made:
        write_table(table, Path(out) / "tables")
    with look():
        save(_figure(pairs), Path(out) / "figures" / "people")
    page = template(__package__, "people.md.j2").render(
        pairs=pairs, k=pairs.settings.attention_study.at, answers=answers(pairs), tables=made, markdown=to_markdown
    )
    write_text(Path(out) / "page.md", f"{page.rstrip()}\n")


def likeness_table(pairs: Pairs) -> Table:
    """One row for each reference, and for each network and what scores the tokens."""
    first = pairs.reference.name
    entries = [(first, "", scorer, title) for scorer, title in REFERENCES.items()]
    entries += [(each.name, each.title, scorer, title) for each in pairs.systems for scorer, title in OWN.items()]
    body = [
        row_of(heading, title, *(share_cell(pairs.estimate(system, scorer, metric)) for metric in LIKENESS))
        for system, heading, scorer, title in entries
    ]
    data = rows_of(pairs, METRICS, (*REFERENCES, "marked", *OWN))
    return Table(
        name="likeness",
        title="How like what people marked: attention over the tokens of test documents (×100)",
        columns=("System", "Tokens scored by", *_titles(pairs)),
        rows=tuple(body),
        data=pl.DataFrame(data, infer_schema_length=None),
        notes=(_means(pairs), "Occlusion: a random sample of the documents only (`attention_study`)."),
        rules=tuple(range(len(REFERENCES), len(body), len(OWN))),
        text_columns=2,
    )


def differences_table(pairs: Pairs) -> Table:
    """Each network against the reference network, at the start of Stage 2 and after it; and against MIG alone."""
    body = []
    for system in pairs.systems:
        others = [] if system == pairs.reference else [(pairs.reference.name, pairs.reference.title, None)]
        for name, title, scorer in (*others, (system.name, REFERENCES["relevance"], "relevance")):
            for point in (START, END):
                found = (pairs.difference((system.name, point), (name, scorer or point), each) for each in LIKENESS)
                cells = (share_cell(each, signed=True) for each in found)
                body.append(row_of(system.title, POINT_TITLES[point], title, *cells))
    return Table(
        name="differences",
        title="Differences in likeness to what people marked, in points (×100)",
        columns=("System", "Weights", "Against", *_titles(pairs)),
        rows=tuple(body),
        data=pl.DataFrame(_difference_rows(pairs), infer_schema_length=None),
        notes=(_means(pairs), "Bold: the interval is on one side of 0. It is not corrected for the number of rows."),
        text_columns=3,
    )


def drops_table(pairs: Pairs) -> Table:
    """By how much the logit drops without the top tokens of each scorer, and beside random tokens."""
    body = []
    for system in pairs.systems:
        for scorer, title in HIDDEN.items():
            own = pairs.estimate(system.name, scorer, "drop")
            beside = pairs.difference((system.name, scorer), (system.name, "random"), "drop")
            more = "" if scorer == "random" else nats_cell(beside, signed=True)
            body.append(row_of(system.title, title, nats_cell(own), more))
    rows = [
        {"system": each.name, "hidden": scorer, **_fields(pairs.estimate(each.name, scorer, "drop"), "drop")}
        for each in pairs.systems for scorer in HIDDEN
    ]  # fmt: skip
    return Table(
        name="drops",
        title="Faithfulness: by how much the label's logit drops when tokens are taken out of the document",
        columns=("System", "Taken out", "Drop of the logit", "More than random tokens"),
        rows=tuple(body),
        data=pl.DataFrame(rows, infer_schema_length=None),
        notes=(
            "As many tokens as people marked for the label are taken out. The network is the one after Stage 2.",
            _means(pairs),
            "Bold: the interval is on one side of 0. It is not corrected for the number of rows.",
        ),
        rules=tuple(range(len(HIDDEN), len(body), len(HIDDEN))),
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
            bounds = f"[{number(drop.low, 2)}, {number(drop.high, 2)}]"
            found.append(
                f"{system.title}: without its top attended tokens the logit drops by {number(drop.value, 2)} more "
                f"{bounds} than without random tokens; {_verdict(drop, 'attention shows what the network uses')}."
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
    return f"{percent(own.value, signed=True)} points {interval(own.low, own.high)}, {word}"


def _verdict(own: Estimate, claim: str) -> str:
    return claim if own.low > 0 else "this does not show that it is what the network uses"


def _titles(pairs: Pairs) -> tuple[str, str, str]:
    return f"nDCG@{pairs.settings.attention_study.at}", "Mass on marked tokens", "Recall at equal length"


def _means(pairs: Pairs) -> str:
    found = (pairs.estimate(each.name, END, "ndcg") for each in pairs.systems)
    several = max(each.n_seeds for each in found if each is not None) > 1
    confidence = 100 * pairs.settings.statistics.confidence
    return (
        f"Means [{confidence:g}% interval {OVER[several]}] over {pairs.pairs} pairs of a document and a label with "
        f"marked tokens, in {pairs.documents} documents."
    )


def _difference_rows(pairs: Pairs) -> list[dict[str, object]]:
    """The differences at full precision."""
    rows: list[dict[str, object]] = []
    for system in pairs.systems:
        for name, scorer in ((pairs.reference.name, None), (system.name, "relevance")):
            for point in (START, END):
                for metric in METRICS:
                    found = pairs.difference((system.name, point), (name, scorer or point), metric)
                    if (name, scorer) != (system.name, None):
                        key = {"system": system.name, "scorer": point, "against": scorer or name, "metric": metric}
                        rows.append({**key, **_fields(found, "difference")})
    return rows


def _fields(own: Estimate | None, name: str) -> dict[str, float | int | None]:
    if own is None:
        return {name: None, "low": None, "high": None, "n_seeds": None}
    return {name: own.value, "low": own.low, "high": own.high, "n_seeds": own.n_seeds}


def _figure(pairs: Pairs) -> Figure:
    k, first = pairs.settings.attention_study.at, pairs.reference.name

    def row(group: str, title: str, colour: str, system: str, scorer: str) -> Row:
        return Row(group, title, colour, {metric: pairs.estimate(system, scorer, metric) for metric in METRICS})

    rows = [row("References", title, "#444444", first, scorer) for scorer, title in REFERENCES.items()]
    for system in pairs.systems:
        colour = KIND_COLOURS[system.kind]
        rows += [row(system.title, title, colour, system.name, scorer) for scorer, title in OWN.items()]
    rows[: len(REFERENCES)] = [  # the logit is that of one network: its drop belongs to no reference of all
        Row(each.group, each.title, each.colour, {**each.estimates, "drop": None}) for each in rows[: len(REFERENCES)]
    ]
    base = rows[0].estimates
    lines = {metric: None if (own := base[metric]) is None else 100 * own.value for metric in LIKENESS}
    panels = (
        Panel("ndcg", f"nDCG@{k} of marked tokens (×100)", line=lines["ndcg"]),
        Panel("mass", "Mass on marked tokens (%)", line=lines["mass"]),
        Panel("recall", "Recall at equal length (%)", line=lines["recall"]),
        Panel("drop", "Drop of the logit without its top tokens", scale=1.0, line=0.0),
    )
    confidence = 100 * pairs.settings.statistics.confidence
    note = f"{confidence:g}% intervals; dashed: uniform attention (likeness), no drop (right)"
    return means_figure(rows, panels, title=f"Attention against what people marked: {pairs.experiment}", note=note)
