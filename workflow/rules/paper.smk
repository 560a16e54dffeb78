"""Paper: tables, figures and one self-contained report of each experiment. Reads metrics and statistics only.

REQUIRED INPUTS
    results/statistics/<experiment>/*.parquet, results/evaluation/.../{metrics.json,per_label.parquet}
    results/{pretraining,finetuning}/.../{history.parquet,provenance.json}

OUTPUTS
    results/paper/<experiment>/tables/*.{csv,md,tex}, figures/*.{pdf,png}, report.html
    results/paper/tables/table_<n>.{csv,md,tex}, figures/figure_<n>.{pdf,png}   the paper's own, with a verdict a cell
    results/paper/tables/cost.*, figures/cost.*, plan.{csv,md}
"""


rule write_tables:
    """The ablation table in the paper's form, and beside it intervals, seeds, corpus and cost."""
    input:
        paper_files,
    output:
        [f"<results>/paper/{{experiment}}/tables/{name}.{kind}" for name in TABLES for kind in TABLE_FORMATS],
        provenance="<results>/paper/{experiment}/tables.provenance.json",
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
        "{params.script} --settings {params.settings:q} --out {params.out:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"


rule write_figures:
    """Every figure as PDF and PNG."""
    input:
        paper_files,
    output:
        [f"<results>/paper/{{experiment}}/figures/{name}.{kind}" for name in FIGURES for kind in FIGURE_FORMATS],
        provenance="<results>/paper/{experiment}/figures.provenance.json",
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
        "{params.script} --settings {params.settings:q} --out {params.out:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"


rule write_report:
    """One HTML file that needs nothing else."""
    input:
        paper_files,
        figures=[f"<results>/paper/{{experiment}}/figures/{name}.png" for name in FIGURES],
    output:
        report="<results>/paper/{experiment}/report.html",
        provenance="<results>/paper/{experiment}/report.provenance.json",
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
        "{params.script} --settings {params.settings:q} --figures {params.figures:q} --choices {params.choices:q}"
        " --report {output.report:q} --provenance {output.provenance:q} > {log:q} 2>&1"


rule compare:
    """A variant against the reference of an experiment, over seeds and documents."""
    input:
        scores=lambda wildcards: [f"{folder}/{file}" for folder in pair_folders(wildcards) for file in SCORES],
        labels=experiment_labels,
    output:
        contrasts="<results>/statistics/{experiment}/ablation/{variant}.parquet",
        provenance="<results>/statistics/{experiment}/ablation/{variant}.provenance.json",
    log:
        "logs/statistics/{experiment}/ablation/{variant}.log",
    benchmark:
        "benchmarks/statistics/{experiment}/ablation/{variant}.tsv"
    wildcard_constraints:
        variant=one_of(SETTINGS.variants),
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("contrasts"),
        settings=pair_settings,
        rooms=digest("statistics", "evaluation", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --scores {input.scores:q} --labels {input.labels:q}"
        " --out {output.contrasts:q} --provenance {output.provenance:q} > {log:q} 2>&1"


# `ablation_<variant>` in all experiments that hold it, `ablation_<variant>_in_<experiment>` in one: the runs of the
# variant and of the reference, and how the two differ.
for target, (variant, experiments) in ablations().items():

    rule:
        name:
            target
        input:
            metrics=[
                f"{folder}/metrics.json" for experiment in experiments for folder in score_folders(experiment, variant)
            ],
            contrasts=[
                f"{R}/statistics/{experiment}/ablation/{variant}.parquet"
                for experiment in experiments
                if SETTINGS.experiments[experiment].reference != variant
            ],
        log:
            f"logs/paper/{target}.log",
        localrule: True
        conda:
            "../../envs/plant.yaml"
        params:
            script=script("ablation"),
            settings=section(),
        shell:
            "{params.script} --settings {params.settings:q} --contrasts {input.contrasts:q} 2>&1 | tee {log:q}"


rule write_paper_table:
    """A table of the paper, cell by cell: the paper's value, ours, our interval, a verdict."""
    input:
        grid_files,
    output:
        [f"<results>/paper/tables/table_{{number}}.{kind}" for kind in TABLE_FORMATS],
        provenance="<results>/paper/tables/table_{number}.provenance.json",
    log:
        "logs/paper/tables/table_{number}.log",
    benchmark:
        "benchmarks/paper/tables/table_{number}.tsv"
    wildcard_constraints:
        number=r"\d+",
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("paper_item"),
        settings=lambda wildcards: grid_settings(item=f"table_{wildcards.number}"),
        out=subpath(output[0], ancestor=2),
        rooms=digest("paper"),
    shell:
        "{params.script} --settings {params.settings:q} --out {params.out:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"


rule write_paper_figure:
    """A figure of the paper from our runs, the paper's points marked."""
    input:
        grid_files,
    output:
        [f"<results>/paper/figures/figure_{{number}}.{kind}" for kind in FIGURE_FORMATS],
        provenance="<results>/paper/figures/figure_{number}.provenance.json",
    log:
        "logs/paper/figures/figure_{number}.log",
    benchmark:
        "benchmarks/paper/figures/figure_{number}.tsv"
    wildcard_constraints:
        number=r"\d+",
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("paper_item"),
        settings=lambda wildcards: grid_settings(item=f"figure_{wildcards.number}"),
        out=subpath(output[0], ancestor=2),
        rooms=digest("paper"),
    shell:
        "{params.script} --settings {params.settings:q} --out {params.out:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"


rule write_cost:
    """What every stage cost, for all datasets and backbones."""
    input:
        grid_files,
    output:
        *grid_item("table_cost"),
        *grid_item("figure_cost"),
        provenance="<results>/paper/cost.provenance.json",
    log:
        "logs/paper/cost.log",
    benchmark:
        "benchmarks/paper/cost.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("cost"),
        settings=lambda wildcards: grid_settings(),
        out=subpath(output[0], ancestor=2),
        rooms=digest("paper"),
    shell:
        "{params.script} --settings {params.settings:q} --out {params.out:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"


rule write_plan:
    """Jobs and GPU hours of the whole config, before anything runs."""
    output:
        grid_item("plan"),
        provenance="<results>/paper/plan.provenance.json",
    log:
        "logs/paper/plan.log",
    benchmark:
        "benchmarks/paper/plan.tsv"
    localrule: True
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("plan"),
        settings=section(config=SETTINGS),
        out=subpath(output[0], parent=True),
        rooms=digest("paper", "ground/settings"),
    shell:
        "{params.script} --settings {params.settings:q} --out {params.out:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"


rule write_study:
    """A designed experiment: every difference with its interval, what the factors change, one figure, a page."""
    input:
        lambda wildcards: [f"{R}/statistics/{name}/contrasts.parquet" for name in study_experiments(wildcards.study)],
    output:
        study_outputs("{study}"),
        provenance="<results>/paper/studies/{study}/provenance.json",
    log:
        "logs/paper/studies/{study}.log",
    benchmark:
        "benchmarks/paper/studies/{study}.tsv"
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("study"),
        settings=lambda wildcards: study_settings(wildcards.study),
        out=subpath(output[0], ancestor=2),
        rooms=digest("paper", "statistics/factors.py"),
    shell:
        "{params.script} --settings {params.settings:q} --contrasts {input:q} --out {params.out:q}"
        " --provenance {output.provenance:q} > {log:q} 2>&1"


for study in SETTINGS.studies:

    rule:
        name:
            f"study_{study}"
        input:
            study_outputs(study),
        localrule: True


# `table_6` writes the table from whatever has run, at once, and says what is missing; `reproduce_table_6` runs first what
# it needs; `all` writes it when everything has run. All write the same file.
for item in get_args(plant_settings.Item):
    item_settings = grid_settings(item=item)
    for target, sources in (
        (item, []),
        (f"reproduce_{item}", partial(lambda name, wildcards: item_sources(name), item)),
    ):

        rule:
            name:
                target
            input:
                sources,
            log:
                f"logs/paper/so_far/{target}.log",
            localrule: True
            conda:
                "../../envs/plant.yaml"
            params:
                script=script("paper_item"),
                settings=item_settings,
                out=f"{R}/paper",
                provenance=item_files(item)[0].rpartition(".")[0] + ".provenance.json",
            shell:
                "{params.script} --settings {params.settings:q} --out {params.out:q}"
                " --provenance {params.provenance:q} 2>&1 | tee {log:q}"


rule cost:
    """The cost table and figure from whatever has run."""
    log:
        "logs/paper/so_far/cost.log",
    localrule: True
    conda:
        "../../envs/plant.yaml"
    params:
        script=script("cost"),
        settings=grid_settings(),
        out=f"{R}/paper",
        provenance=f"{R}/paper/cost.provenance.json",
    shell:
        "{params.script} --settings {params.settings:q} --out {params.out:q} --provenance {params.provenance:q} 2>&1"
        " | tee {log:q}"


rule plan:
    """Jobs and GPU hours of the whole config."""
    input:
        grid_item("plan"),
    localrule: True


for experiment in SETTINGS.experiments:

    rule:
        name:
            f"experiment_{experiment}"
        input:
            paper_outputs(experiment),
        localrule: True
