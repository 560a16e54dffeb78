"""Model: random backbones, cached hidden states of frozen ones, label embeddings from descriptions.

REQUIRED INPUTS
    results/corpus/<dataset>/<backbone>/tokenizer/   (random backbones)
    results/corpus/<dataset>/<backbone>/tokens.safetensors

OUTPUTS
    results/model/<dataset>/<backbone>/backbone/     a Hugging Face folder
    results/model/<dataset>/<backbone>/features.safetensors, label_embeddings.safetensors
"""


rule random_backbone:
    """A small transformer with random weights beside its tokenizer."""
    input:
        tokenizer="<results>/corpus/{dataset}/{backbone}/tokenizer",
    output:
        backbone=directory("<results>/model/{dataset}/{backbone}/backbone"),
        provenance="<results>/model/{dataset}/{backbone}/backbone.provenance.json",
    log:
        "logs/model/{dataset}/{backbone}/random_backbone.log",
    benchmark:
        "benchmarks/model/{dataset}/{backbone}/random_backbone.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("random_backbone"),
        settings=lambda wildcards: section(wildcards.dataset, backbone=SETTINGS.backbones[wildcards.backbone]),
        rooms=digest("model"),
    shell:
        "{params.script} --settings {params.settings:q} --tokenizer {input.tokenizer:q} --backbone {output.backbone:q}"
        " --provenance {output.provenance:q} > {log:q} 2>&1"


rule features:
    """Hidden states of a frozen backbone for every token, once."""
    input:
        unpack(corpus_files),
    output:
        features="<results>/model/{dataset}/{backbone}/features.safetensors",
        provenance="<results>/model/{dataset}/{backbone}/features.provenance.json",
    log:
        "logs/model/{dataset}/{backbone}/features.log",
    benchmark:
        "benchmarks/model/{dataset}/{backbone}/features.tsv"
    conda:
        "../../envs/plant.yaml"
    threads: 8
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        script=script("features"),
        settings=lambda wildcards: section(
            wildcards.dataset, backbone=SETTINGS.backbones[wildcards.backbone], compute=SETTINGS.compute
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        backbone=backbone_source,
        rooms=digest("model"),
    shell:
        "{params.script} --settings {params.settings:q} --corpus {params.corpus:q} --tokens {input.tokens:q}"
        " --backbone {params.backbone:q} --features {output.features:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"


rule label_embeddings:
    """Mean hidden state of each label's description, for recipes that start from them (choice C22)."""
    input:
        unpack(corpus_files),
        unpack(random_backbone_files),
        names="<results>/corpus/{dataset}/labels.parquet",
        tokenizer=tokenizer_source,
    output:
        embeddings="<results>/model/{dataset}/{backbone}/label_embeddings.safetensors",
        provenance="<results>/model/{dataset}/{backbone}/label_embeddings.provenance.json",
    log:
        "logs/model/{dataset}/{backbone}/label_embeddings.log",
    benchmark:
        "benchmarks/model/{dataset}/{backbone}/label_embeddings.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        script=script("label_embeddings"),
        settings=lambda wildcards: section(
            wildcards.dataset, backbone=SETTINGS.backbones[wildcards.backbone], compute=SETTINGS.compute
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        backbone=backbone_source,
        rooms=digest("model", "corpus/encoders.py"),
    shell:
        "{params.script} --settings {params.settings:q} --corpus {params.corpus:q} --labels {input.labels:q}"
        " --backbone {params.backbone:q} --embeddings {output.embeddings:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"
