"""Statistics: intervals and tests from scores alone; no model is needed to redo them.

REQUIRED INPUTS
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/{val,test}.scores.parquet   of an experiment's systems

OUTPUTS
    results/statistics/<experiment>/{intervals,wilcoxon,randomization}.parquet
"""


include: "inputs/statistics.smk"


rule intervals_and_tests:
    """Paired bootstrap over documents (the paper's interval, and one that is right for label-macro metrics), signed-rank
    tests as appendix F has them, and approximate randomisation."""
    input:
        scores=lambda wildcards: PATHS.score_files(wildcards.experiment, *SCORES),
        labels=experiment_labels,
    output:
        intervals="<results>/statistics/{experiment}/intervals.parquet",
        wilcoxon="<results>/statistics/{experiment}/wilcoxon.parquet",
        randomization="<results>/statistics/{experiment}/randomization.parquet",
        provenance="<results>/statistics/{experiment}/provenance.json",
    log:
        "logs/statistics/{experiment}/intervals_and_tests.log",
    resources:
        mem_mb=attempts(8000),
    params:
        settings=compared(
            lambda wildcards: PATHS.systems(wildcards.experiment),
            reference=lambda wildcards: SETTINGS.experiments[wildcards.experiment].reference,
        ),
        code=code("intervals_and_tests"),
    script:
        "../scripts/intervals_and_tests.py"


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
    resources:
        mem_mb=attempts(8000),
    params:
        settings=compared(contrasted, pairs=lambda wildcards: [list(contrasted(wildcards))]),
        code=code("contrasts"),
    script:
        "../scripts/contrasts.py"
