"""Tuning: learning rates and epochs of Stage 2, chosen on validation, the same grid for every arm.

REQUIRED INPUTS
    results/finetuning/<dataset>/<backbone>/<pretraining>+<recipe of a point>/seed<seed>/{history.parquet,provenance.json}

OUTPUTS
    results/tuning/<tuning>/grid.csv        every validation score
    results/tuning/<tuning>/chosen.yaml     a config with the section `tuned`: lay it over the one that made it
"""


def tuning_runs(wildcards):
    """Folders of the networks of every point and seed of a tuning."""
    base = PATHS.of("finetuning", SETTINGS.tunings[wildcards.tuning].experiment)
    points = plant_settings.tuning_points(SETTINGS, wildcards.tuning)
    seeds = SETTINGS.tunings[wildcards.tuning].seeds
    return [f"{base}/{network}/seed{seed}" for networks in points.values() for network in networks for seed in seeds]


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
        runs=lambda wildcards: in_folders([tuning_runs(wildcards)], ["history.parquet", "provenance.json"]),
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
        settings=tuning_settings,
        folder=lambda wildcards: PATHS.of("finetuning", SETTINGS.tunings[wildcards.tuning].experiment),
        screen="everything",
        code=code("tune"),
    script:
        "../scripts/tune.py"


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
