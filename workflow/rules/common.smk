"""What all rules share: the config as typed settings, the wildcards, and how a job gets its settings and its resources.

Sets the environment of all jobs: nodes and un-activated shells find the Python that runs Snakemake, and the package
beside this file.
"""

import hashlib
import json
import os
import re
import sys
from functools import cache, partial
from pathlib import Path
from typing import get_args


include: "speed.smk"


os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]),
    PYTHONPATH=str(Path(workflow.basedir) / "src"),
    TORCHDYNAMO_DISABLE="1",  # nothing here compiles with torch; to load its compiler takes every LoRA job 1.5 s
)
sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from plant.baselines.registry import baselines, check
from plant.baselines.registry import channels as known_channels
from plant.corpus import formats
from plant.finetuning.losses import STAGE_2_LOSSES
from plant.ground import settings as plant_settings
from plant.ground.errors import InputError
from plant.ground.provenance import changed_inputs, digest
from plant.ground.settings.written import check_written
from plant.metrics.names import find
from plant.model.registry import check as check_networks
from plant.model.registry import modules_of
from plant.paper.contents import contents, report_figures
from plant.paper.paths import METRICS, SCORES, Paths, in_folders
from plant.paper.systems import cut_settings
from plant.pretraining.losses import STAGE_1_LOSSES
from plant.relevance.measures import MEASURES, check_measures

plant_settings.forget_foreign_nulls(config)
try:
    check_written(map(Path, workflow.configfiles))
    SETTINGS = plant_settings.load(config)
    for metric in {*SETTINGS.statistics.metrics, *SETTINGS.paper.metrics, *SETTINGS.paper.headline}:
        find(metric, SETTINGS.evaluation)
    formats.check(SETTINGS.datasets)
    check_measures(SETTINGS)
    STAGE_1_LOSSES.check(SETTINGS.pretrainings)
    STAGE_2_LOSSES.check(SETTINGS.finetunings)
    check(SETTINGS)
    check_networks(SETTINGS)
except InputError as error:
    raise WorkflowError(str(error)) from None

R = SETTINGS.results
PATHS = Paths(SETTINGS)
WEIGHTS = ["label_attention.safetensors", "backbone.safetensors"]
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
    other=one_of(SETTINGS.backbones),
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
    return {name: plain(parts[name]) for name in sorted(parts)}


# id of a section -> the section, so that no other object gets its id, and its plain data, which thousands of jobs share
PLAIN = {}


def plain(part):
    """A part of the settings of a job as plain data with sorted keys."""
    if not hasattr(part, "model_dump"):
        return json.loads(json.dumps(part, sort_keys=True))
    if id(part) not in PLAIN:
        PLAIN[id(part)] = part, json.loads(json.dumps(part.model_dump(mode="json"), sort_keys=True))
    return PLAIN[id(part)][1]


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
    `modules` are those of registered baselines and encoders that it runs: no import statement names them."""
    return digest(Path(workflow.basedir) / "workflow" / "scripts" / f"{name}.py", *modules)


def code_of_baselines(name, entries):
    return code(name, *(entry.function.__module__ for entry in entries))


def code_of_network(name):
    """The digest of a script that runs the backbone of its job."""
    return lambda wildcards: code(name, *modules_of(SETTINGS.backbones[wildcards.backbone]))


def attempts(megabytes):
    """Memory that grows with each attempt."""
    return lambda wildcards, attempt: megabytes * attempt
