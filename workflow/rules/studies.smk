"""Studies: designed experiments, from the pairs of systems that they compare to a page.

REQUIRED INPUTS
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/{val,test}.scores.parquet   of a study's systems

OUTPUTS
    results/statistics/<experiment>/contrasts.parquet
    results/paper/studies/<study>/{page.md,tables/*,figures/*}
"""


include: "inputs/studies.smk"


rule contrasts:
    """Differences of the pairs that the studies ask for, over seeds and documents."""
    input:
        scores=lambda wildcards: in_folders(study_systems(wildcards).values(), SCORES),
        labels=experiment_labels,
    output:
        out="<results>/statistics/{experiment}/contrasts.parquet",
        provenance="<results>/statistics/{experiment}/contrasts.provenance.json",
    log:
        "logs/statistics/{experiment}/contrasts.log",
    benchmark:
        "benchmarks/statistics/{experiment}/contrasts.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        settings=compared(study_systems, pairs=study_pairs),
        code=code("contrasts"),
    script:
        "../scripts/contrasts.py"


rule write_study:
    """A designed experiment: every difference with its interval, what the factors change, one figure, a page."""
    input:
        contrasts=lambda wildcards: study_contrasts(wildcards.study).values(),
    output:
        PATHS.study("{study}"),
        provenance="<results>/paper/studies/{study}/provenance.json",
    log:
        "logs/paper/studies/{study}.log",
    benchmark:
        "benchmarks/paper/studies/{study}.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        settings=study_settings,
        code=code_of_baselines("study", baselines().values()),
    script:
        "../scripts/study.py"


for study in SETTINGS.studies:

    rule:
        name:
            f"study_{study}"
        input:
            PATHS.study(study),
        localrule: True
