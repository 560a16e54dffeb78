"""Attention: where it goes before and after each stage, and how like it is to what people marked.

REQUIRED INPUTS
    results/pretraining/.../seed<seed>/, results/finetuning/.../seed<seed>/   weights of an experiment's networks
    results/corpus/<dataset>/marks.parquet                                    (attention against people)

OUTPUTS
    results/evaluation/<dataset>/<backbone>/<system>/seed<seed>/attention_{mass,marks,points}.parquet
    results/paper/<experiment>/attention_{mass,against_people}/{page.md,tables/*,figures/*}
    results/paper/<experiment>/attention.html
"""


include: "inputs/attention.smk"


for kind, more in {
    "mass": {"split": "<results>/corpus/{dataset}/val.parquet"},
    "marks": {"marks": "<results>/corpus/{dataset}/marks.parquet", "split": "<results>/corpus/{dataset}/test.parquet"},
    "points": {
        "marks": lambda wildcards: (
            marks_of(wildcards.dataset) if SETTINGS.datasets[wildcards.dataset].has_mentions else []
        ),
        "vocabulary": "<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        "split": "<results>/corpus/{dataset}/test.parquet",
    },
}.items():

    rule:
        """Attention of a network at three points of training: mass on relevant tokens, against marks, or over texts."""
        name:
            f"attention_{kind}"
        input:
            **POINTS,
            **more,
        output:
            table=f"<results>/evaluation/{{dataset}}/{{backbone}}/{{initial}}+{{finetuning}}/seed{{seed}}/attention_{kind}.parquet",
            provenance=f"<results>/evaluation/{{dataset}}/{{backbone}}/{{initial}}+{{finetuning}}/seed{{seed}}/attention_{kind}.provenance.json",
        log:
            f"logs/evaluation/{{dataset}}/{{backbone}}/{{initial}}+{{finetuning}}/seed{{seed}}.attention_{kind}.log",
        threads: SETTINGS.compute.threads
        resources:
            gpu=devices_of_one_process,
            mem_mb=attempts(16000),
        params:
            settings=settings_of(
                "backbone",
                "compute",
                "evaluation",
                "attention_study",
                finetuning=stage2_of,
                initialisation=lambda wildcards: first_recipe(wildcards).initialisation,
            ),
            backbone=backbone_source,
            start=lambda wildcards: next((str(Path(file).parent) for file in planted_weights(wildcards)), None),
            code=code_of_network("attention_study"),
        script:
            "../scripts/attention_study.py"


rule write_attention_mass:
    """Mass and entropy of the attention of an experiment's networks: a table, a figure and half a page."""
    input:
        page_tables("attention_mass.parquet"),
    output:
        PATHS.attention_page("{experiment}", "mass"),
        provenance="<results>/paper/{experiment}/attention_mass/provenance.json",
    log:
        "logs/paper/{experiment}/attention_mass.log",
    params:
        settings=page_settings("attention_mass.parquet"),
        code=code_of_baselines("attention_page", baselines().values()),
    script:
        "../scripts/attention_page.py"


use rule write_attention_mass as write_attention_against_people with:
    input:
        marks=lambda wildcards: marks_of(SETTINGS.experiments[wildcards.experiment].dataset),
        tables=page_tables("attention_marks.parquet"),
    output:
        PATHS.attention_page("{experiment}", "against_people"),
        provenance="<results>/paper/{experiment}/attention_against_people/provenance.json",
    log:
        "logs/paper/{experiment}/attention_against_people.log",
    params:
        settings=page_settings("attention_marks.parquet"),
        code=code_of_baselines("attention_page", baselines().values()),


use rule write_attention_mass as write_attention_page with:
    input:
        page_tables("attention_points.parquet"),
    output:
        page="<results>/paper/{experiment}/attention.html",
        provenance="<results>/paper/{experiment}/attention.provenance.json",
    log:
        "logs/paper/{experiment}/attention.log",
    params:
        settings=page_settings("attention_points.parquet"),
        code=code_of_baselines("attention_page", baselines().values()),


for experiment in SETTINGS.experiments:
    TARGETS[f"attention_mass_{experiment}"] = PATHS.attention_page(experiment, "mass")
    TARGETS[f"attention_against_people_{experiment}"] = PATHS.attention_page(experiment, "against_people")
    TARGETS[f"attention_page_{experiment}"] = f"{R}/paper/{experiment}/attention.html"
