"""Functions of `baselines.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""

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
    categories = SETTINGS.datasets[wildcards.dataset].category_ends
    return section(
        wildcards.dataset,
        baselines=SETTINGS.baselines,
        evaluation=SETTINGS.evaluation,
        relevance=SETTINGS.relevance if entry.counts else {},
        category_ends=categories if entry.needs == "category_ends" else None,
    )
