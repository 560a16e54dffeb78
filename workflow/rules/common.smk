"""Names and paths that all rules share. Nothing is computed here.

A path is made of names, never of hashes: results/<room>/<dataset>/<backbone>/<recipe>/seed<seed>/<file>.
"""

import hashlib
import json
import os
import re
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import get_args

# Nodes and un-activated shells find the environment that runs Snakemake, and the package beside this file.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]),
    PYTHONPATH=str(Path(workflow.basedir) / "src"),
    TORCHDYNAMO_DISABLE="1",  # nothing here compiles with torch; to load its compiler takes every LoRA job 1.5 s
)
sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from plant.baselines.registry import baselines, channels, check
from plant.ground import settings as plant_settings
from plant.ground.errors import InputError
from plant.metrics.names import find
from plant.ground.files import atomic_path, explain
from plant.paper import FIGURE_FORMATS, FIGURES, STUDY_TABLES, TABLE_FORMATS, TABLES
from plant.paper.plan import jobs as paper_jobs
from plant.paper.systems import cut_settings, find_roles
from plant.ground.provenance import digest

plant_settings.forget_foreign_nulls(config)
try:
    SETTINGS = plant_settings.load(config)
    for metric in {*SETTINGS.statistics.metrics, *SETTINGS.paper.metrics, *SETTINGS.paper.headline}:
        find(metric, SETTINGS.evaluation)
    check(SETTINGS)
except InputError as error:
    raise WorkflowError(str(error)) from None

R = SETTINGS.results
SCORES = ["val.scores.parquet", "test.scores.parquet"]
WEIGHTS = ["label_attention.safetensors", "backbone.safetensors"]
# relative, so that a repository that has moved reruns nothing
HERE = Path(os.path.relpath(workflow.basedir))
SCRIPTS = HERE / "workflow" / "scripts"
# Every option is given, so that a user's own default config of accelerate plays no part. The processes have a quarter of
# an hour to write their state when the launcher is asked to end.
ACCELERATE = (
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=900 accelerate launch --multi_gpu --num_machines 1 --mixed_precision no"
    f" --dynamo_backend no --num_cpu_threads_per_process {SETTINGS.compute.threads} --main_process_port 0"
)


def one_of(names):
    return "|".join(re.escape(name) for name in names) or "(?!)"


# `<results>` in a rule's paths
pathvars:
    results=R,


wildcard_constraints:
    dataset=one_of(SETTINGS.datasets),
    backbone=one_of(SETTINGS.backbones),
    pretraining=one_of(SETTINGS.pretrainings),
    # a Stage 1 recipe, or one of its epochs: plant, plant@3, none
    initial=rf"{plant_settings.NO_PRETRAINING}|(?:{one_of(SETTINGS.pretrainings)})(?:@\d+)?",
    finetuning=one_of([*SETTINGS.finetunings, *SETTINGS.points]),
    evidence=one_of(SETTINGS.evidences),
    measure=one_of(plant_settings.MEASURES),
    experiment=one_of(SETTINGS.experiments),
    study=one_of(SETTINGS.studies),
    tuning=one_of(SETTINGS.tunings),
    seed=r"\d+",


def section(*datasets, **parts):
    """A file with the settings that one job depends on; its name is a digest of what is in it.

    The name is a parameter of the job: a change of these settings reruns the job, a change elsewhere does not.
    `datasets` are those that the job works on: where one of them is credentialed, the job is told that it is private.
    """
    if any(map(SETTINGS.is_credentialed, datasets)):
        parts["private"] = True
    plain = {
        name: part.model_dump(mode="json") if hasattr(part, "model_dump") else part for name, part in parts.items()
    }
    text = json.dumps(plain, sort_keys=True, indent=1)
    target = Path(R) / "settings" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if not target.is_file():
        try:
            with atomic_path(target) as partial:
                partial.write_text(text, encoding="utf-8")
        except OSError as error:  # a full or read-only disk
            raise WorkflowError(str(explain(error, [target]) or error)) from None
    return str(target)


def script(name):
    return f"python {shlex.quote(f'{SCRIPTS / name}.py')}"


def launch(name):
    """The command of a training script: one process, or one a device of the backbone (choice of `parallel`).

    It takes the shell's place: a shell that is told to end would do so at once, and the cluster would not wait until
    its training has written a state.
    """

    def command(wildcards):
        backbone = SETTINGS.backbones[wildcards.backbone]
        if backbone.devices == 1 or backbone.parallel == "layers":
            return f"exec {script(name)}"
        return f"exec env {ACCELERATE} --num_processes {backbone.devices} {shlex.quote(f'{SCRIPTS / name}.py')}"

    return command


def training_threads(wildcards):
    return SETTINGS.compute.threads * (devices(wildcards) if not is_layered(wildcards) else 1)


def is_layered(wildcards):
    """Whether the backbone's layers are spread over the devices of one process."""
    return SETTINGS.backbones[wildcards.backbone].parallel == "layers"


def devices(wildcards):
    """GPUs of a training job."""
    return SETTINGS.backbones[wildcards.backbone].devices


def devices_of_one_process(wildcards):
    """GPUs of a job that only runs the backbone: more than one where its layers are spread."""
    return devices(wildcards) if is_layered(wildcards) else 1


def attempts(megabytes):
    """Memory that grows with each attempt."""
    return lambda wildcards, attempt: megabytes * attempt


def system_of(variant):
    """Folder name of a variant (two variants of the same recipes are one run) or of a baseline."""
    if variant in baselines():
        return variant
    return paper_jobs.system_of(SETTINGS.variants[variant])


def stage2_of(wildcards):
    """The recipe of a run of Stage 2, with the rates that a tuning chose for it."""
    return SETTINGS.stage2(wildcards.dataset, wildcards.backbone, f"{wildcards.initial}+{wildcards.finetuning}")


def score_folders(experiment, system, seeds=None):
    """The score folders of a system: one a seed (of the experiment, or of `seeds`), one alone for a baseline."""
    settings = SETTINGS.experiments[experiment]
    baseline = system in baselines()
    backbone = "words" if baseline else settings.backbone
    seeds = (0,) if baseline else seeds or settings.seeds
    return [f"{R}/evaluation/{settings.dataset}/{backbone}/{system_of(system)}/seed{seed}" for seed in seeds]


def channel_folders(wildcards):
    """Channel -> folder of its scores, of the channels that a Stage 3 recipe adds up (the prior has none)."""
    base = f"{R}/evaluation/{wildcards.dataset}"
    network = f"{base}/{wildcards.backbone}/{wildcards.initial}+{wildcards.finetuning}/seed{wildcards.seed}"
    folders = {channel: f"{base}/words/{entry.name}/seed0" for channel, entry in channels().items()}
    return {
        channel: {"network": network, **folders}[channel]
        for channel in SETTINGS.evidences[wildcards.evidence].channels
        if channel != "prior"
    }


BASELINE_INPUTS = {
    "documents": [f"{R}/corpus/{{dataset}}/{split}.parquet" for split in ("train", "val", "test")],
    "labels": [f"{R}/corpus/{{dataset}}/labels.{ending}" for ending in ("parquet", "safetensors")],
    "tokens": [f"{R}/corpus/{{dataset}}/words/tokens.safetensors"],
    "relevance": [f"{R}/relevance/{{dataset}}/words/mig.parquet"],
    "mentions": [f"{R}/corpus/{{dataset}}/mentions.parquet"],
}


def baseline_inputs(entry):
    """Kind of input -> files; the scores of other baselines are of the kind `scores`."""
    files = {kind: BASELINE_INPUTS[kind] for kind in entry.inputs if kind in BASELINE_INPUTS}
    parts = [name for name in entry.inputs if name not in BASELINE_INPUTS]
    scores = [f"{R}/evaluation/{{dataset}}/words/{name}/seed0/{file}" for name in parts for file in SCORES]
    return files | ({"scores": scores} if scores else {})


def baseline_settings(entry):
    def settings(wildcards):
        dataset = SETTINGS.datasets[wildcards.dataset]
        measured = entry.needs == "category_ends"  # it counts the words of categories itself
        return section(
            wildcards.dataset,
            baselines=SETTINGS.baselines,
            evaluation=SETTINGS.evaluation,
            relevance=SETTINGS.relevance if measured else {},
            category_ends=dataset.category_ends if measured else None,
        )

    return settings


def evidence_files(wildcards):
    """What Stage 3 reads beside the corpus: scores, what the baselines know of words, and tokens to show reasons."""
    found, known = {}, channels()
    for name, folder in channel_folders(wildcards).items():
        words = ["choices.json", *known[name].outputs] if name in known else []
        found[name] = [f"{folder}/{file}" for file in [*SCORES, *words]]
    if any("tokens" in known[name].inputs for name in found if name in known) and reasons_shown(wildcards):
        found["tokens"] = f"{R}/corpus/{wildcards.dataset}/words/tokens.safetensors"
    return found


def reasons_shown(wildcards):
    """Test documents whose reasons are written; none of a text that must not be shown."""
    return SETTINGS.documents_shown(wildcards.dataset)


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


def random_backbone_files(wildcards):
    """The random backbone that this pipeline makes, or nothing."""
    made = SETTINGS.backbones[wildcards.backbone].kind == "random"
    return {"backbone": f"{R}/model/{wildcards.dataset}/{wildcards.backbone}/backbone"} if made else {}


def backbone_files(wildcards):
    """What a training job waits for beside tokens: the random backbone, cached features, or nothing."""
    settings = SETTINGS.backbones[wildcards.backbone]
    folder = f"{R}/model/{wildcards.dataset}/{wildcards.backbone}"
    return random_backbone_files(wildcards) | (
        {"features": f"{folder}/features.safetensors"} if settings.cache_features else {}
    )


def corpus_files(wildcards):
    folder = f"{R}/corpus/{wildcards.dataset}"
    return {
        "labels": f"{folder}/labels.safetensors",
        "tokens": f"{folder}/{wildcards.backbone}/tokens.safetensors",
    }


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


def downloads(wildcards):
    """The declared downloads that a dataset reads. Ends the run where the config names what is not there."""
    if absent(wildcards.dataset):
        used = [SETTINGS.experiments[name].dataset for name in asked()]  # all of `all` in one message
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
    """Key of the config -> path of what is not there, for a corpus that has yet to be made."""
    made = Path(f"{R}/corpus/{dataset}/labels.parquet").exists()
    return {} if made else SETTINGS.absent(dataset)


def corpus_settings(wildcards):
    """The dataset's section, without what only the plan of the grid and Stage 3 read."""
    dataset = SETTINGS.datasets[wildcards.dataset]
    expected = dataset.expected.model_copy(update={"tokens": None})
    return section(wildcards.dataset, dataset=dataset.model_copy(update={"expected": expected, "category_ends": None}))


def stand_in(wildcards):
    """The folder of the generated raw files, where the dataset has some."""
    return f"{R}/corpus/{wildcards.dataset}/raw" if wildcards.dataset in STAND_INS else []


def whole_folder(wildcards):
    """Corpus folder of the dataset that a subset is a part of."""
    return f"{R}/corpus/{SETTINGS.whole(wildcards.dataset)}"


def whole_files(wildcards):
    names = ("train", "val", "test", "labels")
    return [
        *(f"{whole_folder(wildcards)}/{name}.parquet" for name in names),
        f"{whole_folder(wildcards)}/statistics.json",
    ]


def tokenizer_source(wildcards):
    if SETTINGS.backbones[wildcards.backbone].kind == "random":
        return f"{R}/corpus/{wildcards.dataset}/{wildcards.backbone}/tokenizer"
    return []


def tokenizer_of_descriptions(wildcards):
    """The tokenizer that this pipeline trained, where descriptions are read (choice C28)."""
    trained = tokenizer_source(wildcards)
    return {"tokenizer": trained} if trained and wildcards.measure == "description" else {}


def relevance_settings(wildcards):
    if wildcards.measure != "description":
        return section(wildcards.dataset, relevance=SETTINGS.relevance)
    return section(wildcards.dataset, relevance=SETTINGS.relevance, backbone=SETTINGS.backbones[wildcards.backbone])


def planted_folder(wildcards):
    """(folder of the Stage 1 run, folder of the weights that Stage 2 starts from); None without Stage 1."""
    recipe, _, epoch = wildcards.initial.partition("@")
    if recipe == plant_settings.NO_PRETRAINING:
        return None
    folder = f"{R}/pretraining/{wildcards.dataset}/{wildcards.backbone}/{recipe}/seed{wildcards.seed}"
    return folder, f"{folder}/epochs/{epoch}" if epoch else folder


def planted_files(wildcards):
    """What Stage 2 waits for: the weights of Stage 1, or the folder with those of its epochs."""
    found = planted_folder(wildcards)
    if found is None:
        return []
    run, weights = found
    return [f"{run}/epochs"] if run != weights else [f"{run}/{name}" for name in WEIGHTS]


def planted_option(wildcards):
    found = planted_folder(wildcards)
    return "" if found is None else shlex.join(["--planted", *(f"{found[1]}/{name}" for name in WEIGHTS)])


def candidates(wildcards):
    """The shortlists that Stage 2 and prediction read, where the recipe asks for some."""
    size = stage2_of(wildcards).shortlist
    folder = f"{R}/relevance/{wildcards.dataset}/{wildcards.backbone}"
    return {} if size is None else {"shortlist": f"{folder}/mig.shortlist{size}.safetensors"}


def kept_evidence(wildcards):
    """Relevance and log-odds that Stage 2 and prediction read, where the recipe keeps some (choices C26, C27)."""
    recipe = stage2_of(wildcards)
    folder = f"{R}/relevance/{wildcards.dataset}/{wildcards.backbone}"
    static = {"static": f"{folder}/{recipe.static_measure}.safetensors"} if recipe.static_attention else {}
    if recipe.residual is None:
        return static
    return static | {"residual": f"{folder}/mig.residual{recipe.residual}x{recipe.residual_folds}.safetensors"}


def start_of(recipe):
    """Label embeddings that a recipe starts from, where it asks for some."""

    def files(wildcards):
        folder = f"{R}/model/{wildcards.dataset}/{wildcards.backbone}"
        described = recipe(wildcards).initialisation == "descriptions"
        return {"embeddings": f"{folder}/label_embeddings.safetensors"} if described else {}

    return files


def start_without_stage_1(wildcards):
    """Label embeddings of Stage 2 where no Stage 1 trained them."""
    if wildcards.initial != plant_settings.NO_PRETRAINING:
        return {}
    return start_of(stage2_of)(wildcards)


def options(wildcards, input, *names):
    """`--name file` for those of the names that the job has as input."""
    return " ".join(f"--{name} {shlex.quote(input[name])}" for name in names if name in input.keys())
