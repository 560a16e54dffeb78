"""Names and paths that all rules share. Nothing is computed here.

A path is made of names, never of hashes: results/<room>/<dataset>/<backbone>/<recipe>/seed<seed>/<file>.
"""

import hashlib
import json
import os
import re
import sys
from pathlib import Path

# Nodes and un-activated shells find the environment that runs Snakemake, and the package beside this file.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]),
    PYTHONPATH=str(Path(workflow.basedir) / "src"),
)
sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from plant import settings as plant_settings
from plant.errors import InputError
from plant.evaluation.names import find
from plant.files import atomic_path
from plant.paper import FIGURES, TABLE_FORMATS, TABLES
from plant.paper.systems import cut_settings, find_roles
from plant.provenance import digest

try:
    SETTINGS = plant_settings.load(config)
    for metric in {*SETTINGS.statistics.metrics, *SETTINGS.paper.metrics, *SETTINGS.paper.headline}:
        find(metric, SETTINGS.evaluation)
except InputError as error:
    raise WorkflowError(str(error)) from None

R = SETTINGS.results
SCORES = ["val.scores.parquet", "test.scores.parquet"]
# relative, so that a repository that has moved reruns nothing
HERE = Path(os.path.relpath(workflow.basedir))
SCRIPTS = HERE / "workflow" / "scripts"


def one_of(names):
    return "|".join(re.escape(name) for name in names) or "(?!)"


# `<results>` in a rule's paths
pathvars:
    results=R,


wildcard_constraints:
    dataset=one_of(SETTINGS.datasets),
    backbone=one_of(SETTINGS.backbones),
    pretraining=one_of(SETTINGS.pretrainings),
    initial=one_of([plant_settings.NO_PRETRAINING, *SETTINGS.pretrainings]),
    finetuning=one_of(SETTINGS.finetunings),
    measure=one_of(plant_settings.MEASURES),
    experiment=one_of(SETTINGS.experiments),
    seed=r"\d+",


def section(**parts):
    """A file with the settings that one job depends on; its name is a digest of what is in it.

    The name is a parameter of the job: a change of these settings reruns the job, a change elsewhere does not.
    """
    plain = {
        name: part.model_dump(mode="json") if hasattr(part, "model_dump") else part for name, part in parts.items()
    }
    text = json.dumps(plain, sort_keys=True, indent=1)
    target = Path(R) / "settings" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if not target.is_file():
        with atomic_path(target) as partial:
            partial.write_text(text, encoding="utf-8")
    return str(target)


def script(name):
    return f"python {SCRIPTS / name}.py"


def attempts(megabytes):
    """Memory that grows with each attempt."""
    return lambda wildcards, attempt: megabytes * attempt


def system_of(variant):
    """Folder name of a variant (two variants of the same recipes are one run) or of a baseline."""
    if variant in plant_settings.BASELINES:
        return variant
    recipe = SETTINGS.variants[variant]
    return f"{recipe.pretraining}+{recipe.finetuning}"


def score_folders(experiment, system):
    """The score folders of a system: one a seed, one alone for a baseline."""
    settings = SETTINGS.experiments[experiment]
    baseline = system in plant_settings.BASELINES
    backbone = "words" if baseline else settings.backbone
    seeds = (0,) if baseline else settings.seeds
    return [f"{R}/evaluation/{settings.dataset}/{backbone}/{system_of(system)}/seed{seed}" for seed in seeds]


def systems(experiment):
    settings = SETTINGS.experiments[experiment]
    return [*settings.variants, *settings.baselines]


def score_files(experiment, *files):
    return [
        f"{folder}/{file}"
        for system in systems(experiment)
        for folder in score_folders(experiment, system)
        for file in files
    ]


def system_map(experiment):
    """System -> its score folders."""
    return {system: score_folders(experiment, system) for system in systems(experiment)}


def backbone_source(wildcards):
    """Where a backbone is loaded from: its hub id or folder, or the random one that this pipeline made."""
    settings = SETTINGS.backbones[wildcards.backbone]
    if settings.kind == "pretrained":
        return settings.path
    return f"{R}/model/{wildcards.dataset}/{wildcards.backbone}/backbone"


def backbone_files(wildcards):
    """What a training job waits for beside tokens: the random backbone, cached features, or nothing."""
    settings = SETTINGS.backbones[wildcards.backbone]
    folder = f"{R}/model/{wildcards.dataset}/{wildcards.backbone}"
    files = {} if settings.kind == "pretrained" else {"backbone": f"{folder}/backbone"}
    return files | ({"features": f"{folder}/features.safetensors"} if settings.cache_features else {})


def features_option(wildcards):
    """`--features <file>` where hidden states are cached."""
    files = backbone_files(wildcards)
    return f"--features {files['features']}" if "features" in files else ""


def corpus_files(wildcards):
    folder = f"{R}/corpus/{wildcards.dataset}"
    return {
        "labels": f"{folder}/labels.safetensors",
        "tokens": f"{folder}/{wildcards.backbone}/tokens.safetensors",
    }


def paper_tables(experiment):
    return [f"{R}/paper/{experiment}/tables/{name}.{kind}" for name in TABLES for kind in TABLE_FORMATS]


def paper_figures(experiment):
    return [f"{R}/paper/{experiment}/figures/{name}.{kind}" for name in FIGURES for kind in ("pdf", "png")]


def paper_report(experiment):
    return f"{R}/paper/{experiment}/report.html"


def paper_outputs(experiment):
    return [*paper_tables(experiment), *paper_figures(experiment), paper_report(experiment)]


def stage_folders(experiment, stage):
    """Folders of the training runs of an experiment: recipe (Stage 1) or variant (Stage 2) -> one a seed."""
    settings = SETTINGS.experiments[experiment]
    base = f"{R}/{stage}/{settings.dataset}/{settings.backbone}"
    if stage == "pretraining":
        recipes = {SETTINGS.variants[name].pretraining for name in settings.variants}
        names = {recipe: recipe for recipe in sorted(recipes - {plant_settings.NO_PRETRAINING})}
    else:
        names = {name: system_of(name) for name in settings.variants}
    return {key: [f"{base}/{name}/seed{seed}" for seed in settings.seeds] for key, name in names.items()}


def attention_files(experiment):
    """Attention of the planted system and its control (first seed); nothing where the text must not be shown."""
    settings = SETTINGS.experiments[experiment]
    hidden = SETTINGS.datasets[settings.dataset].credentialed and not SETTINGS.evaluation.show_credentialed
    if hidden or not SETTINGS.evaluation.attention_documents:
        return {}
    roles = find_roles(SETTINGS, settings)
    shown = [system.name for system in (roles.planted, roles.control) if system is not None]
    return {name: f"{score_folders(experiment, name)[0]}/attention.parquet" for name in shown}


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
    """The files behind `paper_paths`."""
    name = wildcards.experiment
    settings = SETTINGS.experiments[name]
    runs = [
        folder
        for stage in ("pretraining", "finetuning")
        for folders in stage_folders(name, stage).values()
        for folder in folders
    ]
    return [
        *(f"{R}/statistics/{name}/{file}.parquet" for file in ("intervals", "wilcoxon", "randomization")),
        f"{R}/corpus/{settings.dataset}/statistics.json",
        *score_files(name, "metrics.json", "per_label.parquet"),
        *(f"{folder}/{file}" for folder in runs for file in ("history.parquet", "provenance.json")),
        *attention_files(name).values(),
    ]


def paper_settings(wildcards):
    """The config cut down to one experiment, and the paths of its results."""
    name = wildcards.experiment
    return section(config=cut_settings(SETTINGS, name), paths=paper_paths(name), experiment=name)


def raw_files(wildcards):
    settings = SETTINGS.datasets[wildcards.dataset]
    return f"{R}/corpus/{wildcards.dataset}/raw" if getattr(settings, "generate", None) else []


def tokenizer_source(wildcards):
    if SETTINGS.backbones[wildcards.backbone].kind == "random":
        return f"{R}/corpus/{wildcards.dataset}/{wildcards.backbone}/tokenizer"
    return []


def planted_files(wildcards):
    if wildcards.initial == plant_settings.NO_PRETRAINING:
        return []
    folder = f"{R}/pretraining/{wildcards.dataset}/{wildcards.backbone}/{wildcards.initial}/seed{wildcards.seed}"
    return [f"{folder}/label_attention.safetensors", f"{folder}/backbone.safetensors"]


def experiment_labels(wildcards):
    return f"{R}/corpus/{SETTINGS.experiments[wildcards.experiment].dataset}/labels.parquet"


def statistics_params(wildcards):
    return section(
        evaluation=SETTINGS.evaluation,
        statistics=SETTINGS.statistics,
        systems=system_map(wildcards.experiment),
        reference=SETTINGS.experiments[wildcards.experiment].reference,
    )
