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
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        names="<results>/corpus/{dataset}/labels.parquet",
        # descriptions are read with the tokenizer that this pipeline trained (choice C28)
        tokenizer=lambda wildcards: made_tokenizer(wildcards) if MEASURES[wildcards.measure].described else [],
    output:
        parquet="<results>/relevance/{dataset}/{backbone}/{measure}.parquet",
        arrays="<results>/relevance/{dataset}/{backbone}/{measure}.safetensors",
        provenance="<results>/relevance/{dataset}/{backbone}/{measure}.provenance.json",
    log:
        "logs/relevance/{dataset}/{backbone}/{measure}.log",
    resources:
        mem_mb=attempts(4000),
    params:
        settings=branch(
            lambda wildcards: MEASURES[wildcards.measure].described,
            then=settings_of("relevance", "backbone"),
            otherwise=settings_of("relevance"),
        ),
        code=code("relevance"),
    script:
        "../scripts/relevance.py"


rule shortlist:
    """The labels of largest relevance summed over a document's tokens: candidates where |L| is beyond a setting."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        relevance="<results>/relevance/{dataset}/{backbone}/{measure}.safetensors",
    output:
        shortlist="<results>/relevance/{dataset}/{backbone}/{measure}.shortlist{size}.safetensors",
        provenance="<results>/relevance/{dataset}/{backbone}/{measure}.shortlist{size}.provenance.json",
    log:
        "logs/relevance/{dataset}/{backbone}/{measure}.shortlist{size}.log",
    wildcard_constraints:
        size=r"\d+",
    resources:
        mem_mb=attempts(8000),
    params:
        settings=settings_of(size=lambda wildcards: int(wildcards.size)),
        code=code("shortlist"),
    script:
        "../scripts/shortlist.py"


rule residual:
    """Log-odds of every document and label for the residual on the logit, cross-fitted over folds (choice C27)."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        names="<results>/corpus/{dataset}/labels.parquet",
        documents="<results>/corpus/{dataset}/train.parquet",
    output:
        residual="<results>/relevance/{dataset}/{backbone}/{measure}.residual{k}x{folds}.safetensors",
        provenance="<results>/relevance/{dataset}/{backbone}/{measure}.residual{k}x{folds}.provenance.json",
    log:
        "logs/relevance/{dataset}/{backbone}/{measure}.residual{k}x{folds}.log",
    wildcard_constraints:
        k=r"\d+",
        folds=r"\d+",
    resources:
        mem_mb=attempts(8000),
    params:
        settings=settings_of(
            relevance=lambda wildcards: SETTINGS.relevance.model_copy(update={"k": int(wildcards.k)}),
            folds=lambda wildcards: int(wildcards.folds),
            smoothing=lambda wildcards: SETTINGS.baselines.smoothing,
        ),
        code=code("residual"),
    script:
        "../scripts/residual.py"
