"""How a job with a network is started: its devices, its threads, and the command of a training."""

import shlex

from plant.ground.job import describe

# Every option is given, so that a user's own default config of accelerate plays no part. The processes have a quarter of
# an hour to write their state when the launcher is asked to end.
ACCELERATE = (
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=900 accelerate launch --multi_gpu --num_machines 1 --mixed_precision no"
    f" --dynamo_backend no --num_cpu_threads_per_process {SETTINGS.compute.threads} --main_process_port 0"
)


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


def code_of_training(name, losses, recipe_of):
    """The digests of a script that trains: with its network, and with its loss."""

    def digests(wildcards):
        loss = losses.folder.module(getattr(recipe_of(wildcards), losses.key))
        return [code_of_network(name)(wildcards), code(name, loss)]

    return digests


def handed_over(rule, settings, digests, planted=None):
    """What a training gets on its command line, as `script:` hands it to the other jobs (plant.ground.job). The
    digests are those of its code: a state that other code has left is not used."""

    def job(wildcards, input, output):
        named = dict(input.items()) | ({} if planted is None else {"planted": planted(wildcards)})
        params = {"settings": settings(wildcards), "backbone": backbone_source(wildcards), "code": digests(wildcards)}
        return json.dumps(describe(named, output, rule=rule, wildcards=dict(wildcards.items()), params=params))

    return job
