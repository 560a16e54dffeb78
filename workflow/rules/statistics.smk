"""Statistics: intervals and tests from scores alone; no model is needed to redo them.

REQUIRED INPUTS
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/{val,test}.scores.parquet   of an experiment's systems

OUTPUTS
    results/statistics/<experiment>/{intervals,wilcoxon,randomization}.parquet
"""


rule bootstrap:
    """Paired bootstrap over documents: the paper's interval, and one that is right for label-macro metrics."""
    input:
        scores=lambda wildcards: score_files(wildcards.experiment, *SCORES),
        labels=experiment_labels,
    output:
        intervals="<results>/statistics/{experiment}/intervals.parquet",
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
        script=script("bootstrap"),
        settings=statistics_params,
        rooms=digest("statistics", "evaluation", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --scores {input.scores:q} --labels {input.labels:q}"
        " --out {output.intervals:q} --provenance {output.provenance:q} > {log:q} 2>&1"


rule wilcoxon:
    """Signed-rank tests as appendix F has them."""
    input:
        scores=lambda wildcards: score_files(wildcards.experiment, *SCORES),
        labels=experiment_labels,
    output:
        tests="<results>/statistics/{experiment}/wilcoxon.parquet",
        provenance="<results>/statistics/{experiment}/wilcoxon.provenance.json",
    log:
        "logs/statistics/{experiment}/wilcoxon.log",
    benchmark:
        "benchmarks/statistics/{experiment}/wilcoxon.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("wilcoxon"),
        settings=statistics_params,
        rooms=digest("statistics", "evaluation", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --scores {input.scores:q} --labels {input.labels:q}"
        " --out {output.tests:q} --provenance {output.provenance:q} > {log:q} 2>&1"


rule randomization:
    """Approximate randomisation: the outputs of two systems swapped document by document."""
    input:
        scores=lambda wildcards: score_files(wildcards.experiment, *SCORES),
        labels=experiment_labels,
    output:
        tests="<results>/statistics/{experiment}/randomization.parquet",
        provenance="<results>/statistics/{experiment}/randomization.provenance.json",
    log:
        "logs/statistics/{experiment}/randomization.log",
    benchmark:
        "benchmarks/statistics/{experiment}/randomization.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("randomization"),
        settings=statistics_params,
        rooms=digest("statistics", "evaluation", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --scores {input.scores:q} --labels {input.labels:q}"
        " --out {output.tests:q} --provenance {output.provenance:q} > {log:q} 2>&1"


rule contrasts:
    """Differences of the pairs that the studies ask for, over seeds and documents."""
    input:
        scores=lambda wildcards: [
            f"{folder}/{file}"
            for folders in study_systems(wildcards.experiment).values()
            for folder in folders
            for file in SCORES
        ],
        labels=experiment_labels,
    output:
        contrasts="<results>/statistics/{experiment}/contrasts.parquet",
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
        script=script("contrasts"),
        settings=lambda wildcards: section(
            SETTINGS.experiments[wildcards.experiment].dataset,
            evaluation=SETTINGS.evaluation,
            statistics=SETTINGS.statistics,
            systems=study_systems(wildcards.experiment),
            pairs=study_pairs(wildcards.experiment),
        ),
        rooms=digest("statistics", "evaluation", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --scores {input.scores:q} --labels {input.labels:q}"
        " --out {output.contrasts:q} --provenance {output.provenance:q} > {log:q} 2>&1"
