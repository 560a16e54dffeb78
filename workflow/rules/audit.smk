"""Audit: the paper's printed numbers against one another. Needs no data and no result of this pipeline.

REQUIRED INPUTS
    src/plant/paper/values/values.yaml (the transcription), src/plant/paper/audit/audit.yaml (findings in words)

OUTPUTS
    results/paper/audit.md, results/paper/audit.csv
"""


rule audit:
    """Relations that the paper's numbers must satisfy, and what fails, as a page and a table."""
    input:
        values=Path(workflow.basedir) / "src/plant/paper/values/values.yaml",
        explanations=Path(workflow.basedir) / "src/plant/paper/audit/audit.yaml",
    output:
        page="<results>/paper/audit.md",
        table="<results>/paper/audit.csv",
        provenance="<results>/paper/audit.provenance.json",
    log:
        "logs/paper/audit.log",
    localrule: True
    params:
        settings=section(),
        code=code("audit"),
    script:
        "../scripts/audit.py"
