"""What the jobs of several rules read, where it depends on the config. The paths of results are those of
src/plant/paper/paths.py."""

CORPUS_FILES = [
    "train.parquet",
    "val.parquet",
    "test.parquet",
    "labels.parquet",
    "labels.safetensors",
    "statistics.json",
    "provenance.json",
]
SUBSETS = [name for name, dataset in SETTINGS.datasets.items() if dataset.source == "subset"]
STAND_INS = [name for name, dataset in SETTINGS.datasets.items() if getattr(dataset, "generate", None)]
DOWNLOADS = {str(Path(download.path)): download for download in SETTINGS.downloads.values()}
ARCHIVES = [path for path, download in DOWNLOADS.items() if download.unpack]
# The experiments that `all` runs, and those of them that have tables, figures and a report.
ASKED = [name for name, experiment in SETTINGS.experiments.items() if not experiment.on_request]
REPORTED = [name for name in ASKED if SETTINGS.experiments[name].report]


# --- corpus


def downloads(wildcards):
    """The declared downloads that a dataset reads. Ends the run where the config names what is not there."""
    if absent(wildcards.dataset):
        used = [SETTINGS.experiments[name].dataset for name in ASKED]  # all of `all` in one message
        names = dict.fromkeys([*map(SETTINGS.whole, used), *used, wildcards.dataset])
        places = "\n".join(f"  {key}: {path}" for name in names for key, path in absent(name).items())
        # Snakemake would print an exception of an input function with a traceback
        raise SystemExit(
            f"error: config: expected data at the paths that it names, got nothing there:\n{places}\n"
            "Put the data there, or set these keys to where it lies."
        )
    paths = SETTINGS.datasets[wildcards.dataset].sources.values()
    return list(dict.fromkeys(file for path in paths for file in SETTINGS.downloads_of(path)))


def absent(dataset):
    """Key of the config -> path of what is not there, for a corpus that has yet to be made (a plan needs no data)."""
    made = Path(f"{R}/corpus/{dataset}/labels.parquet").exists()
    return {} if made or "PLANT_PLAN" in os.environ else SETTINGS.absent(dataset)


def corpus_settings(wildcards):
    """The dataset's section, without what only the plan of the grid and Stage 3 read."""
    dataset = SETTINGS.datasets[wildcards.dataset]
    expected = dataset.expected.model_copy(update={"tokens": None})
    return section(wildcards.dataset, dataset=dataset.model_copy(update={"expected": expected, "category_ends": None}))


def made_tokenizer(wildcards):
    """The tokenizer that this pipeline trains for a random backbone, or nothing."""
    random = SETTINGS.backbones[wildcards.backbone].kind == "random"
    return f"{R}/corpus/{wildcards.dataset}/{wildcards.backbone}/tokenizer" if random else []


# --- model


def backbone_source(wildcards):
    """Where a backbone is loaded from: its hub id or folder, or what this pipeline makes for it (`made_backbone`)."""
    settings = SETTINGS.backbones[wildcards.backbone]
    return settings.path if settings.kind == "pretrained" else made_backbone(wildcards) or ""


def made_backbone(wildcards):
    """The random transformer, the language model or the word vectors that this pipeline makes, or nothing."""
    settings, folder = SETTINGS.backbones[wildcards.backbone], f"{R}/model/{wildcards.dataset}/{wildcards.backbone}"
    if settings.kind == "word_network" and settings.language_model:
        return f"{folder}/language_model.safetensors"
    if settings.kind == "word_network":
        return [] if settings.word_vectors is None else f"{folder}/word_vectors.safetensors"
    return f"{folder}/backbone" if settings.kind == "random" else []


def features(wildcards):
    """Cached hidden states, where the backbone has some."""
    folder = f"{R}/model/{wildcards.dataset}/{wildcards.backbone}"
    return f"{folder}/features.safetensors" if SETTINGS.backbones[wildcards.backbone].cache_features else []


def label_embeddings(recipe, wildcards):
    """Label embeddings that a recipe starts from, where it asks for some."""
    folder = f"{R}/model/{wildcards.dataset}/{wildcards.backbone}"
    return f"{folder}/label_embeddings.safetensors" if recipe.initialisation == "descriptions" else []


# --- Stage 1 and Stage 2


def stage1_of(wildcards):
    return SETTINGS.pretrainings[wildcards.pretraining]


stage1_settings = settings_of("backbone", "compute", pretraining=stage1_of)


def stage2_of(wildcards):
    """The recipe of a run of Stage 2, with the rates that a tuning chose for it."""
    return SETTINGS.stage2(wildcards.dataset, wildcards.backbone, f"{wildcards.initial}+{wildcards.finetuning}")


stage2_settings = settings_of("backbone", "compute", finetuning=stage2_of)


def start_without_stage_1(wildcards):
    """Label embeddings of Stage 2 where no Stage 1 trained them."""
    planted = wildcards.initial != plant_settings.NO_PRETRAINING
    return [] if planted else label_embeddings(stage2_of(wildcards), wildcards)


def planted(wildcards):
    """What Stage 2 waits for: the weights of Stage 1, or the folder with those of its epochs."""
    recipe, _, epoch = wildcards.initial.partition("@")
    folder = f"{R}/pretraining/{wildcards.dataset}/{wildcards.backbone}/{recipe}/seed{wildcards.seed}"
    if recipe == plant_settings.NO_PRETRAINING:
        return []
    return f"{folder}/epochs" if epoch else [f"{folder}/{name}" for name in WEIGHTS]


def planted_weights(wildcards):
    """The weights that Stage 2 starts from."""
    waits, epoch = planted(wildcards), wildcards.initial.partition("@")[2]
    return [f"{waits}/{epoch}/{name}" for name in WEIGHTS] if epoch else waits


def shortlist(wildcards):
    """The candidates that Stage 2 and prediction read, where the recipe asks for some."""
    size = stage2_of(wildcards).shortlist
    folder = f"{R}/relevance/{wildcards.dataset}/{wildcards.backbone}"
    return [] if size is None else f"{folder}/mig.shortlist{size}.safetensors"


def static(wildcards):
    """Relevance that Stage 2 and prediction add to the attention, where the recipe keeps some (choice C26)."""
    recipe, folder = stage2_of(wildcards), f"{R}/relevance/{wildcards.dataset}/{wildcards.backbone}"
    return f"{folder}/{recipe.static_measure}.safetensors" if recipe.static_attention else []


def residual(wildcards):
    """Log-odds that Stage 2 and prediction add to the logits, where the recipe keeps some (choice C27)."""
    recipe, folder = stage2_of(wildcards), f"{R}/relevance/{wildcards.dataset}/{wildcards.backbone}"
    return (
        [] if recipe.residual is None else f"{folder}/mig.residual{recipe.residual}x{recipe.residual_folds}.safetensors"
    )


# --- evaluation and statistics


BASELINE_INPUTS = {
    "documents": [f"{R}/corpus/{{dataset}}/{split}.parquet" for split in ("train", "val", "test")],
    "labels": [f"{R}/corpus/{{dataset}}/labels.{ending}" for ending in ("parquet", "safetensors")],
    "tokens": f"{R}/corpus/{{dataset}}/words/tokens.safetensors",
    "relevance": f"{R}/relevance/{{dataset}}/words/mig.parquet",
    "mentions": f"{R}/corpus/{{dataset}}/mentions.parquet",
}


def baseline_inputs(entry):
    """Kind of input -> files; the scores of other baselines are of the kind `scores`."""
    files = {kind: BASELINE_INPUTS[kind] for kind in entry.inputs if kind in BASELINE_INPUTS}
    parts = [f"{R}/evaluation/{{dataset}}/words/{name}/seed0" for name in entry.inputs if name not in BASELINE_INPUTS]
    return files | ({"scores": in_folders([parts], SCORES)} if parts else {})


def baseline_settings(entry, wildcards):
    measured = entry.needs == "category_ends"  # it counts the words of categories itself
    return section(
        wildcards.dataset,
        baselines=SETTINGS.baselines,
        evaluation=SETTINGS.evaluation,
        relevance=SETTINGS.relevance if measured else {},
        category_ends=SETTINGS.datasets[wildcards.dataset].category_ends if measured else None,
    )


def channels(wildcards):
    """Channel -> folder of its scores, of the channels that a Stage 3 recipe adds up (the prior has none)."""
    base = f"{R}/evaluation/{wildcards.dataset}"
    network = f"{base}/{wildcards.backbone}/{wildcards.initial}+{wildcards.finetuning}/seed{wildcards.seed}"
    folders = {channel: f"{base}/words/{entry.name}/seed0" for channel, entry in known_channels().items()}
    folders["network"] = network
    asked = SETTINGS.evidences[wildcards.evidence].channels
    return {channel: folders[channel] for channel in asked if channel != "prior"}


def words_of_reasons(wildcards):
    """The tokens of the words, where reasons are shown and a channel counts words."""
    entries = [entry for channel, entry in known_channels().items() if channel in channels(wildcards)]
    shown = any("tokens" in entry.inputs for entry in entries) and SETTINGS.documents_shown(wildcards.dataset)
    return f"{R}/corpus/{wildcards.dataset}/words/tokens.safetensors" if shown else []


def experiment_labels(wildcards):
    return f"{R}/corpus/{SETTINGS.experiments[wildcards.experiment].dataset}/labels.parquet"


def compared(systems, **more):
    """The settings of a job that compares systems of an experiment."""

    def settings(wildcards):
        return section(
            SETTINGS.experiments[wildcards.experiment].dataset,
            evaluation=SETTINGS.evaluation,
            statistics=SETTINGS.statistics,
            systems=systems(wildcards),
            **{name: part(wildcards) for name, part in more.items()},
        )

    return settings


def contrasted(wildcards):
    """System -> its score folders: a variant, and the reference of the experiment."""
    names = (wildcards.variant, SETTINGS.experiments[wildcards.experiment].reference)
    return {name: PATHS.scores(wildcards.experiment, name) for name in names}


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


def study_pairs(wildcards):
    """The pairs of systems of an experiment that the studies compare."""
    return list(dict.fromkeys((cell.system, cell.opponent) for cell in study_cells(wildcards.experiment)))


# --- paper

PLAN = [f"{R}/paper/plan.{kind}" for kind in ("csv", "md")]


def is_open(dataset):
    """Whether the text is real and needs no credentials."""
    return not SETTINGS.is_credentialed(dataset) and not SETTINGS.is_stand_in(dataset)


def ablations():
    """Target -> (variant, experiments that hold it)."""
    found = {}
    for name, settings in SETTINGS.experiments.items():
        for variant in settings.variants:
            found.setdefault(f"ablation_{variant}", (variant, []))[1].append(name)
            found[f"ablation_{variant}_in_{name}"] = (variant, [name])
    return found


def grid_outputs():
    """The paper's own tables and figures, what all of it cost, and what it was planned to cost."""
    items = [*SETTINGS.paper.items, "table_cost", "figure_cost"] if SETTINGS.paper.items else []
    return [*(file for item in items for file in PATHS.item(item)), *(PLAN if items else [])]


def item_sources(item, wildcards):
    """What one of the paper's items reads, and nothing else: for `reproduce_table_6`, which runs it."""
    from plant.paper.grid.items import needs  # loads matplotlib

    experiments, datasets = needs(item, SETTINGS)
    return [
        *(f"{R}/corpus/{dataset}/statistics.json" for dataset in datasets),
        *(f"{R}/statistics/{name}/intervals.parquet" for name in experiments if SETTINGS.experiments[name].report),
        *(file for name in experiments for file in PATHS.score_files(name, *METRICS)),
    ]


def experiment_settings(wildcards):
    """The config cut down to one experiment, and the paths of its results."""
    name = wildcards.experiment
    cut = cut_settings(SETTINGS, name)
    return section(SETTINGS.experiments[name].dataset, config=cut, paths=PATHS.inputs(name), experiment=name)


def grid_settings(**more):
    """The whole config, and the paths of all results."""
    datasets = [experiment.dataset for experiment in SETTINGS.experiments.values()]
    paths = {name: PATHS.inputs(name) for name in SETTINGS.experiments}
    return section(*datasets, config=CONFIG, paths=paths, **more)


def grid_files(wildcards):
    """What the paper's items wait for: a table of every experiment that `all` runs, which stands for all that it is
    made from, and the metrics of those without tables. (All files of all experiments would be thousands an item.)"""
    tables = [PATHS.tables(name)[0] for name in REPORTED]
    metrics = [file for name in ASKED if name not in REPORTED for file in PATHS.score_files(name, "metrics.json")]
    return list(dict.fromkeys(tables + metrics))


def graph_digest():
    """A digest of the rules: the plan counts their jobs."""
    files = [Path(workflow.basedir) / "Snakefile", *sorted((SCRIPTS.parent / "rules").glob("*.smk"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def study_settings(wildcards):
    """The config, and the contrasts that a study reads."""
    contrasts = study_contrasts(wildcards.study)
    datasets = [SETTINGS.experiments[name].dataset for name in contrasts]
    return section(*datasets, config=CONFIG, study=wildcards.study, contrasts=contrasts)


def study_contrasts(study):
    """Experiment -> the contrasts that a study reads."""
    names = dict.fromkeys(cell.experiment for cell in SETTINGS.studies[study].cells)
    return {name: f"{R}/statistics/{name}/contrasts.parquet" for name in names}


# --- tuning


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
