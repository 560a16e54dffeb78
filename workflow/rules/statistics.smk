"""Statistics: intervals and tests from scores alone; no model is needed to redo them.

REQUIRED INPUTS
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/{val,test}.scores.parquet   of an experiment's systems

OUTPUTS
    results/statistics/<experiment>/{intervals,wilcoxon,randomization}.parquet
"""


rule bootstrap:
    """Paired bootstrap over documents: the paper's interval, and one that is right for label-macro metrics."""
    input:
        scores=lambda wildcards: PATHS.score_files(wildcards.experiment, *SCORES),
        labels=experiment_labels,
    output:
        out="<results>/statistics/{experiment}/intervals.parquet",
        provenance="<results>/statistics/{experiment}/intervals.provenance.json",
    log:
        "logs/statistics/{experiment}/bootstrap.log",
    benchmark:
        "benchmarks/statistics/{experiment}/bootstrap.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        settings=compared(
            lambda wildcards: PATHS.systems(wildcards.experiment),
            reference=lambda wildcards: SETTINGS.experiments[wildcards.experiment].reference,
        ),
        code=code("compare"),
    script:
        "../scripts/compare.py"


# Signed-rank tests as appendix F has them.
use rule bootstrap as wilcoxon with:
    output:
        out="<results>/statistics/{experiment}/wilcoxon.parquet",
        provenance="<results>/statistics/{experiment}/wilcoxon.provenance.json",
    log:
        "logs/statistics/{experiment}/wilcoxon.log",
    benchmark:
        "benchmarks/statistics/{experiment}/wilcoxon.tsv"


# Approximate randomisation: the outputs of two systems swapped document by document.
use rule bootstrap as randomization with:
    output:
        out="<results>/statistics/{experiment}/randomization.parquet",
        provenance="<results>/statistics/{experiment}/randomization.provenance.json",
    log:
        "logs/statistics/{experiment}/randomization.log",
    benchmark:
        "benchmarks/statistics/{experiment}/randomization.tsv"


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


rule compare:
    """A variant against the reference of an experiment, over seeds and documents."""
    input:
        scores=lambda wildcards: in_folders(contrasted(wildcards).values(), SCORES),
        labels=experiment_labels,
    output:
        out="<results>/statistics/{experiment}/ablation/{variant}.parquet",
        provenance="<results>/statistics/{experiment}/ablation/{variant}.provenance.json",
    log:
        "logs/statistics/{experiment}/ablation/{variant}.log",
    benchmark:
        "benchmarks/statistics/{experiment}/ablation/{variant}.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        settings=compared(contrasted, pairs=lambda wildcards: [list(contrasted(wildcards))]),
        code=code("contrasts"),
    script:
        "../scripts/contrasts.py"
