"""Evaluation: scores a document, a threshold from validation, every metric.

REQUIRED INPUTS
    results/finetuning/<dataset>/<backbone>/<pretraining>+<finetuning>/seed<seed>/
    results/corpus/<dataset>/, results/evaluation/<dataset>/words/<baseline>/seed0/   (Stage 3)

OUTPUTS
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/
        {val,test}.scores.parquet (and .safetensors for small label sets), metrics.json, per_label.parquet
        with `average_with`: choices.json (what was averaged)
        with Stage 3: choices.json (weights), evidence.parquet, reasons.parquet
"""


include: "inputs/evaluation.smk"


rule predict:
    """Scores of validation and test documents by a trained model."""
    input:
        **NETWORK,
        shortlist=shortlist,
        weights=TRAINED,
    output:
        multiext(
            "<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/", *SCORES, "provenance.json"
        ),
    log:
        "logs/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.predict.log",
    threads: SETTINGS.compute.threads
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        settings=settings_of("backbone", "compute", finetuning=stage2_of, evaluation=kept),
        backbone=backbone_source,
        code=code_of_network("predict"),
    script:
        "../scripts/predict.py"


rule evidence:
    """Stage 3: what the network and the words say, weighed on validation, with the reasons for each score."""
    input:
        channels=lambda wildcards: in_folders([channels(wildcards).values()], [*SCORES, "provenance.json"]),
        corpus=multiext(
            "<results>/corpus/{dataset}/", "labels.safetensors", "labels.parquet", "val.parquet", "test.parquet"
        ),
        tokens=words_of_reasons,
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
    resources:
        mem_mb=attempts(8000),
    params:
        settings=settings_of(
            evaluation=kept,
            evidence=lambda wildcards: SETTINGS.evidences[wildcards.evidence],
            channels=channels,
            shown=lambda wildcards: SETTINGS.documents_shown(wildcards.dataset),
        ),
        code=code_of_baselines("evidence", known_channels().values()),
    script:
        "../scripts/evidence.py"


rule average:
    """The mean of the probabilities that two networks of the same recipes give (earlier version, A.11)."""
    input:
        scores=multiext("<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/", *SCORES),
        others=multiext("<results>/evaluation/{dataset}/{other}/{initial}+{finetuning}/seed{seed}/", *SCORES),
        corpus=multiext(
            "<results>/corpus/{dataset}/", "labels.safetensors", "labels.parquet", "val.parquet", "test.parquet"
        ),
    output:
        multiext(
            "<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}+mean@{other}/seed{seed}/",
            *SCORES,
            "choices.json",
            "provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/{backbone}/{initial}+{finetuning}+mean@{other}/seed{seed}.average.log",
    resources:
        mem_mb=attempts(8000),
    params:
        settings=settings_of(evaluation=kept),
        code=code("average"),
    script:
        "../scripts/average.py"


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
    wildcard_constraints:
        system=r"[^/]+",
    resources:
        mem_mb=attempts(8000),
    params:
        settings=settings_of("evaluation"),
        code=code("metrics"),
    script:
        "../scripts/metrics.py"


rule attention:
    """What a few labels look at in a few test documents (not for credentialed text, unless asked for)."""
    input:
        **NETWORK,
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        relevance="<results>/relevance/{dataset}/{backbone}/mig.safetensors",
        weights=TRAINED,
    output:
        attention="<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/attention.parquet",
        provenance="<results>/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}/attention.provenance.json",
    log:
        "logs/evaluation/{dataset}/{backbone}/{initial}+{finetuning}/seed{seed}.attention.log",
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        settings=settings_of(
            "backbone",
            "compute",
            finetuning=stage2_of,
            evaluation=lambda wildcards: {"attention_documents": SETTINGS.evaluation.attention_documents},
        ),
        backbone=backbone_source,
        code=code_of_network("attention"),
    script:
        "../scripts/attention.py"
