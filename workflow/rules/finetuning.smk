"""Finetuning: Stage 2, the whole model end to end (Eq. 3).

REQUIRED INPUTS
    results/corpus/<dataset>/labels.safetensors, <backbone>/tokens.safetensors
    results/pretraining/<dataset>/<backbone>/<pretraining>/seed<seed>/   (not for pretraining `none`)

OUTPUTS
    results/finetuning/<dataset>/<backbone>/<pretraining>+<finetuning>/seed<seed>/
        label_attention.safetensors, backbone.safetensors, head.safetensors, history.parquet, provenance.json
"""


include: "inputs/finetuning.smk"


stage2_settings = settings_of("backbone", "compute", finetuning=stage2_of)
stage2_code = code_of_training("finetune", STAGE_2_LOSSES, stage2_of)


rule finetune:
    """Stage 2 of one seed, from planted or from random attention."""
    input:
        **NETWORK,
        shortlist=shortlist,
        embeddings=lambda wildcards: [] if planted(wildcards) else label_embeddings(stage2_of(wildcards)),
        planted=planted,
    output:
        multiext(
            "<results>/finetuning/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/",
            *WEIGHTS,
            "head.safetensors",
            "history.parquet",
            "provenance.json",
        ),
    log:
        "logs/finetuning/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.log",
    threads: training_threads
    resources:
        gpu=devices,
        mem_mb=attempts(16000),
    params:
        script=launch("finetune"),
        settings=stage2_settings,
        job=handed_over("finetune", stage2_settings, stage2_code, planted=planted_weights),
        code=stage2_code,
    shell:
        "{params.script} {params.job:q} > {log:q} 2>&1"
