"""Functions of `attention.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def first_recipe(wildcards):
    """The recipe of the first stage of a network: it says how the label embeddings start."""
    planted = wildcards.initial != plant_settings.NO_PRETRAINING
    return SETTINGS.pretrainings[wildcards.initial.partition("@")[0]] if planted else stage2_of(wildcards)


POINTS = NETWORK | {
    "embeddings": lambda wildcards: label_embeddings(first_recipe(wildcards)),
    "planted": planted,
    "weights": TRAINED,
    "relevance": "<results>/relevance/{dataset}/{backbone}/mig.safetensors",
}
"""What a study of the attention at three points of training reads."""


def marks_of(dataset):
    """The marks of a dataset. Ends the run where nobody marked words in its texts."""
    from plant.corpus.marks import require_marks  # loads polars

    try:
        require_marks(SETTINGS.datasets[dataset])
    except InputError as error:  # Snakemake would print an exception of an input function with a traceback
        raise SystemExit(f"error: {error}") from None
    return f"{R}/corpus/{dataset}/marks.parquet"


def networks_of(experiment, file):
    """Network -> a file on its attention for each seed: all networks of an experiment. Of a file with texts: the planted
    network and its control, the first seed. Ends the run where no text may be shown."""
    tables = PATHS.attention_tables(experiment, file)
    if file != "attention_points.parquet":
        return tables
    names, dataset = PATHS.attention(experiment), SETTINGS.experiments[experiment].dataset
    if not SETTINGS.documents_shown(dataset):
        raise SystemExit(
            f"error: attention page of {experiment}: expected text that may be shown, got evaluation.attention_documents"
            f" = 0, or a credentialed dataset ({dataset}). Set evaluation.attention_documents, and for credentialed text"
            " evaluation.show_credentialed: true; then only you can read the page, and you must not share it."
        )
    return {name: paths[:1] for name, paths in tables.items() if name in names or not names}


def page_tables(file):
    """The files of a page, for the rule to wait for."""
    return lambda wildcards: [path for paths in networks_of(wildcards.experiment, file).values() for path in paths]


def page_settings(file):
    """The config cut down to one experiment, and the files of its networks."""

    def settings(wildcards):
        name = wildcards.experiment
        cut, tables = cut_settings(SETTINGS, name), networks_of(name, file)
        return section(SETTINGS.experiments[name].dataset, config=cut, experiment=name, tables=tables)

    return settings
