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


rule pretrain:
    """Stage 1 of one seed; continues from its last epoch where it was interrupted."""
    input:
        unpack(corpus_files),
        unpack(backbone_files),
        unpack(start_of(lambda wildcards: SETTINGS.pretrainings[wildcards.pretraining])),
        relevance=lambda wildcards: "{}/relevance/{}/{}/{}.safetensors".format(
            R, wildcards.dataset, wildcards.backbone, SETTINGS.pretrainings[wildcards.pretraining].measure
        ),
    output:
        epochs=directory("<results>/pretraining/{dataset}/{backbone}/{pretraining}/seed{seed}/epochs"),
        weights=multiext(
            "<results>/pretraining/{dataset}/{backbone}/{pretraining}/seed{seed}/",
            "label_attention.safetensors",
            "backbone.safetensors",
            "history.parquet",
            "provenance.json",
        ),
    log:
        "logs/pretraining/{dataset}/{backbone}/{pretraining}/seed{seed}.log",
    benchmark:
        "benchmarks/pretraining/{dataset}/{backbone}/{pretraining}/seed{seed}.tsv"
    conda:
        "../../envs/plant.yaml"
    threads: training_threads
    resources:
        gpu=devices,
        mem_mb=attempts(16000),
    params:
        script=launch("pretrain"),
        settings=lambda wildcards: section(
            wildcards.dataset,
            backbone=SETTINGS.backbones[wildcards.backbone],
            pretraining=SETTINGS.pretrainings[wildcards.pretraining],
            compute=SETTINGS.compute,
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        backbone=backbone_source,
        options=lambda wildcards, input: options(wildcards, input, "features", "embeddings"),
        out=subpath(output.epochs, parent=True),
        rooms=digest("model", "pretraining"),
    shell:
        "{params.script} --settings {params.settings:q} --seed {wildcards.seed} --corpus {params.corpus:q}"
        " --labels {input.labels:q} --tokens {input.tokens:q} --relevance {input.relevance:q}"
        " --backbone {params.backbone:q} {params.options} --out {params.out:q}"
        " --provenance {params.out:q}/provenance.json > {log:q} 2>&1"
