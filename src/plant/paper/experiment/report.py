"""One HTML file with everything: headline, tables, figures, corpus, costs, choices, provenance. Works offline."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import yaml

from plant.ground.files import require_file, write_text
from plant.ground.settings import Experiment, Settings
from plant.paper.experiment.attention import Reading, mark, may_show_text, readings
from plant.paper.experiment.choices import first_paragraph, read_choices
from plant.paper.experiment.headline import write_headline
from plant.paper.experiment.tables import build_tables
from plant.paper.inputs import Inputs, read_attention, read_costs, read_results
from plant.paper.render import to_html
from plant.paper.systems import KIND_COLOURS, KIND_TITLES, cut_settings, find_roles, list_systems

LONGEST = 600
"""Tokens of a document that the report shows; of longer ones the part that carries most weight."""


@dataclass(frozen=True)
class Picture:
    """A figure of the report: what is seen (caption) and what a reader who cannot see it should know (alt)."""

    name: str
    title: str
    caption: str
    alt: str


PICTURES = (
    Picture(
        "differences", "Difference to the reference",
        "Each mark is a system minus the reference, with our interval (over training seeds and test documents; with "
        "one seed over documents alone). Filled marks: the interval excludes 0 and the randomisation test agrees.",
        "Forest plot, one panel a metric; the same numbers are in the table of intervals.",
    ),
    Picture(
        "rare_label_f1", "F1 of rare labels",
        "Distribution of F1 over the rare labels (the form of the paper's Fig. 2b): density, quartiles, mean (diamond) "
        "and the share of labels above 70.",
        "Violin plots of per-label F1, one a system, with mean and share above 70 printed beside each.",
    ),
    Picture(
        "frequency_groups", "F1 by label frequency",
        "Mean F1 of the labels in each group of training frequency, averaged over seeds.",
        "Line chart of mean F1 by label-frequency group, one line a system.",
    ),
    Picture(
        "ndcg_and_macro_f1", "Stage 1 nDCG@k against Stage 2 macro-F1",
        "One point a seed (the form of the paper's Fig. 3, left). nDCG@k is taken against the recipe's own relevance: "
        "it says how well that relevance was learnt, not whether it was worth learning.",
        "Scatter plot of nDCG@k after Stage 1 against test macro-F1 after Stage 2.",
    ),
    Picture(
        "training_curves", "Training",
        "Thin lines are seeds, thick lines their mean. Stage 1 above, Stage 2 below. nDCG@k is blind to the scale of "
        "the scores, so the attention mass on the top k tokens stands beside it.",
        "Line charts of loss and validation quality by epoch for both stages.",
    ),
)  # fmt: skip


def write_report(
    inputs: Inputs, target: Path, *, figures: Path, choices: Path, settings: Settings, experiment: str
) -> None:
    """Write the report of one experiment.

    Args:
        inputs: paths of the experiment.
        target: the HTML file.
        figures: folder with the PNG files of `write_figures`.
        choices: docs/choices; the report says what each page chose.
        settings: the config.
        experiment: its name.

    Raises:
        InputError: an input is missing or malformed.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("plant.paper.experiment", ""), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    design = settings.experiments[experiment]
    results = read_results(inputs, alpha=settings.statistics.alpha)
    tables = build_tables(inputs, settings=settings, experiment=experiment)
    config = cut_settings(settings, experiment).model_dump(mode="json")
    html = environment.get_template("report.html.j2").render(
        name=experiment,
        experiment=design,
        headline=write_headline(results, settings=settings, experiment=design),
        tables={table.name: to_html(table) for table in tables},
        pictures=[(picture, _data_uri(Path(figures) / f"{picture.name}.png")) for picture in PICTURES],
        legend=[
            (KIND_COLOURS[kind], KIND_TITLES[kind])
            for kind in dict.fromkeys(system.kind for system in list_systems(settings, design))
        ],
        readings=_readings(inputs, settings, design),
        text_hidden=not may_show_text(settings, design),
        mark=mark(settings, design) if may_show_text(settings, design) else "",
        choices=_choices(choices),
        provenance=provenance_summary(read_costs(inputs)),
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
    )
    write_text(target, html)


def provenance_summary(records: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Commits, devices and package versions over all runs; more than one value shows that runs differ."""
    values_of: dict[str, dict[str, None]] = {}
    for record in records:
        edited = " with uncommitted changes" if record["modified"] else ""
        values_of.setdefault("commit", {})[f"{record['commit'] or 'unknown'}{edited}"] = None
        for key in ("platform", "device"):
            values_of.setdefault(key, {})[str(record[key])] = None
        for package, version in sorted(record["versions"].items()):
            if version is not None:
                values_of.setdefault(package, {})[str(version)] = None
    return [(key, ", ".join(values)) for key, values in values_of.items()]


def _data_uri(png: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(require_file(png).read_bytes()).decode("ascii")


def _choices(folder: Path) -> list[dict[str, Any]]:
    return [
        {
            "number": choice.number,
            "title": choice.title,
            "chosen": first_paragraph(choice.sections["Chosen"]),
            "effect": first_paragraph(choice.sections["Measured effect"]),
        }
        for choice in read_choices(folder)
    ]


def _readings(inputs: Inputs, settings: Settings, experiment: Experiment) -> list[dict[str, Any]]:
    """Documents with shaded words; none where the text must not be shown."""
    if not may_show_text(settings, experiment):
        return []
    roles = find_roles(settings, experiment)
    shown = readings(read_attention(inputs), roles, documents=settings.evaluation.attention_documents)
    return [_shaded(reading) for reading in shown]


def _shaded(reading: Reading) -> dict[str, Any]:
    part = reading.excerpt(LONGEST)
    return {
        "document": reading.document,
        "label": reading.label,
        "cut": len(reading.pieces) > LONGEST,
        "panels": [
            {
                "title": panel.system.title,
                "kind": panel.system.kind.replace(" ", "-"),
                "probability": f"{panel.probability:.2f}",
                "top": _top_words(reading, panel.weights),
                "words": [
                    (piece, f"{float(weight) / reading.largest:.2f}", bool(relevant))
                    for piece, weight, relevant in zip(
                        reading.pieces[part], panel.weights[part], reading.relevant[part], strict=True
                    )
                ],
            }
            for panel in reading.panels
        ],
    }


def _top_words(reading: Reading, weights: Any, most: int = 5) -> str:
    """The tokens of largest weight in words, for readers who cannot see the shades."""
    totals: dict[str, float] = {}
    for piece, weight in zip(reading.pieces, weights, strict=True):
        totals[piece.strip()] = totals.get(piece.strip(), 0.0) + float(weight)
    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:most]
    return ", ".join(f"{word} {100 * weight:.0f}%" for word, weight in ranked)
