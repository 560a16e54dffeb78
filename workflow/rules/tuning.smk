"""Tuning: learning rates and epochs of Stage 2, chosen on validation, the same grid for every arm.

REQUIRED INPUTS
    results/finetuning/<dataset>/<backbone>/<pretraining>+<recipe of a point>/seed<seed>/{history.parquet,provenance.json}

OUTPUTS
    results/tuning/<tuning>/grid.csv        every validation score
    results/tuning/<tuning>/chosen.yaml     a config with the section `tuned`: lay it over the one that made it
"""


def points_folder(tuning):
    """The folder with the networks of a tuning's points."""
    experiment = SETTINGS.experiments[SETTINGS.tunings[tuning].experiment]
    return f"{R}/finetuning/{experiment.dataset}/{experiment.backbone}"


def points_files(wildcards):
    """What a choice reads of every point and seed."""
    return [
        f"{points_folder(wildcards.tuning)}/{network}/seed{seed}/{file}"
        for networks in plant_settings.tuning_points(SETTINGS, wildcards.tuning).values()
        for network in networks
        for seed in SETTINGS.tunings[wildcards.tuning].seeds
        for file in ("history.parquet", "provenance.json")
    ]


def tuning_settings(wildcards):
    points = plant_settings.tuning_points(SETTINGS, wildcards.tuning)
    return section(
        tuning=SETTINGS.tunings[wildcards.tuning],
        points={arm: {name: dict(point) for name, point in own.items()} for arm, own in points.items()},
        runs=plant_settings.runs_of_arms(SETTINGS, wildcards.tuning),
        also=plant_settings.further_runs(SETTINGS, wildcards.tuning),
    )


rule write_choice:
    """The rates with the best validation macro-F1, of every arm; warns where the grid may not hold the best."""
    input:
        points_files,
    output:
        grid="<results>/tuning/{tuning}/grid.csv",
        chosen="<results>/tuning/{tuning}/chosen.yaml",
        provenance="<results>/tuning/{tuning}/provenance.json",
    log:
        "logs/tuning/{tuning}.log",
    benchmark:
        "benchmarks/tuning/{tuning}.tsv"
    localrule: True
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("tune"),
        settings=tuning_settings,
        runs=lambda wildcards: points_folder(wildcards.tuning),
        rooms=digest("evaluation/tuning.py"),
    shell:
        "{params.script} --settings {params.settings} --runs {params.runs} --histories {input} --grid {output.grid}"
        " --chosen {output.chosen} --provenance {output.provenance} 2>&1 | tee {log}"


rule tune:
    """The choices of all tunings."""
    input:
        expand("<results>/tuning/{tuning}/chosen.yaml", tuning=SETTINGS.tunings),
    localrule: True


for tuning in SETTINGS.tunings:

    rule:
        name:
            f"tune_{tuning}"
        input:
            f"<results>/tuning/{tuning}/chosen.yaml",
        localrule: True
