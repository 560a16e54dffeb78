"""Corpus: from raw files to documents, labels, splits and tokens.

REQUIRED INPUTS
    the dataset's raw files (config: datasets.<name>.path), or a generator for the synthetic MIMIC-III

OUTPUTS
    results/corpus/<dataset>/{train,val,test,labels}.parquet, labels.safetensors, statistics.json
    results/corpus/<dataset>/<backbone>/tokens.safetensors, vocabulary.parquet, statistics.json
"""


rule synthetic_mimic3:
    """A synthetic MIMIC-III in the raw schema, so that the default goes through the real ingestion."""
    output:
        raw=directory("<results>/corpus/{dataset}/raw"),
    log:
        "logs/corpus/{dataset}/synthetic_mimic3.log",
    benchmark:
        "benchmarks/corpus/{dataset}/synthetic_mimic3.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("synthetic_mimic3"),
        settings=lambda wildcards: section(generate=SETTINGS.datasets[wildcards.dataset].generate),
        rooms=digest("corpus"),
    shell:
        "{params.script} --settings {params.settings} --raw {output.raw} > {log} 2>&1"


rule corpus:
    """Read, clean, split and check one dataset."""
    input:
        raw=raw_files,
    output:
        multiext(
            "<results>/corpus/{dataset}/",
            "train.parquet",
            "val.parquet",
            "test.parquet",
            "labels.parquet",
            "labels.safetensors",
            "statistics.json",
            "provenance.json",
        ),
    log:
        "logs/corpus/{dataset}/corpus.log",
    benchmark:
        "benchmarks/corpus/{dataset}/corpus.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("corpus"),
        settings=lambda wildcards: section(dataset=SETTINGS.datasets[wildcards.dataset]),
        raw=lambda wildcards, input: f"--raw {input.raw}" if input.raw else "",
        out=subpath(output[0], parent=True),
        rooms=digest("corpus"),
    shell:
        "{params.script} --settings {params.settings} {params.raw} --out {params.out}"
        " --provenance {params.out}/provenance.json > {log} 2>&1"


rule tokenizer:
    """A byte-level BPE tokenizer for a random backbone, trained on the training split."""
    input:
        train="<results>/corpus/{dataset}/train.parquet",
    output:
        tokenizer=directory("<results>/corpus/{dataset}/{backbone}/tokenizer"),
    log:
        "logs/corpus/{dataset}/{backbone}/tokenizer.log",
    benchmark:
        "benchmarks/corpus/{dataset}/{backbone}/tokenizer.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("tokenizer"),
        settings=lambda wildcards: section(vocabulary=SETTINGS.backbones[wildcards.backbone].vocabulary),
        rooms=digest("corpus"),
    shell:
        "{params.script} --settings {params.settings} --train {input.train} --tokenizer {output.tokenizer}"
        " > {log} 2>&1"


rule tokens:
    """Every document as input ids with character spans; special tokens are not stored."""
    input:
        documents=multiext("<results>/corpus/{dataset}/", "train.parquet", "val.parquet", "test.parquet"),
        tokenizer=tokenizer_source,
    output:
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        statistics="<results>/corpus/{dataset}/{backbone}/statistics.json",
        provenance="<results>/corpus/{dataset}/{backbone}/provenance.json",
    log:
        "logs/corpus/{dataset}/{backbone}/tokens.log",
    benchmark:
        "benchmarks/corpus/{dataset}/{backbone}/tokens.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("tokens"),
        settings=lambda wildcards: section(backbone=SETTINGS.backbones[wildcards.backbone]),
        tokenizer=lambda wildcards, input: f"--tokenizer {input.tokenizer}" if input.tokenizer else "",
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        out=subpath(output.tokens, parent=True),
        rooms=digest("corpus"),
    shell:
        "{params.script} --settings {params.settings} --corpus {params.corpus} {params.tokenizer}"
        " --documents {input.documents} --out {params.out} --provenance {output.provenance} > {log} 2>&1"
