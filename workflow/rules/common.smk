"""What all rules share: the config as typed settings, the wildcards, and how a job gets its settings and its resources.

Sets the environment of all jobs: nodes and un-activated shells find the Python that runs Snakemake, and the package
beside this file.
"""

import hashlib
import json
import os
import re
import shlex
import sys
from functools import cache, partial
from pathlib import Path
from typing import get_args

os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]),
    PYTHONPATH=str(Path(workflow.basedir) / "src"),
    TORCHDYNAMO_DISABLE="1",  # nothing here compiles with torch; to load its compiler takes every LoRA job 1.5 s
)
sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from plant.baselines.registry import baselines, check
from plant.baselines.registry import channels as known_channels
from plant.finetuning.losses import check_losses, loss_module
from plant.ground import settings as plant_settings
from plant.ground.errors import InputError
from plant.ground.job import describe
from plant.ground.provenance import digest
from plant.metrics.names import find
from plant.model.registry import check as check_networks
from plant.model.registry import modules_of
from plant.paper import FIGURES
from plant.paper.paths import METRICS, SCORES, Paths, in_folders
from plant.paper.systems import cut_settings
from plant.relevance.measures import MEASURES, check_measures

plant_settings.forget_foreign_nulls(config)
try:
    SETTINGS = plant_settings.load(config)
    for metric in {*SETTINGS.statistics.metrics, *SETTINGS.paper.metrics, *SETTINGS.paper.headline}:
        find(metric, SETTINGS.evaluation)
    check_measures(SETTINGS)
    check_losses(SETTINGS)
    check(SETTINGS)
    check_networks(SETTINGS)
except InputError as error:
    raise WorkflowError(str(error)) from None

R = SETTINGS.results
PATHS = Paths(SETTINGS)
CONFIG = SETTINGS.model_dump(mode="json")
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
    measure=one_of(MEASURES),
    experiment=one_of(SETTINGS.experiments),
    study=one_of(SETTINGS.studies),
    tuning=one_of(SETTINGS.tunings),
    variant=one_of(SETTINGS.variants),
    seed=r"\d+",


def section(*datasets, **parts):
    """The settings that one job depends on, as plain data: a change of these reruns the job, a change elsewhere does
    not. Where one of the datasets that it works on is credentialed, the job is told that it is private."""
    if any(map(SETTINGS.is_credentialed, datasets)):
        parts["private"] = True
    plain = {
        name: part.model_dump(mode="json") if hasattr(part, "model_dump") else part for name, part in parts.items()
    }
    return json.loads(json.dumps(plain, sort_keys=True))


def settings_of(*names, **parts):
    """The same as a param: sections of the config by name (backbone: that of the job)."""

    def settings(wildcards):
        chosen = {name: getattr(SETTINGS, name) for name in names if name != "backbone"}
        if "backbone" in names:
            chosen["backbone"] = SETTINGS.backbones[wildcards.backbone]
        more = {name: part(wildcards) for name, part in parts.items()}
        return section(wildcards.dataset, **chosen, **more)

    return settings


@cache
def code(name, *modules):
    """A digest of what a script runs, as a param: a change of the code reruns the job, a reworded comment does not.
    The modules of registered baselines and encoders that it runs are given: no import statement names them."""
    return digest(Path(workflow.basedir) / "workflow" / "scripts" / f"{name}.py", *modules)


def code_of_baselines(name, entries):
    return code(name, *(entry.function.__module__ for entry in entries))


def code_of_network(name):
    """The digest of a script that runs the backbone of its job."""
    return lambda wildcards: code(name, *modules_of(SETTINGS.backbones[wildcards.backbone]))


def launch(name):
    """The command of a training script: one process, or one a device of the backbone (choice of `parallel`).

    It takes the shell's place: a shell that is told to end would do so at once, and the cluster would not wait until
    its training has written a state."""

    def command(wildcards):
        file = shlex.quote(f"{SCRIPTS / name}.py")
        if devices(wildcards) == 1 or is_layered(wildcards):
            return f"exec python {file}"
        return f"exec env {ACCELERATE} --num_processes {devices(wildcards)} {file}"

    return command


def is_layered(wildcards):
    """Whether the backbone's layers are spread over the devices of one process."""
    return SETTINGS.backbones[wildcards.backbone].parallel == "layers"


def devices(wildcards):
    """GPUs of a training job."""
    return SETTINGS.backbones[wildcards.backbone].devices


def devices_of_one_process(wildcards):
    """GPUs of a job that only runs the backbone: more than one where its layers are spread."""
    return devices(wildcards) if is_layered(wildcards) else 1


def training_threads(wildcards):
    return SETTINGS.compute.threads * (1 if is_layered(wildcards) else devices(wildcards))


def attempts(megabytes):
    """Memory that grows with each attempt."""
    return lambda wildcards, attempt: megabytes * attempt


def handed_over(rule, settings, planted=None):
    """What a training gets on its command line, as `script:` hands it to the other jobs (plant.ground.job)."""

    def job(wildcards, input, output):
        named = dict(input.items()) | ({} if planted is None else {"planted": planted(wildcards)})
        params = {"settings": settings(wildcards), "backbone": backbone_source(wildcards)}
        made = {str(i): path for i, path in enumerate(output)} | dict(output.items())
        return json.dumps(describe(named, made, rule=rule, wildcards=dict(wildcards.items()), params=params))

    return job
