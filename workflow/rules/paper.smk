"""Paper: tables, figures and one self-contained report of each experiment. Reads metrics and statistics only.

REQUIRED INPUTS
    results/statistics/<experiment>/*.parquet, results/evaluation/.../{metrics.json,per_label.parquet}
    results/{pretraining,finetuning}/.../{history.parquet,provenance.json}

OUTPUTS
    results/paper/<experiment>/tables/*.{csv,md,tex}, figures/*.{pdf,png}, report.html
    results/paper/tables/table_<n>.{csv,md,tex}, figures/figure_<n>.{pdf,png}   the paper's own, with a verdict a cell
    results/paper/tables/cost.*, plan.{csv,md}
"""


include: "inputs/paper.smk"


rule write_tables:
    """The ablation table in the paper's form, and beside it intervals, seeds, corpus and cost."""
    input:
        lambda wildcards: PATHS.input_files(wildcards.experiment),
    output:
        shown(PATHS.tables("{experiment}"), "tables"),
        provenance="<results>/paper/{experiment}/tables.provenance.json",
    log:
        "logs/paper/{experiment}/tables.log",
    params:
        settings=experiment_settings,
        out=subpath(output[0], parent=True),
        code=code_of_paper(),
    script:
        "../scripts/paper.py"


# Figures and report read what the tables read: a table stands for it here, so that the graph has thousands of edges less.
use rule write_tables as write_figures with:
    input:
        PATHS.tables("{experiment}")[0],
    output:
        shown(PATHS.figures("{experiment}"), "figures"),
        provenance="<results>/paper/{experiment}/figures.provenance.json",
    log:
        "logs/paper/{experiment}/figures.log",


use rule write_tables as write_report with:
    input:
        PATHS.tables("{experiment}")[0],
        figures=[f"<results>/paper/{{experiment}}/figures/{name}.png" for name in report_figures()],
    output:
        report=shown([PATHS.report("{experiment}")], "report")[0],
        provenance="<results>/paper/{experiment}/report.provenance.json",
    log:
        "logs/paper/{experiment}/report.log",
    params:
        settings=experiment_settings,
        choices=HERE / "docs" / "explanation" / "choices",
        code=code_of_paper(),


# `ablation_<variant>` in all experiments that hold it, `ablation_<variant>_in_<experiment>` in one: the runs of the
# variant and of the reference, and how the two differ.
for target, (variant, experiments) in named(ablations()).items():

    rule:
        name:
            target
        input:
            metrics=[
                f"{folder}/metrics.json" for experiment in experiments for folder in PATHS.scores(experiment, variant)
            ],
            contrasts=[
                f"{R}/statistics/{experiment}/ablation/{variant}.parquet"
                for experiment in experiments
                if SETTINGS.experiments[experiment].reference != variant
            ],
        log:
            f"logs/paper/{target}.log",
        localrule: True
        params:
            screen="everything",
        script:
            "../scripts/ablation.py"


rule write_paper_table:
    """A table of the paper, cell by cell: the paper's value, ours, our interval, a verdict; or what everything cost."""
    input:
        grid_files,
    output:
        shown([f"<results>/paper/tables/{{item}}.{kind}" for kind in ("csv", "md", "tex")], "paper"),
        provenance="<results>/paper/tables/{item}.provenance.json",
    log:
        "logs/paper/tables/{item}.log",
    wildcard_constraints:
        item=r"cost|(awd_)?(table|figure|appendix)_\d+",
    params:
        settings=lambda wildcards: grid_settings(wildcards.item),
        out=subpath(output[0], ancestor=2),
        code=code_of_paper(),
    script:
        "../scripts/paper.py"


use rule write_paper_table as write_paper_figure with:
    output:
        shown([f"<results>/paper/figures/{{item}}.{kind}" for kind in ("pdf", "png")], "paper"),
        provenance="<results>/paper/figures/{item}.provenance.json",
    log:
        "logs/paper/figures/{item}.log",


rule write_plan:
    """The plan as a file of the paper's grid."""
    output:
        PLAN,
        provenance="<results>/paper/plan.provenance.json",
    log:
        "logs/paper/plan.log",
    localrule: True
    params:
        settings=lambda wildcards: section(config=SETTINGS),
        snakefile=HERE / "Snakefile",
        graph=graph_digest(),
        code=code("plan", "plant.paper.paths"),
    script:
        "../scripts/plan.py"


# `table_6` writes the table from whatever has run, at once, and says what is missing; `reproduce_table_6` runs first what
# it needs; `all` writes it when everything has run. All write the same file.
for target, (item, sources) in named(item_targets()).items():

    rule:
        name:
            target
        input:
            sources,
        log:
            f"logs/paper/so_far/{target}.log",
        localrule: True
        params:
            settings=partial(lambda item, wildcards: grid_settings(item), item),
            out=f"{R}/paper",
            screen="everything",
            provenance=PATHS.item(item)[0].rpartition(".")[0] + ".provenance.json",
        script:
            "../scripts/paper.py"


rule plan:
    """Jobs and hours of the whole config, counted now; the first part of the page is shown."""
    log:
        "logs/paper/so_far/plan.log",
    localrule: True
    params:
        settings=lambda wildcards: section(config=SETTINGS),
        snakefile=HERE / "Snakefile",
        out=f"{R}/paper",
        screen="everything",
        provenance=f"{R}/paper/plan.provenance.json",
    script:
        "../scripts/plan.py"


TARGETS |= {f"experiment_{experiment}": PATHS.outputs(experiment) for experiment in SETTINGS.experiments}
