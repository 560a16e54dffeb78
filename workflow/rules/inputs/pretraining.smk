"""Functions of `pretraining.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def stage1_of(wildcards):
    return SETTINGS.pretrainings[wildcards.pretraining]
