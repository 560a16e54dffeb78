"""Functions of `finetuning.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""

NETWORK = {
    "labels": "<results>/corpus/{dataset}/labels.safetensors",
    "tokens": "<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
    "made": made_backbone,
    "features": features,
    "static": static,
    "residual": residual,
}
"""What every job reads that trains or runs a network of Stage 2."""
TRAINED = [
    f"<results>/finetuning/{{dataset}}/{{backbone}}/{{initial}}+{{finetuning}}/seed{{seed}}/{file}"
    for file in (*WEIGHTS, "head.safetensors")
]
"""The weights after Stage 2."""


def planted(wildcards):
    """What Stage 2 waits for: the weights of Stage 1, or the folder with those of its epochs."""
    recipe, _, epoch = wildcards.initial.partition("@")
    folder = f"{R}/pretraining/{wildcards.dataset}/{wildcards.backbone}/{recipe}/seed{wildcards.seed}"
    if recipe == plant_settings.NO_PRETRAINING:
        return []
    return f"{folder}/epochs" if epoch else [f"{folder}/{name}" for name in WEIGHTS]


def planted_weights(wildcards):
    """The weights that Stage 2 starts from."""
    waits, epoch = planted(wildcards), wildcards.initial.partition("@")[2]
    return [f"{waits}/{epoch}/{name}" for name in WEIGHTS] if epoch else waits
