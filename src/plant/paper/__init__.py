"""Room 8: what ran, as tables, figures and one report. Reads the files of the other rooms and trains nothing.

The names below are the whole output of the room, so that a workflow can declare every file in advance.
"""

TABLES = ("ablation", "intervals", "seeds", "probabilities", "budgets", "corpus", "cost")
"""Each is written as .csv (long, full precision), .md and .tex."""
STUDY_TABLES = ("effects", "factors")
"""Of a study, written as the tables are."""
TABLE_FORMATS = ("csv", "md", "tex")
FIGURES = (
    "ndcg_and_macro_f1", "rare_label_f1", "differences", "frequency_groups", "training_curves", "learning_over_time",
)  # fmt: skip
"""Each is written as .pdf and .png; a figure with nothing to show says why."""
FIGURE_FORMATS = ("pdf", "png")
