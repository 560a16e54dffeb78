"""Evaluation: systems without a network, under the same scores contract as the trained ones.

One rule a baseline, under the baseline's name: `rule tfidf_linear`, `rule mig_log_odds`, and so on. What each reads,
writes and needs stands in its entry (src/plant/baselines/registry.py).

REQUIRED INPUTS
    results/corpus/<dataset>/, results/corpus/<dataset>/words/, results/relevance/<dataset>/words/mig.parquet

OUTPUTS
    results/evaluation/<dataset>/words/<baseline>/seed0/
        {val,test}.scores.parquet (and .safetensors for small label sets), choices.json, weights.parquet, features.parquet
"""


include: "inputs/baselines.smk"


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
        threads: entry.threads
        resources:
            mem_mb=attempts(8000),
        params:
            settings=partial(baseline_settings, entry),
            name=entry.name,
            seed=0,
            code=code_of_baselines("baseline", [entry]),
        script:
            "../scripts/baseline.py"
