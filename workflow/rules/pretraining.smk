"""Pretraining: Stage 1, label attention as learning to rank (Eq. 2). Trained once for all variants that lean on it.

REQUIRED INPUTS
    results/corpus/<dataset>/labels.safetensors, <backbone>/tokens.safetensors
    results/relevance/<dataset>/<backbone>/<measure>.safetensors
    results/model/<dataset>/<backbone>/...           (random backbone or cached features)

OUTPUTS
    results/pretraining/<dataset>/<backbone>/<pretraining>/seed<seed>/
        label_attention.safetensors, backbone.safetensors, history.parquet, provenance.json
        epochs/<epoch>/{label_attention,backbone}.safetensors   (recipes with keep_epochs)
"""

stage1_settings = settings_of("backbone", "compute", pretraining=stage1_of)
stage1_code = code_of_training("pretrain", STAGE_1_LOSSES, stage1_of)


rule pretrain:
    """Stage 1 of one seed; continues from its last epoch where it was interrupted."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        made=made_backbone,
        features=features,
        embeddings=lambda wildcards: label_embeddings(stage1_of(wildcards)),
        relevance=lambda wildcards: "<results>/relevance/{dataset}/{backbone}/"
        + f"{stage1_of(wildcards).measure}.safetensors",
    output:
        # weights of every epoch, where the recipe has keep_epochs
        epochs=directory("<results>/pretraining/{dataset}/{backbone}/{pretraining}/seed{seed}/epochs"),
        weights=multiext(
            "<results>/pretraining/{dataset}/{backbone}/{pretraining}/seed{seed}/",
            *WEIGHTS,
            "history.parquet",
            "provenance.json",
        ),
    log:
        "logs/pretraining/{dataset}/{backbone}/{pretraining}/seed{seed}.log",
    threads: training_threads
    resources:
        gpu=devices,
        mem_mb=attempts(16000),
    params:
        script=launch("pretrain"),
        settings=stage1_settings,
        job=handed_over("pretrain", stage1_settings, stage1_code),
        code=stage1_code,
    shell:
        "{params.script} {params.job:q} > {log:q} 2>&1"
