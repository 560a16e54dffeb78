"""Functions of `statistics.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def experiment_labels(wildcards):
    return f"{R}/corpus/{SETTINGS.experiments[wildcards.experiment].dataset}/labels.parquet"


def compared(systems, **more):
    """The settings of a job that compares systems of an experiment."""

    def settings(wildcards):
        return section(
            SETTINGS.experiments[wildcards.experiment].dataset,
            evaluation=SETTINGS.evaluation,
            statistics=SETTINGS.statistics,
            systems=systems(wildcards),
            **{name: part(wildcards) for name, part in more.items()},
        )

    return settings


def contrasted(wildcards):
    """System -> its score folders: a variant, and the reference of the experiment."""
    names = (wildcards.variant, SETTINGS.experiments[wildcards.experiment].reference)
    return {name: PATHS.scores(wildcards.experiment, name) for name in names}
