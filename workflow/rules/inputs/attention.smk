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
