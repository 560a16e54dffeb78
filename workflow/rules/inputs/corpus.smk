"""Functions of `corpus.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def downloads(wildcards):
    """The declared downloads that a dataset reads. Ends the run where the config names what is not there."""
    if absent(wildcards.dataset):
        needed = {**absent(SETTINGS.whole(wildcards.dataset)), **absent(wildcards.dataset)}
        used = [SETTINGS.experiments[name].dataset for name in ASKED]
        others = {key: path for name in [*map(SETTINGS.whole, used), *used] for key, path in absent(name).items()}
        more = listed({key: path for key, path in others.items() if key not in needed})
        # Snakemake would print an exception of an input function with a traceback
        raise SystemExit(
            f"error: config: expected data at the paths that it names, got nothing there:\n{listed(needed)}\n"
            + (f"The target `all` needs these too:\n{more}\n" if more else "")
            + "Put the data there, or set these keys to where it lies."
        )
    paths = SETTINGS.datasets[wildcards.dataset].sources.values()
    own = [path for path in paths if not SETTINGS.downloads_of(path)]
    warn_of_changes(f"{R}/corpus/{wildcards.dataset}/train.parquet", *own)
    return list(dict.fromkeys(file for path in paths for file in SETTINGS.downloads_of(path)))


def listed(places):
    """A line for each key and its path."""
    return "\n".join(f"  {key}: {path}" for key, path in places.items())


def absent(dataset):
    """Key of the config -> path of what is not there, for a corpus that has yet to be made (a plan needs no data)."""
    made = Path(f"{R}/corpus/{dataset}/labels.parquet").exists()
    return {} if made or "PLANT_PLAN" in os.environ else SETTINGS.absent(dataset)


def corpus_settings(wildcards):
    """The dataset's section, without what only the plan of the grid and Stage 3 read."""
    dataset = SETTINGS.datasets[wildcards.dataset]
    expected = dataset.expected.model_copy(update={"tokens": None})
    return section(wildcards.dataset, dataset=dataset.model_copy(update={"expected": expected, "category_ends": None}))
