"""Functions of `evaluation.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def channels(wildcards):
    """Channel -> folder of its scores, of the channels that a Stage 3 recipe adds up (the prior has none)."""
    base = f"{R}/evaluation/{wildcards.dataset}"
    network = f"{base}/{wildcards.backbone}/{wildcards.initial}+{wildcards.finetuning}/seed{wildcards.seed}"
    folders = {channel: f"{base}/words/{entry.name}/seed0" for channel, entry in known_channels().items()}
    folders["network"] = network
    asked = SETTINGS.evidences[wildcards.evidence].channels
    return {channel: folders[channel] for channel in asked if channel != "prior"}


def words_of_reasons(wildcards):
    """The tokens of the words, where reasons are shown and a channel counts words."""
    entries = [entry for channel, entry in known_channels().items() if channel in channels(wildcards)]
    shown = any("tokens" in entry.inputs for entry in entries) and SETTINGS.documents_shown(wildcards.dataset)
    return f"{R}/corpus/{wildcards.dataset}/words/tokens.safetensors" if shown else []


def kept(wildcards):
    """The keys of the section `evaluation` that scores depend on."""
    return SETTINGS.evaluation.of_scores
