"""Evaluation: systems without a network, under the same scores contract as the trained ones.

One rule a baseline, under the baseline's name: `rule tfidf_linear`, `rule mig_log_odds`, and so on. What each reads,
writes and needs stands in its entry (src/plant/baselines/registry.py).

REQUIRED INPUTS
    results/corpus/<dataset>/, results/corpus/<dataset>/words/, results/relevance/<dataset>/words/mig.parquet

OUTPUTS
    results/evaluation/<dataset>/words/<baseline>/seed0/
        {val,test}.scores.parquet (and .safetensors for small label sets), choices.json, weights.parquet, features.parquet
"""

for entry in baselines().values():

    rule:
        name:
            entry.name
        input:
            **baseline_inputs(entry),
        output:
            multiext(
                f"<results>/evaluation/{{dataset}}/words/{entry.name}/seed0/",
                *SCORES,
                "choices.json",
                *entry.outputs,
                "provenance.json",
            ),
        log:
            f"logs/evaluation/{{dataset}}/words/{entry.name}.log",
        benchmark:
            f"benchmarks/evaluation/{{dataset}}/words/{entry.name}.tsv"
        conda:
            "../../envs/plant.yaml"
        threads: entry.threads
        resources:
            mem_mb=attempts(8000),
        params:
            script=script("baseline"),
            name=entry.name,
            settings=baseline_settings(entry),
            corpus=lambda wildcards: f"{R}/corpus/{wildcards.dataset}",
            options=lambda wildcards, input: " ".join(
                f"--{kind} {shlex.join(map(str, [files] if isinstance(files, str) else files))}"
                for kind, files in input.items()
            ),
            out=subpath(output[0], parent=True),
            rooms=digest("baselines", "metrics", "kernels", "relevance", "corpus/descriptions.py", "corpus/mentions.py"),
        shell:
            "{params.script} --name {params.name} --settings {params.settings:q} --seed 0 --threads {threads}"
            " --corpus {params.corpus:q} {params.options} --out {params.out:q}"
            " --provenance {params.out:q}/provenance.json > {log:q} 2>&1"
