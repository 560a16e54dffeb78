"""Serving: a system of an experiment as one folder that classifies new texts.

REQUIRED INPUTS
    results/corpus/<dataset>/, results/finetuning/.../seed<seed>/
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/{val.scores.parquet,metrics.json}

OUTPUTS
    results/serving/<experiment>/<system>/   the model folder; <system> `best`: the best system on validation that can be saved
    results/serving/<experiment>/<system>.provenance.json
"""


include: "inputs/serving.smk"


BEST = "best"


rule save_model:
    """One folder in Hugging Face form: network, words, thresholds, labels, model card."""
    input:
        runs=run_files,
        network=network_files,
        corpus=lambda wildcards: [
            f"{R}/corpus/{SETTINGS.experiments[wildcards.experiment].dataset}/{file}" for file in CORPUS_FILES[:5]
        ],
    output:
        folder=directory("<results>/serving/{experiment}/{system}"),
        provenance="<results>/serving/{experiment}/{system}.provenance.json",
    log:
        "logs/serving/{experiment}/{system}.log",
    wildcard_constraints:
        system=one_of([BEST, *SETTINGS.variants, *baselines()]),
    threads: 2
    resources:
        mem_mb=attempts(16000),
    params:
        settings=serving_settings,
        backbone=lambda wildcards: backbone_source(SETTINGS.experiments[wildcards.experiment]),
        code=served_code,
        screen="warnings",
    script:
        "../scripts/save_model.py"


TARGETS |= served_folders()
