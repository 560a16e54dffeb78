"""What the jobs of several rules read, where it depends on the config. The paths of results are those of
src/plant/paper/paths.py."""

# The experiments that `all` runs, and those of them that have tables, figures and a report.
ASKED = [name for name, experiment in SETTINGS.experiments.items() if not experiment.on_request]
REPORTED = [name for name in ASKED if SETTINGS.experiments[name].report]

# Target -> its files, for targets that are named for something of the config. The Snakefile makes a rule of each.
TARGETS = {}


@cache
def warn_of_changes(made, *sources):
    """Say on the screen that the config's files have changed since something was made from them: they are no inputs of a
    rule, because what is made needs them no more."""
    if not workflow.is_main_process or "PLANT_PLAN" in os.environ:
        return
    sidecar = Path(made).with_name("provenance.json")
    sidecar = sidecar if sidecar.is_file() else Path(made).with_suffix(".provenance.json")
    for path in changed_inputs(sidecar, sources):
        print(
            f"warning: {path} has changed since {made} was made from it, and is not read again. To read it, add: -R {made}",
            file=sys.stderr,
        )


def made_tokenizer(wildcards):
    """The tokenizer that this pipeline trains for a random backbone, or nothing."""
    random = SETTINGS.backbones[wildcards.backbone].kind == "random"
    return f"{R}/corpus/{wildcards.dataset}/{wildcards.backbone}/tokenizer" if random else []


def backbone_source(wildcards):
    """Where a backbone is loaded from: its hub id or folder, or what this pipeline makes for it (`made_backbone`)."""
    settings = SETTINGS.backbones[wildcards.backbone]
    return settings.path if settings.kind == "pretrained" else made_backbone(wildcards) or ""


def made_backbone(wildcards):
    """The random transformer, the language model or the word vectors that this pipeline makes, or nothing."""
    settings, folder = SETTINGS.backbones[wildcards.backbone], f"{R}/model/{wildcards.dataset}/{wildcards.backbone}"
    if settings.kind != "word_network":
        return f"{folder}/backbone" if settings.kind == "random" else []
    made = f"{folder}/{'language_model' if settings.language_model else 'word_vectors'}.safetensors"
    for key, path in settings.sources.items():
        if not Path(path).is_file() and not Path(made).exists() and "PLANT_PLAN" not in os.environ:
            raise SystemExit(
                f"error: backbones.{wildcards.backbone}.{key}: expected a file, got nothing at {path}. "
                "Put it there, or set the key to where it is."
            )
    warn_of_changes(made, *settings.sources.values())
    return made if settings.language_model or settings.word_vectors else []


def features(wildcards):
    """Cached hidden states, where the backbone has some."""
    cached = SETTINGS.backbones[wildcards.backbone].cache_features
    return "<results>/model/{dataset}/{backbone}/features.safetensors" if cached else []


def label_embeddings(recipe):
    """Label embeddings that a recipe starts from, where it asks for some."""
    described = recipe.initialisation == "descriptions"
    return "<results>/model/{dataset}/{backbone}/label_embeddings.safetensors" if described else []


def stage1_of(wildcards):
    """The recipe of a run of Stage 1."""
    return SETTINGS.pretrainings[wildcards.pretraining]


def stage2_of(wildcards):
    """The recipe of a run of Stage 2, with the rates that a tuning chose for it."""
    return SETTINGS.stage2(wildcards.dataset, wildcards.backbone, f"{wildcards.initial}+{wildcards.finetuning}")


def shortlist(wildcards):
    """The candidates that Stage 2 and prediction read, where the recipe asks for some."""
    size, folder = stage2_of(wildcards).shortlist, "<results>/relevance/{dataset}/{backbone}"
    return [] if size is None else f"{folder}/mig.shortlist{size}.safetensors"


def static(wildcards):
    """Relevance that Stage 2 and prediction add to the attention, where the recipe keeps some (choice C26)."""
    recipe, folder = stage2_of(wildcards), "<results>/relevance/{dataset}/{backbone}"
    return f"{folder}/{recipe.static_measure}.safetensors" if recipe.static_attention else []


def residual(wildcards):
    """Log-odds that Stage 2 and prediction add to the logits, where the recipe keeps some (choice C27)."""
    recipe, folder = stage2_of(wildcards), "<results>/relevance/{dataset}/{backbone}"
    name = f"mig.residual{recipe.residual}x{recipe.residual_folds}.safetensors"
    return [] if recipe.residual is None else f"{folder}/{name}"


PLAN = [f"{R}/paper/plan.{kind}" for kind in ("csv", "md")]


def is_open(dataset):
    """Whether the text is real and needs no credentials."""
    return not SETTINGS.is_credentialed(dataset) and not SETTINGS.is_stand_in(dataset)


def grid_outputs():
    """The paper's own tables and figures, what all of it cost, and what it was planned to cost."""
    items = [*SETTINGS.paper.items, "cost"] if SETTINGS.paper.items else []
    return [*(file for item in items for file in PATHS.item(item)), *(PLAN if items else [])]
