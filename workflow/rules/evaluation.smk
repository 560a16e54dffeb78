"""Evaluation: scores a document, a threshold from validation, every metric.

REQUIRED INPUTS
    results/finetuning/<dataset>/<backbone>/<pretraining>+<finetuning>/seed<seed>/
    results/corpus/<dataset>/, results/evaluation/<dataset>/words/<baseline>/seed0/   (Stage 3)

OUTPUTS
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/
        {val,test}.scores.parquet (and .safetensors for small label sets), metrics.json, per_label.parquet
        with Stage 3: choices.json (weights), evidence.parquet, reasons.parquet
"""


rule predict:
    """Scores of validation and test documents by a trained model."""
    input:
        unpack(corpus_files),
        unpack(backbone_files),
        unpack(candidates),
        unpack(kept_evidence),
        weights=multiext(
            "<results>/finetuning/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/",
            "label_attention.safetensors",
            "backbone.safetensors",
            "head.safetensors",
        ),
    output:
        multiext(
            "<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/", *SCORES, "provenance.json"
        ),
    log:
        "logs/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.predict.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.predict.tsv"
    conda:
        "../../envs/plant.yaml"
    threads: SETTINGS.compute.threads
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        script=script("predict"),
        settings=lambda wildcards: section(
            wildcards.dataset,
            backbone=SETTINGS.backbones[wildcards.backbone],
            finetuning=stage2_of(wildcards),
            evaluation=SETTINGS.evaluation,
            compute=SETTINGS.compute,
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        backbone=backbone_source,
        options=lambda wildcards, input: options(wildcards, input, "features", "shortlist", "static", "residual"),
        weights=lambda wildcards, input: Path(input.weights[0]).parent,
        out=subpath(output[0], parent=True),
        rooms=digest(
            "model",
            "finetuning/scoring.py",
            "finetuning/candidates.py",
            "finetuning/kept_evidence.py",
            "pretraining/lists.py",
            "evaluation/predict.py",
            "metrics/scores.py",
            "metrics/top.py",
            "metrics/f1.py",
        ),
    shell:
        "{params.script} --settings {params.settings:q} --seed {wildcards.seed} --corpus {params.corpus:q}"
        " --tokens {input.tokens:q} --backbone {params.backbone:q} {params.options} --weights {params.weights:q}"
        " --out {params.out:q} --provenance {params.out:q}/provenance.json > {log:q} 2>&1"


rule evidence:
    """Stage 3: what the network and the words say, weighed on validation, with the reasons for each score."""
    input:
        unpack(evidence_files),
        corpus=multiext(
            "<results>/corpus/{dataset}/", "labels.safetensors", "labels.parquet", "val.parquet", "test.parquet"
        ),
    output:
        multiext(
            "<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}+{evidence}/seed{seed}/",
            *SCORES,
            "choices.json",
            "evidence.parquet",
            "reasons.parquet",
            "provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/{backbone}/{initial}+{finetuning}+{evidence}/seed{seed}.evidence.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/{backbone}/{initial}+{finetuning}+{evidence}/seed{seed}.evidence.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("evidence"),
        settings=lambda wildcards: section(
            wildcards.dataset,
            evidence=SETTINGS.evidences[wildcards.evidence],
            evaluation=SETTINGS.evaluation,
            channels=channel_folders(wildcards),
            shown=reasons_shown(wildcards),
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        options=lambda wildcards, input: options(wildcards, input, "tokens"),
        out=subpath(output[0], parent=True),
        rooms=digest("evidence", "baselines", "metrics", "corpus/folds.py"),
    shell:
        "{params.script} --settings {params.settings:q} --seed {wildcards.seed} --corpus {params.corpus:q}"
        " --documents {input.corpus:q} {params.options} --out {params.out:q}"
        " --provenance {params.out:q}/provenance.json > {log:q} 2>&1"


rule metrics:
    """Every metric on test, at the natural threshold and at one tuned on validation."""
    input:
        scores=multiext("<results>/evaluation/{dataset}/{backbone}/{system}/seed{seed}/", *SCORES),
        labels="<results>/corpus/{dataset}/labels.parquet",
    output:
        multiext(
            "<results>/evaluation/{dataset}/{backbone}/{system}/seed{seed}/",
            "metrics.json",
            "per_label.parquet",
            "metrics.provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/{backbone}/{system}/seed{seed}.metrics.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/{backbone}/{system}/seed{seed}.metrics.tsv"
    wildcard_constraints:
        system=r"[^/]+",
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("metrics"),
        settings=lambda wildcards: section(wildcards.dataset, evaluation=SETTINGS.evaluation),
        out=subpath(output[0], parent=True),
        rooms=digest("evaluation", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --scores {input.scores:q} --labels {input.labels:q}"
        " --out {params.out:q} --provenance {params.out:q}/metrics.provenance.json > {log:q} 2>&1"


rule attention:
    """What a few labels look at in a few test documents (not for credentialed text, unless asked for)."""
    input:
        unpack(corpus_files),
        unpack(backbone_files),
        unpack(kept_evidence),
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        relevance="<results>/relevance/{dataset}/{backbone}/mig.safetensors",
        weights=multiext(
            "<results>/finetuning/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/",
            "label_attention.safetensors",
            "backbone.safetensors",
            "head.safetensors",
        ),
    output:
        attention="<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/attention.parquet",
        provenance="<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/attention.provenance.json",
    log:
        "logs/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.attention.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.attention.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        script=script("attention"),
        settings=lambda wildcards: section(
            wildcards.dataset,
            backbone=SETTINGS.backbones[wildcards.backbone],
            finetuning=stage2_of(wildcards),
            evaluation=SETTINGS.evaluation,
            compute=SETTINGS.compute,
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        backbone=backbone_source,
        options=lambda wildcards, input: options(wildcards, input, "features", "static", "residual"),
        weights=lambda wildcards, input: Path(input.weights[0]).parent,
        rooms=digest("model", "finetuning/kept_evidence.py", "evaluation/attention.py"),
    shell:
        "{params.script} --settings {params.settings:q} --seed {wildcards.seed} --corpus {params.corpus:q}"
        " --tokens {input.tokens:q} --vocabulary {input.vocabulary:q} --relevance {input.relevance:q}"
        " --backbone {params.backbone:q} {params.options} --weights {params.weights:q}"
        " --attention {output.attention:q} --provenance {output.provenance:q} > {log:q} 2>&1"
