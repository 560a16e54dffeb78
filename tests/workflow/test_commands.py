"""Every command that README, docs, configs and Makefile print, as printed: parsed by Snakemake itself, and planned."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from snakemake.cli import get_argument_parser

from plant.evaluation.tuning import RATES, write_choice
from plant.ground.settings import Settings, further_runs, load, runs_of_arms, tuning_points

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in (
    "README.md", "Makefile", "Snakefile", "config/README.md", "CONTRIBUTING.md", "slurm/README.md",
    "slurm/profile.yaml", "envs/Containerfile",
)]  # fmt: skip
PAGES += sorted(path for path in ROOT.glob("docs/**/*.md") if path.name != "log.md")
PAGES += sorted(ROOT.glob("config/**/*.yaml"))
COMMAND = re.compile(r"""(?<![\w-])snakemake((?: (?!#)[^\s`),;|"]+)+)""")
"""A command ends at a backtick, a bracket, or where its words stand further apart than one space."""
FAIR = ("base", "fair_trial", "fair_encoders", "fair_ablations", "fair_starts", "fair_words")
MAKE = {
    "$(CORES)": "2", " $(LOCAL)": "", "\\\n\t    ": "", "$(STUDIES:%=study_%)": "study_when_planting_helps",
    "$(STUDIES:%=config/studies/%.yaml)": "config/studies/when_planting_helps.yaml",
    "$(FAIR:%=study_%)": "study_fair_trial study_fair_wide study_fair_awd",
    "$(OPEN:%=study_%)": "study_fair_codiesp study_fair_laws study_fair_ablations_codiesp",
    "$(MINILM:%=study_%)": "study_fair_minilm study_fair_cross_five study_fair_output",
    "$(FAIR_CONFIG)": " ".join(f"config/studies/{name}.yaml" for name in FAIR),
}  # fmt: skip
NEXT_LINE = "\\\n#         "
"""A command in a comment goes on in a line that is indented further."""
TAKES_A_VALUE = ("--cores", "-R", "--profile", "--scheduler", "--scheduler-subsample", "--sdm", "--resources")
DATA = ("data/mimic3", "data/mimic4")  # what the paper's config needs and nobody may ship


def printed() -> list[str]:
    """The commands without repetitions, with the values of make's variables."""
    found = {}
    for path in PAGES:
        text = path.read_text(encoding="utf-8").replace(NEXT_LINE, "")
        for variable, value in MAKE.items():
            text = text.replace(variable, value)
        found |= dict.fromkeys(words[1].strip() for words in COMMAND.finditer(text) if " -" in words[0])
    return list(found)


def meant(words: list[str]) -> tuple[list[str], list[str]]:
    """(targets, config files) as a reader takes them: a config is a .yaml file, a target is any other free word."""
    free = [word for before, word in zip(["", *words], words, strict=False)
            if not word.startswith("-") and before not in TAKES_A_VALUE]  # fmt: skip
    return ([word for word in free if not word.endswith(".yaml")], [word for word in free if word.endswith(".yaml")])


def test_the_pages_print_commands():
    assert len(printed()) >= 25
    assert {"--profile slurm all", "--cores 1 plan --configfile config/paper.yaml"} <= set(printed())


@pytest.mark.parametrize("command", printed())
def test_every_printed_command_has_the_targets_and_the_configs_that_a_reader_sees(command):
    words = shlex.split(command)
    parsed = get_argument_parser().parse_args(words)
    targets, configs = meant(words)
    assert sorted(parsed.targets) == sorted(targets)
    assert [str(path) for path in parsed.configfile or []] == configs
    assert all((ROOT / path).is_file() for path in configs if path != "config/mine.yaml" and path[:8] != "results/")


def laid_over(base: Any, more: Any) -> Any:
    """A config with another laid over it, as `--configfile` does it."""
    if not (isinstance(base, dict) and isinstance(more, dict)):
        return more
    return base | {key: laid_over(base.get(key), value) for key, value in more.items()}


def examples(page: str) -> list[dict[str, Any]]:
    """The parts of a config that a page prints, in its order."""
    blocks = re.findall(r"(?:^ {4}.*\n)+", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    parts = [yaml.safe_load(textwrap.dedent(block)) for block in blocks if re.match(r"\s+\w+:\n", block)]
    return [part for part in parts if part.keys() <= Settings.model_fields.keys()]


def own_config(page: str) -> dict[str, Any]:
    """config/own.yaml with all that a page adds to it; its encoder takes the place of `small`, as the page says."""
    config = yaml.safe_load((ROOT / "config/own.yaml").read_text(encoding="utf-8"))
    config["experiments"]["mine"]["backbone"] = "encoder"
    del config["backbones"]["small"]
    for part in examples(page):
        config = laid_over(config, part)
    return config


@pytest.mark.parametrize("page", ["config/README.md", "docs/tutorial/own-labels.md"])
def test_the_examples_of_a_page_are_a_config_in_which_everything_new_is_run(page):
    assert len(examples(page)) >= 3
    config = own_config(page)
    experiment = load(config).experiments["mine"]
    new = {name for part in examples(page) for name in part.get("variants", {})}
    assert new and new <= set(experiment.variants)
    if "descriptions" in config["datasets"]["mine"]:
        assert {"descriptions", "mentions"} <= set(experiment.baselines)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """The repository elsewhere, with a config and a table of one's own, and empty folders in the place of MIMIC."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in ("Snakefile", "docs", "envs", "profiles", "slurm", "src", "workflow"):
        if (ROOT / part).exists():
            (folder / part).symlink_to(ROOT / part)
    shutil.copytree(ROOT / "config", folder / "config")
    (folder / "config/mine.yaml").write_text(yaml.safe_dump(own_config("config/README.md")), encoding="utf-8")
    for data in DATA:
        (folder / data).mkdir(parents=True)
    (folder / "data/mine.csv").touch()  # the table of the README's section on own labels
    (folder / "data/us_bills.parquet").touch()  # the table of the fair trial
    return folder


def write_tuning(folder: Path, config: str, name: str) -> None:
    """What `tune_<name>` writes, by the library's own writer: docs print commands that read its chosen.yaml."""
    settings = load(yaml.safe_load((folder / config).read_text(encoding="utf-8")))
    tuning, place = settings.tunings[name], folder / "results/tuning" / name
    grid = pl.DataFrame(
        {"arm": arm, **{rate: getattr(point, rate) for rate in RATES}, "seed": seed, "epoch": 1, "macro_f1": 0.5,
         "kept": True, "patience_ended": False, "seconds": 1.0}
        for arm, points in tuning_points(settings, name).items() for point in points.values() for seed in tuning.seeds
    )  # fmt: skip
    write_choice(
        grid, tuning, runs=runs_of_arms(settings, name), also=further_runs(settings, name),
        table=place / "grid.csv", config=place / "chosen.yaml",
    )  # fmt: skip


def typed(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Snakemake with these words, as typed in a folder."""
    env = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    return subprocess.run(["snakemake", *words], cwd=folder, env=env, capture_output=True, text=True)


def runnable() -> list[str]:
    """Those that name real targets: no place for a name, and no other errand."""
    return [command for command in printed() if not re.search(r"<|--unlock|--lint|--sdm", command)]


@pytest.mark.slow
@pytest.mark.parametrize("command", runnable())
def test_every_printed_command_plans_its_jobs(checkout, command):
    shutil.rmtree(checkout / "results", ignore_errors=True)
    for config, name in re.findall(r"(\S+) results/tuning/(\w+)/chosen\.yaml", command):
        write_tuning(checkout, config, name)
    words = [*shlex.split(command), "--dry-run"] if "--dry-run" not in command else shlex.split(command)
    run = typed(words, checkout)
    assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
    assert re.search(r"^total +\d+$", run.stdout + run.stderr, re.MULTILINE), run.stderr[-3000:]
