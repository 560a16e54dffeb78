"""Paper: tables, figures and one self-contained report of each experiment. Reads metrics and statistics only.

REQUIRED INPUTS
    results/statistics/<experiment>/*.parquet, results/evaluation/.../{metrics.json,per_label.parquet}
    results/{pretraining,finetuning}/.../{history.parquet,provenance.json}

OUTPUTS
    results/paper/<experiment>/tables/*.{csv,md,tex}, figures/*.{pdf,png}, report.html
"""


rule write_tables:
    """The ablation table in the paper's form, and beside it intervals, seeds, corpus and cost."""
    input:
        paper_files,
    output:
        [f"<results>/paper/{{experiment}}/tables/{name}.{kind}" for name in TABLES for kind in TABLE_FORMATS],
    log:
        "logs/paper/{experiment}/tables.log",
    benchmark:
        "benchmarks/paper/{experiment}/tables.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("tables"),
        settings=paper_settings,
        out=subpath(output[0], parent=True),
        rooms=digest("paper"),
    shell:
        "{params.script} --settings {params.settings} --out {params.out} > {log} 2>&1"


rule write_figures:
    """Every figure as PDF and PNG."""
    input:
        paper_files,
    output:
        [f"<results>/paper/{{experiment}}/figures/{name}.{kind}" for name in FIGURES for kind in ("pdf", "png")],
    log:
        "logs/paper/{experiment}/figures.log",
    benchmark:
        "benchmarks/paper/{experiment}/figures.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("figures"),
        settings=paper_settings,
        out=subpath(output[0], parent=True),
        rooms=digest("paper"),
    shell:
        "{params.script} --settings {params.settings} --out {params.out} > {log} 2>&1"


rule write_report:
    """One HTML file that needs nothing else."""
    input:
        paper_files,
        figures=[f"<results>/paper/{{experiment}}/figures/{name}.png" for name in FIGURES],
    output:
        report="<results>/paper/{experiment}/report.html",
    log:
        "logs/paper/{experiment}/report.log",
    benchmark:
        "benchmarks/paper/{experiment}/report.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("report"),
        settings=paper_settings,
        figures=lambda wildcards, input: Path(input.figures[0]).parent,
        choices=HERE / "docs" / "choices",
        rooms=digest("paper"),
    shell:
        "{params.script} --settings {params.settings} --figures {params.figures} --choices {params.choices} --report {output.report} > {log} 2>&1"


for variant in SETTINGS.variants:

    rule:
        name:
            f"ablation_{variant}"
        input:
            [
                f"{folder}/metrics.json"
                for experiment, settings in SETTINGS.experiments.items()
                if variant in settings.variants
                for folder in score_folders(experiment, variant)
            ],
        localrule: True
