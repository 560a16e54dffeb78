"""PLANT: raw notes go in at one end, the paper's tables and figures come out at the other.

    snakemake --cores 2                      everything that the config names
    snakemake --cores 2 tables               the tables (or: figures, report)
    snakemake --cores 2 ablation_<variant>   one variant, the reference, and their difference; nothing else
    snakemake --cores 2 experiment_<name>    one experiment
    snakemake --cores 1 table_6              a table (or figure) of the paper from whatever has run, beside the paper's
    snakemake --cores 2 reproduce_table_6    the same after all that it needs has run, and nothing else
    snakemake --cores 2 study_<name>         a designed experiment: its differences, factors, figure and page
    snakemake --cores 2 attention_page_<experiment>   texts shaded by attention (docs/how-to/attention.md)
    snakemake --cores 2 model_<experiment>   the system that is best on validation as one folder that labels new texts
    snakemake --cores 2 tune                 learning rates of Stage 2 chosen on validation (or: tune_<name>)
    snakemake --cores 1 plan                 jobs and GPU hours of the config, before anything runs
    snakemake --profile slurm all            the paper's grid on a cluster (slurm/README.md)

Another config takes the place of the default: `--configfile config/open.yaml`, after the target. What a run shows is
set in profiles/default.
"""

from snakemake.utils import min_version

min_version("9.20")

if "datasets" not in config:

    configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/launch.smk"


localrules:
    all,
    tables,
    figures,
    report,
    open_replication,


rule all:
    default_target: True
    input:
        [PATHS.outputs(name) for name in ASKED],
        grid_outputs(),
        [PATHS.study(name) for name in SETTINGS.studies],


rule tables:
    input:
        [PATHS.tables(name) for name in REPORTED],


rule figures:
    input:
        [PATHS.figures(name) for name in REPORTED],


rule report:
    input:
        [PATHS.report(name) for name in REPORTED],


rule open_replication:
    """The experiments on open, real text."""
    input:
        [PATHS.outputs(name) for name in REPORTED if is_open(SETTINGS.experiments[name].dataset)],


include: "workflow/rules/corpus.smk"
include: "workflow/rules/relevance.smk"
include: "workflow/rules/model.smk"
include: "workflow/rules/pretraining.smk"
include: "workflow/rules/finetuning.smk"
include: "workflow/rules/tuning.smk"
include: "workflow/rules/baselines.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/attention.smk"
include: "workflow/rules/statistics.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/serving.smk"
include: "workflow/rules/audit.smk"


# Every job runs in the environment of envs/plant.yaml. Snakemake measures each job that writes a sidecar: its time and
# memory are in benchmarks/<name>.tsv, where its log is logs/<name>.log.
for each in workflow.rules:
    each.conda_env = None if each.norun else "../../envs/plant.yaml"
    if any(str(file).endswith("provenance.json") for file in each.output):
        each.benchmark_modifier = each.log_modifier
        each.benchmark = str(each.log[0]).replace("logs/", "benchmarks/", 1).removesuffix(".log") + ".tsv"


for target, files in named(TARGETS).items():

    rule:
        name:
            target
        input:
            files,
        localrule: True
