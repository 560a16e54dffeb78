"""Functions of `studies.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def study_cells(experiment):
    return [cell for study in SETTINGS.studies.values() for cell in study.cells if cell.experiment == experiment]


def study_systems(wildcards):
    """System -> its score folders, of the studies of an experiment; one of another experiment stands there as
    `<experiment>:<system>`."""
    seeds = SETTINGS.experiments[wildcards.experiment].seeds
    return {
        name: PATHS.scores(*side, seeds)
        for cell in study_cells(wildcards.experiment)
        for name, side in zip((cell.system, cell.opponent), cell.sides, strict=True)
    }


def study_settings(wildcards):
    """The config, and the contrasts that a study reads."""
    contrasts = study_contrasts(wildcards.study)
    datasets = [SETTINGS.experiments[name].dataset for name in contrasts]
    return section(*datasets, config=SETTINGS, study=wildcards.study, contrasts=contrasts)


def study_contrasts(study):
    """Experiment -> the contrasts that a study reads."""
    names = dict.fromkeys(cell.experiment for cell in SETTINGS.studies[study].cells)
    return {name: f"{R}/statistics/{name}/contrasts.parquet" for name in names}
