"""Functions of `tuning.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


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
