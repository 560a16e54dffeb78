"""Relevance: how informative a token is for a label, from the training split only.

REQUIRED INPUTS
    results/corpus/<dataset>/labels.safetensors, <backbone>/tokens.safetensors, <backbone>/vocabulary.parquet

OUTPUTS
    results/relevance/<dataset>/<backbone>/<measure>.{parquet,safetensors}
    results/relevance/<dataset>/<backbone>/<measure>.shortlist<size>.safetensors   (recipes with a shortlist)
"""


rule relevance:
    """Contingency of tokens and labels, the measure, and the top k tokens of each label (appendix B.1)."""
    input:
        unpack(corpus_files),
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        names="<results>/corpus/{dataset}/labels.parquet",
    output:
        parquet="<results>/relevance/{dataset}/{backbone}/{measure}.parquet",
        arrays="<results>/relevance/{dataset}/{backbone}/{measure}.safetensors",
        provenance="<results>/relevance/{dataset}/{backbone}/{measure}.provenance.json",
    log:
        "logs/relevance/{dataset}/{backbone}/{measure}.log",
    benchmark:
        "benchmarks/relevance/{dataset}/{backbone}/{measure}.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(4000),
    params:
        script=script("relevance"),
        settings=lambda wildcards: section(relevance=SETTINGS.relevance),
        rooms=digest("relevance"),
    shell:
        "{params.script} --settings {params.settings} --measure {wildcards.measure} --labels {input.labels}"
        " --tokens {input.tokens} --parquet {output.parquet} --arrays {output.arrays}"
        " --provenance {output.provenance} > {log} 2>&1"


rule shortlist:
    """The labels of largest relevance summed over a document's tokens: candidates where |L| is beyond a setting."""
    input:
        unpack(corpus_files),
        relevance="<results>/relevance/{dataset}/{backbone}/{measure}.safetensors",
    output:
        shortlist="<results>/relevance/{dataset}/{backbone}/{measure}.shortlist{size}.safetensors",
        provenance="<results>/relevance/{dataset}/{backbone}/{measure}.shortlist{size}.provenance.json",
    log:
        "logs/relevance/{dataset}/{backbone}/{measure}.shortlist{size}.log",
    benchmark:
        "benchmarks/relevance/{dataset}/{backbone}/{measure}.shortlist{size}.tsv"
    wildcard_constraints:
        size=r"\d+",
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("shortlist"),
        settings=lambda wildcards: section(size=int(wildcards.size)),
        rooms=digest("relevance", "f1.py"),
    shell:
        "{params.script} --settings {params.settings} --labels {input.labels} --tokens {input.tokens}"
        " --relevance {input.relevance} --shortlist {output.shortlist} --provenance {output.provenance} > {log} 2>&1"
