"""Studies: designed experiments, from the pairs of systems that they compare to a page.

REQUIRED INPUTS
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/{val,test}.scores.parquet   of a study's systems

OUTPUTS
    results/statistics/<experiment>/contrasts.parquet
    results/paper/studies/<study>/{page.md,tables/*,figures/*}
"""


include: "inputs/studies.smk"


use rule compare as contrasts with:
    """Differences of the pairs that the studies ask for, over seeds and documents."""
    input:
        scores=lambda wildcards: in_folders(study_systems(wildcards).values(), SCORES),
        labels=experiment_labels,
    output:
        out="<results>/statistics/{experiment}/contrasts.parquet",
        provenance="<results>/statistics/{experiment}/contrasts.provenance.json",
    log:
        "logs/statistics/{experiment}/contrasts.log",
    params:
        settings=compared(
            study_systems,
            pairs=lambda wildcards: list(
                dict.fromkeys((cell.system, cell.opponent) for cell in study_cells(wildcards.experiment))
            ),
        ),
        code=code("contrasts"),


rule write_study:
    """A designed experiment: every difference with its interval, what the factors change, one figure, a page."""
    input:
        contrasts=lambda wildcards: study_contrasts(wildcards.study).values(),
    output:
        PATHS.study("{study}"),
        provenance="<results>/paper/studies/{study}/provenance.json",
    log:
        "logs/paper/studies/{study}.log",
    params:
        settings=study_settings,
        code=code_of_baselines("study", baselines().values()),
    script:
        "../scripts/study.py"


TARGETS |= {f"study_{study}": PATHS.study(study) for study in SETTINGS.studies}
