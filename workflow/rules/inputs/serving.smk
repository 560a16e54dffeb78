"""Functions of `serving.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def served_systems(experiment, name):
    """The systems that a folder may hold: one, or all of the experiment of which the best is taken."""
    return saved_systems(SETTINGS.experiments[experiment]) if name == BEST else [name]


def saved_systems(experiment):
    """All systems of an experiment but averages: a folder holds one network."""
    averages = [name for name in experiment.variants if SETTINGS.variants[name].average_with]
    return [name for name in (*experiment.variants, *experiment.baselines) if name not in averages]


def candidates(experiment, name):
    """Each run that may be saved, as plain data (plant.serving.export.Candidate)."""
    dataset, backbone = SETTINGS.experiments[experiment].dataset, SETTINGS.experiments[experiment].backbone
    words = {
        channel: f"{R}/evaluation/{dataset}/words/{entry.name}/seed0" for channel, entry in known_channels().items()
    }
    found = []
    for system in served_systems(experiment, name):
        for scores in PATHS.scores(experiment, system):
            seed = scores.rpartition("seed")[2]
            run = {"system": system, "scores": scores, "seed": int(seed)}
            variant = SETTINGS.variants.get(system)
            if variant is None:
                parts = baselines()[system].inputs
                read = {entry.channel for entry in known_channels().values() if entry.name in parts}
                found.append(run | {"channels": {channel: words[channel] for channel in sorted(read)}})
                continue
            recipe, evidence = SETTINGS.stage2(dataset, backbone, variant.network), SETTINGS.evidence_of(system)
            relevance = f"{R}/relevance/{dataset}/{backbone}/{recipe.static_measure}.safetensors"
            run["finetuning"] = recipe.model_dump(mode="json")
            if SETTINGS.reads_network(system):
                run["network"] = f"{R}/finetuning/{dataset}/{backbone}/{variant.network}/seed{seed}"
                run["static"] = relevance if recipe.static_attention else None
            if evidence is not None:
                asked = {channel: words[channel] for channel in evidence.channels if channel in words}
                run |= {"evidence": evidence.model_dump(mode="json"), "channels": asked}
            found.append(run)
    return found


def run_files(wildcards):
    """What the runs wrote, for the rule to wait for."""
    files = []
    for run in candidates(wildcards.experiment, wildcards.system):
        channels = [run["scores"], *run.get("channels", {}).values()]
        files += [f"{run['scores']}/metrics.json", *(f"{folder}/val.scores.parquet" for folder in channels)]
        if "network" in run:
            files += [f"{run['network']}/{weights}" for weights in (*WEIGHTS, "head.safetensors")]
        files += [run["static"]] if run.get("static") else []
    return list(dict.fromkeys(files))


def network_files(wildcards):
    """Tokens, and what this pipeline makes for the backbone, where a run has a network."""
    chosen = SETTINGS.experiments[wildcards.experiment]
    if not any("network" in run for run in candidates(wildcards.experiment, wildcards.system)):
        return []
    made = made_backbone(chosen)
    return [f"{R}/corpus/{chosen.dataset}/{chosen.backbone}/tokens.safetensors", *([made] if made else [])]


def serving_settings(wildcards):
    chosen = SETTINGS.experiments[wildcards.experiment]
    dataset, backbone = SETTINGS.datasets[chosen.dataset], SETTINGS.backbones[chosen.backbone]
    whole = SETTINGS.datasets[SETTINGS.whole(chosen.dataset)]
    licences = {
        file.licence for path in dataset.sources.values() for file in map(DOWNLOADS.get, SETTINGS.downloads_of(path))
    }
    return section(
        chosen.dataset,
        experiment=wildcards.experiment,
        corpus_name=chosen.dataset,
        source=whole.source,
        cleaning=whole.cleaning,
        made_up=SETTINGS.is_stand_in(chosen.dataset),
        licences=sorted(licence for licence in licences if licence),
        titles={name: variant.title or name for name, variant in SETTINGS.variants.items()},
        backbone=backbone,
        words=SETTINGS.backbones.get("words"),
        evaluation=SETTINGS.evaluation,
        compute=SETTINGS.compute,
        baselines=SETTINGS.baselines,
        candidates=candidates(wildcards.experiment, wildcards.system),
    )


def served_code(wildcards):
    """An experiment names its dataset and backbone, as the wildcards of other rules do."""
    chosen = SETTINGS.experiments[wildcards.experiment]
    is_network = SETTINGS.backbones[chosen.backbone].kind != "words"
    return code_of_network("save_model")(chosen) if is_network else code("save_model")


def served_folders():
    """Target -> model folder."""
    found = {}
    for name, experiment in SETTINGS.experiments.items():
        found[f"model_{name}"] = f"{R}/serving/{name}/{BEST}"
        for system in saved_systems(experiment):
            found[f"model_{system}_in_{name}"] = f"{R}/serving/{name}/{system}"
    return found
