"""Names of what comes out at the end: tables, figures and reports of experiments, and the paper's own items."""


def paper_tables(experiment):
    return [f"{R}/paper/{experiment}/tables/{name}.{kind}" for name in TABLES for kind in TABLE_FORMATS]


def paper_figures(experiment):
    return [f"{R}/paper/{experiment}/figures/{name}.{kind}" for name in FIGURES for kind in ("pdf", "png")]


def paper_report(experiment):
    return f"{R}/paper/{experiment}/report.html"


def paper_outputs(experiment):
    """Everything of an experiment: its tables, figures and report, or the metrics alone."""
    if not SETTINGS.experiments[experiment].report:
        return score_files(experiment, "metrics.json", "per_label.parquet")
    return [*paper_tables(experiment), *paper_figures(experiment), paper_report(experiment)]


def asked():
    """The experiments that `all` runs."""
    return [name for name, experiment in SETTINGS.experiments.items() if not experiment.on_request]


def reported():
    """Those of them that have tables, figures and a report."""
    return [name for name in asked() if SETTINGS.experiments[name].report]


def is_open(experiment):
    """Whether the text is real and needs no credentials."""
    dataset = SETTINGS.experiments[experiment].dataset
    return not SETTINGS.is_credentialed(dataset) and not SETTINGS.is_stand_in(dataset)


def item_files(item):
    """A table or figure of the paper, in its formats."""
    kind, formats = ("tables", TABLE_FORMATS) if item.startswith("table") else ("figures", FIGURE_FORMATS)
    return [f"{R}/paper/{kind}/{item}.{suffix}" for suffix in formats]


def grid_outputs():
    """The paper's own tables and figures, what all of it cost, and what it was planned to cost."""
    items = [*SETTINGS.paper.items, *(["table_cost", "figure_cost", "plan"] if SETTINGS.paper.items else [])]
    return [file for item in items for file in grid_item(item)]


def grid_item(item):
    match item:
        case "plan":
            return [f"{R}/paper/plan.{kind}" for kind in ("csv", "md")]
        case "table_cost" | "figure_cost":
            return [file.replace(item, "cost") for file in item_files(item)]
    return item_files(item)


def item_sources(item):
    """What one of the paper's items reads, and nothing else: for `reproduce_table_6`, which runs it."""
    from plant.paper.grid.items import needs  # loads matplotlib

    experiments, datasets = needs(item, SETTINGS)
    return [
        *(f"{R}/corpus/{dataset}/statistics.json" for dataset in datasets),
        *(f"{R}/statistics/{name}/intervals.parquet" for name in experiments if SETTINGS.experiments[name].report),
        *(file for name in experiments for file in score_files(name, "metrics.json", "per_label.parquet")),
    ]


def grid_files(wildcards):
    """What the paper's items wait for: the tables of every experiment that `all` runs, which stand for all that they are
    made from, and the metrics of those without tables. (All files of all experiments would be thousands an item.)"""
    tables = [paper_tables(name)[0] for name in reported()]
    metrics = [file for name in asked() if name not in reported() for file in score_files(name, "metrics.json")]
    return list(dict.fromkeys(tables + metrics))


def datasets_of(experiments):
    return [SETTINGS.experiments[name].dataset for name in experiments]


def grid_settings(**more):
    """The whole config with the paths of all results."""
    paths = {name: paper_paths(name) for name in SETTINGS.experiments}
    return section(*datasets_of(SETTINGS.experiments), config=SETTINGS, paths=paths, **more)


def stage_folders(experiment, stage):
    """Folders of the training runs of an experiment: recipe (Stage 1) or variant (Stage 2) -> one a seed.

    Variants that differ in Stage 3 alone share a network: it stands under the name of the first of them."""
    settings = SETTINGS.experiments[experiment]
    base = f"{R}/{stage}/{settings.dataset}/{settings.backbone}"
    trained = [name for name in settings.variants if SETTINGS.reads_network(name)]
    if stage == "pretraining":
        recipes = {SETTINGS.variants[name].pretraining for name in trained}
        names = {recipe: recipe for recipe in sorted(recipes - {plant_settings.NO_PRETRAINING})}
    else:
        names = {}
        for name in trained:
            if SETTINGS.variants[name].network not in names.values():
                names[name] = SETTINGS.variants[name].network
    return {key: [f"{base}/{name}/seed{seed}" for seed in settings.seeds] for key, name in names.items()}


def attention_files(experiment):
    """Attention of the planted system and its control (first seed); nothing where the text must not be shown."""
    settings = SETTINGS.experiments[experiment]
    if not SETTINGS.documents_shown(settings.dataset):
        return {}
    roles = find_roles(SETTINGS, settings)
    shown = [system.name for system in (roles.planted, roles.control) if system is not None]
    base = f"{R}/evaluation/{settings.dataset}/{settings.backbone}"
    return {
        name: f"{base}/{SETTINGS.variants[name].network}/seed{settings.seeds[0]}/attention.parquet" for name in shown
    }


def paper_paths(experiment):
    """The fields of plant.paper.inputs.Inputs: everything that tables, figures and report read."""
    settings = SETTINGS.experiments[experiment]
    return {
        "statistics": f"{R}/statistics/{experiment}",
        "corpus": f"{R}/corpus/{settings.dataset}",
        "evaluations": system_map(experiment),
        "pretrainings": stage_folders(experiment, "pretraining"),
        "finetunings": stage_folders(experiment, "finetuning"),
        "attention": attention_files(experiment),
        "stages": {
            "corpus": [f"{R}/corpus/{settings.dataset}"],
            "relevance": [f"{R}/relevance/{settings.dataset}/{settings.backbone}"],
            "backbone": [f"{R}/model/{settings.dataset}/{settings.backbone}"],
        },
    }


def paper_files(wildcards):
    return experiment_files(wildcards.experiment)


def experiment_files(name):
    """The files behind `paper_paths`."""
    settings = SETTINGS.experiments[name]
    runs = [
        folder
        for stage in ("pretraining", "finetuning")
        for folders in stage_folders(name, stage).values()
        for folder in folders
    ]
    tests = ("intervals", "wilcoxon", "randomization") if settings.report else ()
    weighed = score_folders(name, "combined") if settings.report and "combined" in settings.baselines else ()
    return [
        *(f"{R}/statistics/{name}/{file}.parquet" for file in tests),
        f"{R}/corpus/{settings.dataset}/statistics.json",
        *score_files(name, "metrics.json", "per_label.parquet"),
        *(f"{folder}/choices.json" for folder in weighed),
        *(f"{folder}/{file}" for folder in runs for file in ("history.parquet", "provenance.json")),
        *(attention_files(name).values() if settings.report else ()),
    ]


def paper_settings(wildcards):
    """The config cut down to one experiment, and the paths of its results."""
    name = wildcards.experiment
    return section(*datasets_of([name]), config=cut_settings(SETTINGS, name), paths=paper_paths(name), experiment=name)


def ablations():
    """Target -> (variant, experiments that hold it)."""
    found = {}
    for name, settings in SETTINGS.experiments.items():
        for variant in settings.variants:
            found.setdefault(f"ablation_{variant}", (variant, []))[1].append(name)
            found[f"ablation_{variant}_in_{name}"] = (variant, [name])
    return found


def pair(wildcards):
    """System -> its score folders: a variant, and the reference of the experiment."""
    names = (wildcards.variant, SETTINGS.experiments[wildcards.experiment].reference)
    return {name: score_folders(wildcards.experiment, name) for name in names}


def pair_folders(wildcards):
    return [folder for folders in pair(wildcards).values() for folder in folders]


def pair_settings(wildcards):
    systems = pair(wildcards)
    return section(
        evaluation=SETTINGS.evaluation, statistics=SETTINGS.statistics, systems=systems, pairs=[list(systems)]
    )


def study_pairs(experiment):
    """The pairs of systems of an experiment that the studies compare."""
    cells = [cell for study in SETTINGS.studies.values() for cell in study.cells]
    return list(dict.fromkeys((cell.system, cell.opponent) for cell in cells if cell.experiment == experiment))


def study_systems(experiment):
    """System, as `study_pairs` names it -> its folders of scores; those of another experiment stand there as
    `<experiment>:<system>`."""
    seeds = SETTINGS.experiments[experiment].seeds
    cells = [cell for study in SETTINGS.studies.values() for cell in study.cells if cell.experiment == experiment]
    return {
        name: score_folders(*side, seeds)
        for cell in cells
        for name, side in zip((cell.system, cell.opponent), cell.sides, strict=True)
    }


def study_experiments(study):
    return list(dict.fromkeys(cell.experiment for cell in SETTINGS.studies[study].cells))


def study_outputs(study):
    """Table of effects, table of factors, figure and page of a study."""
    folder = f"{R}/paper/studies/{study}"
    tables = [f"{folder}/tables/{name}.{kind}" for name in STUDY_TABLES for kind in TABLE_FORMATS]
    return [*tables, *(f"{folder}/figures/effects.{kind}" for kind in FIGURE_FORMATS), f"{folder}/page.md"]


def study_settings(study):
    """The config with the paths of the contrasts that a study reads."""
    names = study_experiments(study)
    return section(
        *datasets_of(names),
        config=SETTINGS,
        study=study,
        contrasts={name: f"{R}/statistics/{name}/contrasts.parquet" for name in names},
    )


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


def experiment_labels(wildcards):
    return f"{R}/corpus/{SETTINGS.experiments[wildcards.experiment].dataset}/labels.parquet"


def statistics_params(wildcards):
    return section(
        SETTINGS.experiments[wildcards.experiment].dataset,
        evaluation=SETTINGS.evaluation,
        statistics=SETTINGS.statistics,
        systems=system_map(wildcards.experiment),
        reference=SETTINGS.experiments[wildcards.experiment].reference,
    )
