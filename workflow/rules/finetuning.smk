"""Finetuning: Stage 2, the whole model end to end (Eq. 3).

REQUIRED INPUTS
    results/corpus/<dataset>/labels.safetensors, <backbone>/tokens.safetensors
    results/pretraining/<dataset>/<backbone>/<pretraining>/seed<seed>/   (not for pretraining `none`)

OUTPUTS
    results/finetuning/<dataset>/<backbone>/<pretraining>+<finetuning>/seed<seed>/
        label_attention.safetensors, backbone.safetensors, head.safetensors, history.parquet, provenance.json
"""

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


rule finetune:
    """Stage 2 of one seed, from planted or from random attention."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        made=made_backbone,
        features=features,
        shortlist=shortlist,
        static=static,
        residual=residual,
        embeddings=start_without_stage_1,
        planted=planted,
    output:
        multiext(
            "<results>/finetuning/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/",
            "label_attention.safetensors",
            "backbone.safetensors",
            "head.safetensors",
            "history.parquet",
            "provenance.json",
        ),
    log:
        "logs/finetuning/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.log",
    benchmark:
        "benchmarks/finetuning/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.tsv"
    conda:
        "../../envs/plant.yaml"
    threads: training_threads
    resources:
        gpu=devices,
        mem_mb=attempts(16000),
    params:
        script=launch("finetune"),
        settings=stage2_settings,
        job=handed_over("finetune", stage2_settings, planted=planted_weights),
        loss=lambda wildcards: code("finetune", loss_module(stage2_of(wildcards).loss)),
        code=code_of_network("finetune"),
    shell:
        "{params.script} {params.job:q} > {log:q} 2>&1"
