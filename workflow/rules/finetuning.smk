"""Finetuning: Stage 2, the whole model end to end (Eq. 3).

REQUIRED INPUTS
    results/corpus/<dataset>/labels.safetensors, <backbone>/tokens.safetensors
    results/pretraining/<dataset>/<backbone>/<pretraining>/seed<seed>/   (not for pretraining `none`)

OUTPUTS
    results/finetuning/<dataset>/<backbone>/<pretraining>+<finetuning>/seed<seed>/
        label_attention.safetensors, backbone.safetensors, head.safetensors, history.parquet, provenance.json
"""


rule finetune:
    """Stage 2 of one seed, from planted or from random attention."""
    input:
        unpack(corpus_files),
        unpack(backbone_files),
        unpack(candidates),
        unpack(kept_evidence),
        unpack(start_without_stage_1),
        planted=planted_files,
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
        settings=lambda wildcards: section(
            wildcards.dataset,
            backbone=SETTINGS.backbones[wildcards.backbone],
            finetuning=stage2_of(wildcards),
            compute=SETTINGS.compute,
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        backbone=backbone_source,
        options=lambda wildcards, input: options(
            wildcards, input, "features", "shortlist", "embeddings", "static", "residual"
        ),
        planted=planted_option,
        out=subpath(output[0], parent=True),
        rooms=digest("model", "finetuning", "pretraining/approx_ndcg.py", "pretraining/ndcg.py", "pretraining/lists.py"),
    shell:
        "{params.script} --settings {params.settings:q} --seed {wildcards.seed} --corpus {params.corpus:q}"
        " --labels {input.labels:q} --tokens {input.tokens:q} --backbone {params.backbone:q} {params.options}"
        " {params.planted} --out {params.out:q} --provenance {params.out:q}/provenance.json > {log:q} 2>&1"
