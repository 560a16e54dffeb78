"""Functions of `baselines.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""

BASELINE_INPUTS = {
    "documents": [f"{R}/corpus/{{dataset}}/{split}.parquet" for split in ("train", "val", "test")],
    "labels": [f"{R}/corpus/{{dataset}}/labels.{ending}" for ending in ("parquet", "safetensors")],
    "tokens": f"{R}/corpus/{{dataset}}/words/tokens.safetensors",
    "relevance": f"{R}/relevance/{{dataset}}/words/mig.parquet",
    "mentions": f"{R}/corpus/{{dataset}}/mentions.parquet",
}


def baseline_inputs(entry):
    """Kind of input -> files, none where the baseline does not read it; `scores` are those of other baselines."""
    parts = [f"{R}/evaluation/{{dataset}}/words/{name}/seed0" for name in entry.inputs if name not in BASELINE_INPUTS]
    files = {kind: paths if kind in entry.inputs else [] for kind, paths in BASELINE_INPUTS.items()}
    return files | {"scores": in_folders([parts], SCORES)}


def baseline_settings(entry, wildcards):
    categories = SETTINGS.datasets[wildcards.dataset].category_ends
    return section(
        wildcards.dataset,
        baselines=SETTINGS.baselines,
        evaluation=SETTINGS.evaluation.of_scores,
        relevance=SETTINGS.relevance if entry.counts else {},
        category_ends=categories if entry.needs == "category_ends" else None,
    )
