"""Evaluation: systems without a network, under the same scores contract as the trained ones.

REQUIRED INPUTS
    results/corpus/<dataset>/, results/corpus/<dataset>/words/, results/relevance/<dataset>/words/mig.parquet

OUTPUTS
    results/evaluation/<dataset>/words/<baseline>/seed0/
        {val,test}.scores.parquet (and .safetensors for small label sets), choices.json, weights.parquet, features.parquet
"""


rule tfidf_linear:
    """TF-IDF and one linear classifier a label."""
    input:
        documents=multiext(
            "<results>/corpus/{dataset}/", "train.parquet", "val.parquet", "test.parquet", "labels.parquet"
        ),
    output:
        multiext(
            "<results>/evaluation/{dataset}/words/tfidf_linear/seed0/",
            *SCORES,
            "choices.json",
            "weights.parquet",
            "features.parquet",
            "provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/words/tfidf_linear.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/words/tfidf_linear.tsv"
    conda:
        "../../envs/plant.yaml"
    threads: 2
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("tfidf_linear"),
        settings=lambda wildcards: section(
            wildcards.dataset, grams="words", baselines=SETTINGS.baselines, evaluation=SETTINGS.evaluation
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        out=subpath(output[0], parent=True),
        rooms=digest("baselines", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --seed 0 --threads {threads} --corpus {params.corpus:q}"
        " --documents {input.documents:q} --out {params.out:q} --provenance {params.out:q}/provenance.json"
        " > {log:q} 2>&1"


rule mig_log_odds:
    """Sum of the log-odds of a label's top MIG words."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/words/tokens.safetensors",
        relevance="<results>/relevance/{dataset}/words/mig.parquet",
    output:
        multiext(
            "<results>/evaluation/{dataset}/words/mig_log_odds/seed0/",
            *SCORES,
            "choices.json",
            "weights.parquet",
            "provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/words/mig_log_odds.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/words/mig_log_odds.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("mig_log_odds"),
        settings=lambda wildcards: section(
            wildcards.dataset, baselines=SETTINGS.baselines, evaluation=SETTINGS.evaluation
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        out=subpath(output[0], parent=True),
        rooms=digest("baselines", "metrics", "kernels", "relevance/log_odds.py", "relevance/shortlist.py"),
    shell:
        "{params.script} --settings {params.settings:q} --corpus {params.corpus:q} --tokens {input.tokens:q}"
        " --relevance {input.relevance:q} --out {params.out:q} --provenance {params.out:q}/provenance.json"
        " > {log:q} 2>&1"


rule combined:
    """The z-scored sum of the two baselines, its weight from validation: the bar to beat."""
    input:
        linear=multiext("<results>/evaluation/{dataset}/words/tfidf_linear/seed0/", *SCORES),
        log_odds=multiext("<results>/evaluation/{dataset}/words/mig_log_odds/seed0/", *SCORES),
        labels="<results>/corpus/{dataset}/labels.parquet",
    output:
        multiext("<results>/evaluation/{dataset}/words/combined/seed0/", *SCORES, "choices.json", "provenance.json"),
    log:
        "logs/evaluation/{dataset}/words/combined.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/words/combined.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("combined"),
        settings=lambda wildcards: section(
            wildcards.dataset, baselines=SETTINGS.baselines, evaluation=SETTINGS.evaluation
        ),
        linear=lambda wildcards, input: Path(input.linear[0]).parent,
        log_odds=lambda wildcards, input: Path(input.log_odds[0]).parent,
        out=subpath(output[0], parent=True),
        rooms=digest("baselines", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --linear {params.linear:q} --log-odds {params.log_odds:q}"
        " --out {params.out:q} --provenance {params.out:q}/provenance.json > {log:q} 2>&1"


rule tfidf_characters:
    """TF-IDF over characters and one linear classifier a label."""
    input:
        documents=multiext(
            "<results>/corpus/{dataset}/", "train.parquet", "val.parquet", "test.parquet", "labels.parquet"
        ),
    output:
        multiext(
            "<results>/evaluation/{dataset}/words/tfidf_characters/seed0/",
            *SCORES,
            "choices.json",
            "weights.parquet",
            "features.parquet",
            "provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/words/tfidf_characters.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/words/tfidf_characters.tsv"
    conda:
        "../../envs/plant.yaml"
    threads: 2
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("tfidf_linear"),
        settings=lambda wildcards: section(
            wildcards.dataset, grams="characters", baselines=SETTINGS.baselines, evaluation=SETTINGS.evaluation
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        out=subpath(output[0], parent=True),
        rooms=digest("baselines", "metrics", "kernels"),
    shell:
        "{params.script} --settings {params.settings:q} --seed 0 --threads {threads} --corpus {params.corpus:q}"
        " --documents {input.documents:q} --out {params.out:q} --provenance {params.out:q}/provenance.json"
        " > {log:q} 2>&1"


rule category_log_odds:
    """Sum of the log-odds of the top MIG words of a label's category."""
    input:
        documents=multiext("<results>/corpus/{dataset}/", "labels.parquet", "labels.safetensors"),
        tokens="<results>/corpus/{dataset}/words/tokens.safetensors",
    output:
        multiext(
            "<results>/evaluation/{dataset}/words/category_log_odds/seed0/",
            *SCORES,
            "choices.json",
            "weights.parquet",
            "provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/words/category_log_odds.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/words/category_log_odds.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("category_log_odds"),
        settings=lambda wildcards: section(
            wildcards.dataset,
            ends=SETTINGS.datasets[wildcards.dataset].category_ends,
            relevance=SETTINGS.relevance,
            baselines=SETTINGS.baselines,
            evaluation=SETTINGS.evaluation,
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        out=subpath(output[0], parent=True),
        rooms=digest("baselines", "metrics", "kernels", "relevance"),
    shell:
        "{params.script} --settings {params.settings:q} --corpus {params.corpus:q} --documents {input.documents:q}"
        " --tokens {input.tokens:q} --out {params.out:q} --provenance {params.out:q}/provenance.json > {log:q} 2>&1"


rule descriptions:
    """How much of a label's description a document holds."""
    input:
        documents=multiext(
            "<results>/corpus/{dataset}/",
            "train.parquet",
            "val.parquet",
            "test.parquet",
            "labels.parquet",
            "labels.safetensors",
        ),
    output:
        multiext(
            "<results>/evaluation/{dataset}/words/descriptions/seed0/",
            *SCORES,
            "choices.json",
            "weights.parquet",
            "provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/words/descriptions.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/words/descriptions.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("descriptions"),
        settings=lambda wildcards: section(wildcards.dataset, evaluation=SETTINGS.evaluation),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        out=subpath(output[0], parent=True),
        rooms=digest("baselines", "metrics", "kernels", "corpus/descriptions.py"),
    shell:
        "{params.script} --settings {params.settings:q} --corpus {params.corpus:q} --documents {input.documents:q}"
        " --out {params.out:q} --provenance {params.out:q}/provenance.json > {log:q} 2>&1"


rule mentions:
    """Log-odds given the words that people marked as a label's reason."""
    input:
        documents=multiext(
            "<results>/corpus/{dataset}/",
            "train.parquet",
            "val.parquet",
            "test.parquet",
            "labels.parquet",
            "labels.safetensors",
        ),
        mentions="<results>/corpus/{dataset}/mentions.parquet",
    output:
        multiext(
            "<results>/evaluation/{dataset}/words/mentions/seed0/",
            *SCORES,
            "choices.json",
            "weights.parquet",
            "provenance.json",
        ),
    log:
        "logs/evaluation/{dataset}/words/mentions.log",
    benchmark:
        "benchmarks/evaluation/{dataset}/words/mentions.tsv"
    conda:
        "../../envs/plant.yaml"
    resources:
        mem_mb=attempts(8000),
    params:
        script=script("mentions"),
        settings=lambda wildcards: section(
            wildcards.dataset, baselines=SETTINGS.baselines, evaluation=SETTINGS.evaluation
        ),
        corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
        out=subpath(output[0], parent=True),
        rooms=digest("baselines", "metrics", "kernels", "corpus/mentions.py"),
    shell:
        "{params.script} --settings {params.settings:q} --corpus {params.corpus:q} --documents {input.documents:q}"
        " --mentions {input.mentions:q} --out {params.out:q} --provenance {params.out:q}/provenance.json > {log:q} 2>&1"
