"""Relevance: how informative a token is for a label, from the training split only.

REQUIRED INPUTS
    results/corpus/<dataset>/labels.safetensors, <backbone>/tokens.safetensors, <backbone>/vocabulary.parquet

OUTPUTS
    results/relevance/<dataset>/<backbone>/<measure>.{parquet,safetensors}
    results/relevance/<dataset>/<backbone>/<measure>.shortlist<size>.safetensors   (recipes with a shortlist)
    results/relevance/<dataset>/<backbone>/<measure>.residual<k>x<folds>.safetensors   (recipes with a residual)
"""


rule relevance:
    """Contingency of tokens and labels, the measure, and the top k tokens of each label (appendix B.1)."""
    input:
        unpack(corpus_files),
        unpack(tokenizer_of_descriptions),
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
        settings=relevance_settings,
        options=lambda wildcards, input: options(wildcards, input, "tokenizer"),
        rooms=digest("relevance"),
    shell:
        "{params.script} --settings {params.settings:q} --measure {wildcards.measure} --labels {input.labels:q}"
        " --tokens {input.tokens:q} {params.options} --parquet {output.parquet:q} --arrays {output.arrays:q}"
        " --provenance {output.provenance:q} > {log:q} 2>&1"


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
        settings=lambda wildcards: section(wildcards.dataset, size=int(wildcards.size)),
        rooms=digest("relevance", "metrics/f1.py"),
    shell:
        "{params.script} --settings {params.settings:q} --labels {input.labels:q} --tokens {input.tokens:q}"
        " --relevance {input.relevance:q} --shortlist {output.shortlist:q} --provenance {output.provenance:q}"
        " > {log:q} 2>&1"


rule residual:
    """Log-odds of every document and label for the residual on the logit, cross-fitted over folds (choice C27)."""
    input:
        unpack(corpus_files),
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        names="<results>/corpus/{dataset}/labels.parquet",
        documents="<results>/corpus/{dataset}/train.parquet",
    output:
        residual="<results>/relevance/{dataset}/{backbone}/{measure}.residual{k}x{folds}.safetensors",
        provenance="<results>/relevance/{dataset}/{backbone}/{measure}.residual{k}x{folds}.provenance.json",
    log:
        "logs/relevance/{dataset}/{backbone}/{measure}.residual{k}x{folds}.log",
    benchmark:
        "benchmarks/relevance/{dataset}/{backbone}/{measure}.residual{k}x{folds}.tsv"
    wildcard_constraints:
        k=r"\d+",
        folds=r"\d+",
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("residual"),
        settings=lambda wildcards: section(
            wildcards.dataset,
            relevance=SETTINGS.relevance.model_copy(update={"k": int(wildcards.k)}),
            folds=int(wildcards.folds),
            smoothing=SETTINGS.baselines.smoothing,
        ),
        rooms=digest("relevance", "corpus/folds.py"),
    shell:
        "{params.script} --settings {params.settings:q} --measure {wildcards.measure} --labels {input.labels:q}"
        " --tokens {input.tokens:q} --documents {input.documents:q} --residual {output.residual:q}"
        " --provenance {output.provenance:q} > {log:q} 2>&1"
