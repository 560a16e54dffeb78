"""Model: random backbones, and cached hidden states of frozen ones.

REQUIRED INPUTS
    results/corpus/<dataset>/<backbone>/tokenizer/   (random backbones)
    results/corpus/<dataset>/<backbone>/tokens.safetensors

OUTPUTS
    results/model/<dataset>/<backbone>/backbone/     a Hugging Face folder
    results/model/<dataset>/<backbone>/features.safetensors
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
        settings=lambda wildcards: section(backbone=SETTINGS.backbones[wildcards.backbone]),
        rooms=digest("model"),
    shell:
        "{params.script} --settings {params.settings} --tokenizer {input.tokenizer} --backbone {output.backbone}"
        " --provenance {output.provenance} > {log} 2>&1"


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
        gpu=1,
        mem_mb=attempts(16000),
    params:
        script=script("features"),
        settings=lambda wildcards: section(backbone=SETTINGS.backbones[wildcards.backbone], compute=SETTINGS.compute),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        backbone=backbone_source,
        rooms=digest("model"),
    shell:
        "{params.script} --settings {params.settings} --corpus {params.corpus} --tokens {input.tokens}"
        " --backbone {params.backbone} --features {output.features} --provenance {output.provenance} > {log} 2>&1"
