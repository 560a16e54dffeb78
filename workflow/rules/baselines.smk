"""Evaluation: systems without a network, under the same scores contract as the trained ones.

One rule a baseline, under the baseline's name: `rule tfidf_linear`, `rule mig_log_odds`, and so on. What each reads,
writes and needs stands in its entry (src/plant/baselines/registry.py).

REQUIRED INPUTS
    results/corpus/<dataset>/, results/corpus/<dataset>/words/, results/relevance/<dataset>/words/mig.parquet

OUTPUTS
    results/evaluation/<dataset>/words/<baseline>/seed0/
        {val,test}.scores.parquet (and .safetensors for small label sets), choices.json, weights.parquet, features.parquet
"""

BASELINE_INPUTS = {
    "documents": [f"{R}/corpus/{{dataset}}/{split}.parquet" for split in ("train", "val", "test")],
    "labels": [f"{R}/corpus/{{dataset}}/labels.{ending}" for ending in ("parquet", "safetensors")],
    "tokens": f"{R}/corpus/{{dataset}}/words/tokens.safetensors",
    "relevance": f"{R}/relevance/{{dataset}}/words/mig.parquet",
    "mentions": f"{R}/corpus/{{dataset}}/mentions.parquet",
}


def baseline_inputs(entry):
    """Kind of input -> files; the scores of other baselines are of the kind `scores`."""
    files = {kind: BASELINE_INPUTS[kind] for kind in entry.inputs if kind in BASELINE_INPUTS}
    parts = [f"{R}/evaluation/{{dataset}}/words/{name}/seed0" for name in entry.inputs if name not in BASELINE_INPUTS]
    return files | ({"scores": in_folders([parts], SCORES)} if parts else {})


def baseline_settings(entry, wildcards):
    measured = entry.needs == "category_ends"  # it counts the words of categories itself
    return section(
        wildcards.dataset,
        baselines=SETTINGS.baselines,
        evaluation=SETTINGS.evaluation,
        relevance=SETTINGS.relevance if measured else {},
        category_ends=SETTINGS.datasets[wildcards.dataset].category_ends if measured else None,
    )


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
            settings=partial(baseline_settings, entry),
            name=entry.name,
            seed=0,
            code=code_of_baselines("baseline", [entry]),
        script:
            "../scripts/baseline.py"
