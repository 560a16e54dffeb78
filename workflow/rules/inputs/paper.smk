"""Functions of `paper.smk`: inputs and settings of its jobs. Snakemake asks for files with either rules or functions."""


def code_of_paper():
    """The digest of the script that writes all tables and figures. No import statement names their modules."""
    return code(
        "paper", *(entry.function.__module__ for entry in baselines().values()), *(each.module for each in contents())
    )


def shown(paths, category):
    """The outputs of a rule. `snakemake --report` shows the tables in CSV, the figures in PNG and the report."""
    captions, found = {part.name: part.caption for part in contents()}, []
    for path in paths:
        if path.endswith((".csv", ".png", ".html")):
            name, group = Path(path).stem, None if category == "paper" else "{experiment}"
            labels = {"name": name} if name not in captions else {"name": name, "shows": captions[name]}
            path = report(
                path, caption=f"../report/{category}.rst", category=category, subcategory=group, labels=labels
            )
        found.append(path)
    return found


def ablations():
    """Target -> (variant, experiments that hold it)."""
    found = {}
    for name, settings in SETTINGS.experiments.items():
        for variant in settings.variants:
            found.setdefault(f"ablation_{variant}", (variant, []))[1].append(name)
            found[f"ablation_{variant}_in_{name}"] = (variant, [name])
    return found


def item_targets():
    """Target -> (item, what it waits for): of whatever has run, and after all that the item needs."""
    items = get_args(plant_settings.Item)
    return {item: (item, []) for item in (*items, "cost")} | {
        f"reproduce_{item}": (item, partial(item_sources, item)) for item in items
    }


def item_sources(item, wildcards):
    """What one of the paper's items reads, and nothing else: for `reproduce_table_6`, which runs it."""
    from plant.paper.grid.items import needs  # loads matplotlib

    experiments, datasets = needs(item, SETTINGS)
    words = experiments if item == "awd_table_11" else []
    return [
        *(file for name in words for file in PATHS.attention(name).values()),
        *(f"{R}/corpus/{dataset}/statistics.json" for dataset in datasets),
        *(f"{R}/statistics/{name}/intervals.parquet" for name in experiments if SETTINGS.experiments[name].report),
        *(file for name in experiments for file in PATHS.score_files(name, *METRICS)),
    ]


def experiment_settings(wildcards):
    """The config cut down to one experiment, and the paths of its results, by which `plant trace` follows a system."""
    name = wildcards.experiment
    cut = cut_settings(SETTINGS, name)
    return section(SETTINGS.experiments[name].dataset, config=cut, paths=PATHS.inputs(name), experiment=name)


@cache
def all_results():
    """The whole config, and the paths of all results."""
    datasets = [experiment.dataset for experiment in SETTINGS.experiments.values()]
    paths = {name: PATHS.inputs(name) for name in SETTINGS.experiments}
    return section(*datasets, config=SETTINGS, paths=paths)


def grid_settings(item):
    """What an item of the paper is made from: all results."""
    return dict(sorted({**all_results(), "item": item}.items()))


def grid_files(wildcards):
    """What the paper's items wait for: a table of every experiment that `all` runs, which stands for all that it is
    made from, and the metrics of those without tables. (All files of all experiments would be thousands an item.)"""
    tables = [PATHS.tables(name)[0] for name in REPORTED]
    metrics = [file for name in ASKED if name not in REPORTED for file in PATHS.score_files(name, "metrics.json")]
    return list(dict.fromkeys(tables + metrics))


def graph_digest():
    """A digest of the rules: the plan counts their jobs."""
    files = [Path(workflow.basedir) / "Snakefile", *sorted((SCRIPTS.parent / "rules").rglob("*.smk"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
