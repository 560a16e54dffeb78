"""Table 11 of the earlier version (A.12): the words that a label attends to, beside n-grams of a linear model.

The paper shows two codes in MIMIC notes, and n-grams of MSATT-KG, CAML and Text-CNN. Here text is shown only where the
corpus is open. The labels are those of `attention.parquet`: the rarest ones of the first test documents. Nothing is
chosen by how the table looks.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from plant.paper.grid.results import Grid, target
from plant.paper.inputs import Inputs, read_attention, read_table
from plant.paper.render import Table, row_of
from plant.paper.systems import system_title
from plant.paper.values.transcription import PaperValues

BACKBONE, NGRAMS = "awd_lstm", "tfidf_linear"
TOP = 5
"""Words of a label (A.12)."""
SCHEMA = pl.Schema({
    "experiment": pl.String(), "label": pl.String(), "system": pl.String(), "what": pl.String(), "rank": pl.Int64(),
    "words": pl.String(), "value": pl.Float64(),
})  # fmt: skip
ATTENTION, RELEVANCE, WEIGHT = "learned attention A", "relevance S", "weight"
_NOTES = (
    (
        f"A: the {TOP} words with the largest sum of learned attention (Eq. 5) over the documents shown. S: those with "
        "the largest relevance (Eq. 7). P (Eq. 6) is not in the attention files."
    ),
    (
        "Weight: the n-grams of the largest weight in the label's linear model. The n-grams of the paper are of "
        "MSATT-KG, CAML and Text-CNN. They are excerpts of patients' notes, which are not copied here."
    ),
)


def word_table(grid: Grid, values: PaperValues) -> Table:
    """The table from whatever has run, on the corpora whose text may be shown.

    Returns:
        A row for each label and system. `data`: SCHEMA, a row for each word; `value` is what it is ranked by.
    """
    settings, tables, missing = grid.settings, [pl.DataFrame(schema=SCHEMA)], []
    names = [
        name
        for name, experiment in settings.experiments.items()
        if experiment.backbone == BACKBONE and experiment.report and settings.documents_shown(experiment.dataset)
    ]
    for name in names:
        grid.experiments[name] = None
        files = grid.paths[name].attention.values() if name in grid.paths else ()
        if not files or not all(file.is_file() for file in files):
            missing.append(name)
            continue
        tables += _words_of(name, grid.paths[name])
    data = pl.concat(tables)
    lines = data.group_by("experiment", "label", "system", "what", maintain_order=True).agg(
        pl.col("words").str.join(", ")
    )
    notes = [*_NOTES, *(f"The paper on {each.label}, {each.system}: {', '.join(each.words)}." for each in values.words)]
    if missing:
        notes.append(f"Not run yet: target `{target(*missing)}`.")
    if not names:
        notes.append(
            f"No experiment of this config with {BACKBONE} is on text that may be shown (`attention_documents`)."
        )
    return Table(
        name="awd-table-11", title="Table 11 of the earlier version of the paper: words of single labels, on open text",
        columns=("Experiment", "Label", "System", "Ranked by", f"Top {TOP}"), data=data, notes=tuple(notes),
        rows=tuple(row_of(*line[:2], system_title(settings, line[2]), *line[3:]) for line in lines.iter_rows()),
        text_columns=5,
    )  # fmt: skip


def _words_of(name: str, inputs: Inputs) -> Iterator[pl.DataFrame]:
    """The words of each label of an experiment, by every system that has some."""
    attention = read_attention(inputs)
    parts = []
    for what, column, largest in ((ATTENTION, "weight", pl.Expr.sum), (RELEVANCE, "relevance", pl.Expr.max)):
        words = attention.drop_nulls(column).group_by("label", "system", words="token", maintain_order=True)
        parts.append(words.agg(value=largest(pl.col(column)).cast(pl.Float64)).with_columns(what=pl.lit(what)))
    for folder in inputs.evaluations.get(NGRAMS, ()):
        source = folder / "weights.parquet"
        if source.is_file():
            weights = read_table(source, ("label", "feature", "weight")).drop_nulls("feature")
            parts.append(weights.select(
                "label", system=pl.lit(NGRAMS), words="feature", value=pl.col("weight").cast(pl.Float64),
                what=pl.lit(WEIGHT),
            ))  # fmt: skip
    both = pl.concat([part.select("label", "system", "what", "words", "value") for part in parts])
    for label in attention.get_column("label").unique(maintain_order=True):
        for what in (ATTENTION, RELEVANCE, WEIGHT):
            own = both.filter(label=label, what=what)
            systems = own.get_column("system").unique(maintain_order=True)
            for system in systems[:1] if what == RELEVANCE else systems:  # one relevance for all
                found = own.filter(pl.col("value") > 0, system=system)
                top = found.sort("value", descending=True, maintain_order=True).head(TOP)
                rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
                yield top.with_columns(experiment=pl.lit(name), rank=rank).select(SCHEMA.names())
