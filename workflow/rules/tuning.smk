"""Tuning: learning rates and epochs of Stage 2, chosen on validation, the same grid for every arm.

REQUIRED INPUTS
    results/finetuning/<dataset>/<backbone>/<pretraining>+<recipe of a point>/seed<seed>/{history.parquet,provenance.json}

OUTPUTS
    results/tuning/<tuning>/grid.csv        every validation score
    results/tuning/<tuning>/chosen.yaml     a config with the section `tuned`: lay it over the one that made it
"""


include: "inputs/tuning.smk"


rule write_choice:
    """The rates with the best validation macro-F1, of every arm; warns where the grid may not hold the best."""
    input:
        runs=lambda wildcards: in_folders([tuning_runs(wildcards)], ["history.parquet", "provenance.json"]),
    output:
        grid="<results>/tuning/{tuning}/grid.csv",
        chosen="<results>/tuning/{tuning}/chosen.yaml",
        provenance="<results>/tuning/{tuning}/provenance.json",
    log:
        "logs/tuning/{tuning}.log",
    localrule: True
    params:
        settings=tuning_settings,
        folder=lambda wildcards: PATHS.of("finetuning", SETTINGS.tunings[wildcards.tuning].experiment),
        screen="everything",
        code=code("tune"),
    script:
        "../scripts/tune.py"


rule tune:
    """The choices of all tunings."""
    input:
        expand("<results>/tuning/{tuning}/chosen.yaml", tuning=SETTINGS.tunings),
    localrule: True


TARGETS |= {f"tune_{tuning}": f"<results>/tuning/{tuning}/chosen.yaml" for tuning in SETTINGS.tunings}
