"""PLANT: raw notes go in at one end, the paper's tables and figures come out at the other.

    snakemake --cores 2                      everything that the config names
    snakemake --cores 2 tables               the tables (or: figures, report)
    snakemake --cores 2 ablation_<variant>   one variant and what it needs, nothing else
    snakemake --profile slurm all            the same on a cluster (slurm/README.md)

Another config takes the place of the default: `--configfile config/open.yaml`.
"""

from snakemake.utils import min_version, validate

min_version("9.20")

if "datasets" not in config:

    configfile: "config/config.yaml"


include: "workflow/rules/common.smk"


validate(config, "config/schema.yaml", set_default=False)


localrules:
    all,
    tables,
    figures,
    report,


rule all:
    default_target: True
    input:
        [paper_outputs(name) for name in SETTINGS.experiments],


rule tables:
    input:
        [paper_tables(name) for name in SETTINGS.experiments],


rule figures:
    input:
        [paper_figures(name) for name in SETTINGS.experiments],


rule report:
    input:
        [paper_report(name) for name in SETTINGS.experiments],


include: "workflow/rules/corpus.smk"
include: "workflow/rules/relevance.smk"
include: "workflow/rules/model.smk"
include: "workflow/rules/pretraining.smk"
include: "workflow/rules/finetuning.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/statistics.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/audit.smk"
