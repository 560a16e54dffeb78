"""Functions of `attention.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def first_recipe(wildcards):
    """The recipe of the first stage of a network: it says how the label embeddings start."""
    planted = wildcards.initial != plant_settings.NO_PRETRAINING
    return SETTINGS.pretrainings[wildcards.initial.partition("@")[0]] if planted else stage2_of(wildcards)


def first_embeddings(wildcards):
    """How the label embeddings start: `random` or `descriptions`."""
    return first_recipe(wildcards).initialisation


def embeddings_of_start(wildcards):
    """Label embeddings that the first stage starts from, where it asks for some."""
    return label_embeddings(first_recipe(wildcards), wildcards)


def start_folder(wildcards):
    """Folder of the weights of Stage 1, or nothing."""
    files = planted_weights(wildcards)
    return str(Path(files[0]).parent) if files else None


def attention_files(wildcards, file):
    """A file on the attention of every network and seed of an experiment."""
    return [path for paths in PATHS.attention_tables(wildcards.experiment, file).values() for path in paths]


def attention_page_settings(wildcards, file):
    """The config cut down to one experiment, and the files of its networks."""
    name = wildcards.experiment
    tables = PATHS.attention_tables(name, file)
    return section(
        SETTINGS.experiments[name].dataset, config=cut_settings(SETTINGS, name), experiment=name, tables=tables
    )


def marks_of(experiment):
    """The marks of an experiment's dataset. Ends the run where nobody marked words in its texts."""
    dataset = SETTINGS.experiments[experiment].dataset
    try:
        require_marks(SETTINGS.datasets[dataset])
    except InputError as error:  # Snakemake would print an exception of an input function with a traceback
        raise SystemExit(f"error: {error}") from None
    return f"{R}/corpus/{dataset}/marks.parquet"
