"""From a user's own table to a config, and from a config to a model: `plant init` and `plant train`."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

import plant
from plant.corpus.documents import SPLITS
from plant.ground.errors import InputError
from plant.ground.files import require_file, write_text
from plant.ground.settings import OwnTable, Settings, load
from plant.serving.look import Look, look

SIGNS = {";": "semicolons", ",": "commas", "|": "vertical bars", "\t": "tabs", " ": "spaces"}
NAME, MOST = 40, 5
"""Letters of a column that is named, and how many of the columns that are not read are."""
TEMPLATE, SNAKEFILE = "config/own.yaml", "Snakefile"


def checkout() -> Path:
    """The checkout of the repository, with the rules that train: around the working directory, or this package."""
    for folder in (Path.cwd(), Path(plant.__file__).parents[2]):
        if (folder / SNAKEFILE).is_file() and (folder / TEMPLATE).is_file():
            return folder
    raise InputError(
        "plant train", expected="a checkout of the repository", got="the library alone",
        fix="Clone the repository, run `make setup` there, and start this command in it.",
    )  # fmt: skip


def config_for(seen: Look, name: str = "mine") -> str:
    """A commented config for a table: config/own.yaml with the user's columns, and Stage 3 beside the network.

    The name is that of the dataset and of the experiment, and so of the folders of results.
    """
    text = (checkout() / TEMPLATE).read_text(encoding="utf-8")
    body = text[text.index("\ndatasets:") :]
    for old, new in _changes(seen, name):
        if body.count(old) != 1:
            raise InputError(TEMPLATE, expected=f"the line {old.strip()!r} once", got="another file", fix="Restore it.")
        body = body.replace(old, new)
    head = "\n".join(f"# {' '.join(line.split())}" for line in described(seen))  # a name may hold a line end
    load(yaml.safe_load(body))
    return f"{head}\n# docs/reference/config.md explains every key; one that is not here has its default.\n{body}"


def _changes(seen: Look, name: str) -> Iterator[tuple[str, str]]:
    yield "  mine: # the name is yours", f"  {name}: # the name is yours"
    yield "  mine: # what is run", f"  {name}: # what is run"
    yield "results/paper/mine/report.html", f"results/paper/{name}/report.html"
    yield "dataset: mine", f"dataset: {name}"
    quoted = {role: json.dumps(column, ensure_ascii=False) for role, column in seen.columns.items()}
    yield "path: data/mine.csv", f"path: {json.dumps(str(seen.path), ensure_ascii=False)}"
    yield "id_column: id ", f"id_column: {quoted.get('id', 'null')} "
    yield "text_column: text ", f"text_column: {quoted['text']} "
    yield "labels_column: labels ", f"labels_column: {quoted['labels']} "
    if seen.separator is not None:
        yield 'label_separator: ";"', f"label_separator: {json.dumps(seen.separator)}"
    if "split" in quoted:
        yield "# split_column: split #", f"split_column: {quoted['split']} #"
    if "group" in quoted:
        yield "# group_column: patient #", f"group_column: {quoted['group']} #"
    evidence = "evidences: # Stage 3: what the network and the words say, weighed on validation\n  words: {}\n\n"
    yield "variants: # the systems", f"{evidence}variants: # the systems"
    line = "  static: {finetuning: focal_static, title: static planting}\n"
    more = "  static_evidence: {finetuning: focal_static, evidence: words, title: static planting + evidence}\n"
    yield line, line + more
    yield "variants: [static, plant, random_init]", "variants: [static, static_evidence, plant, random_init]"


def described(seen: Look) -> Iterator[str]:
    """What was seen, as lines of a comment. No text and no label is quoted."""
    sizes = f"{seen.documents:,} documents of {seen.words:,.0f} words, {seen.labels:,} labels"
    each = f"{seen.labels_of_document:.1f} for each document"
    yield f"Written by `plant init` from {seen.path.name}: {sizes}, {each}."
    yield f"The texts {f'look like {seen.language}' if seen.language else 'are in a language that was not recognised'}."
    yield f"Columns: {', '.join(f'{column} ({role})' for role, column in seen.columns.items())}."
    yield from _unread(seen)
    if "id" not in seen.columns:
        yield "Documents are numbered from 1, because no column has a different name for each of them."
    yield _separation(seen)
    for name in SPLITS:
        if seen.splits and name not in seen.splits:
            yield (
                f"The column of splits names no {name} documents: a part of its {seen.splits['train']:,} train "
                f"documents, drawn by the shares of `split`, becomes the {name} split. Write {name} in the column to "
                "choose them."
            )
    yield from (f"Warning: {text}" for text in seen.warnings)
    if seen.unlabelled:
        yield f"{seen.unlabelled:,} documents have no label and are left out."
    if seen.documents < 200:
        yield "A few hundred documents are needed before results mean something."
    if seen.labels > 50_000:
        yield "With so many labels, set `shortlist` in the recipe of Stage 2."
    backbone = "a pretrained backbone" if seen.language == "English" else "a pretrained multilingual backbone"
    yield f"The small backbone learns from these documents alone; for results, name {backbone}."


def _unread(seen: Look) -> Iterator[str]:
    """The other columns: one of them may name splits or patients in words that `look` does not know."""
    short = [name for name in seen.unread if len(name) <= NAME]  # without a header, a long one is a text
    if short:
        more = "" if len(short) <= MOST else f" and {len(short) - MOST} more"
        yield (
            f"Not read: {', '.join(short[:MOST])}{more}. If one has the texts, the labels, the splits or groups (such "
            "as patients), write it as `text_column`, `labels_column`, `split_column` or `group_column`."
        )


def _separation(seen: Look) -> str:
    """How labels are separated, and what to do if that is wrong."""
    counts = f"{seen.several:,} documents have more than one label"
    if seen.separator is None:
        return f"Labels are lists; {counts}."
    if seen.separator == " ":
        return (
            f"Labels are cut at spaces; {counts}. They look like tags: words stand alone or change places. "
            'If a label is a phrase of several words, write `label_separator: ";"` in the config.'
        )
    if not seen.several:
        return "No document has several labels. If some have, write what is between them as `label_separator`."
    return f"Labels are cut at {SIGNS[seen.separator]} (`label_separator`); {counts}."


def write_config(
    path: Path, out: Path, *, overwrite: bool, text_column: str | None = None, labels_column: str | None = None
) -> list[str]:
    """Write the config of a table; what to say about it. Errors are those of `look`, and a config that is there."""
    if out.exists() and not overwrite:
        raise InputError(str(out), expected="no file there yet", got="one", fix="Name another with --out, or --force.")
    seen = look(path, text_column=text_column, labels_column=labels_column)
    write_text(out, config_for(seen, _entry_name(out)))
    return [*described(seen), f"Config: {out}", f"Next: plant train {shlex.quote(str(out))}"]


def _entry_name(out: Path) -> str:
    """The name of a config as that of its entries; `mine` for one that YAML reads as a number or a truth value.

    >>> _entry_name(Path("config/my table (2).yaml")), _entry_name(Path("2024.yaml"))
    ('my_table_2', 'mine')
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", out.stem).strip("_")
    return name if name and yaml.safe_load(name) == name else "mine"


def train(config: Path, *, cores: int, report: bool, dry_run: bool) -> list[str]:
    """Run the workflow of a config up to the model folders of its experiments; where everything is.

    With `dry_run` the jobs are only counted. An InputError says that the config is wrong or that a job failed.
    """
    settings = _settings(config)
    names = [name for name, experiment in settings.experiments.items() if not experiment.on_request]
    if not names:
        raise InputError(
            str(config), expected="an experiment that runs by itself", got="on_request: true for each",
            fix="Set it to false for one, or name a target: snakemake --cores 2 model_<experiment>.",
        )  # fmt: skip
    targets = [f"model_{name}" for name in names] + [f"experiment_{name}" for name in names if report]
    root = checkout()
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / SNAKEFILE), "--cores", str(cores)]
    command += [*targets, *(["--dry-run", "--quiet", "rules"] if dry_run else []), "--configfile", str(config)]
    if subprocess.run(command, check=False).returncode:
        raise InputError(
            "plant train", expected="a finished run", got="a job that failed, see above",
            fix="Correct what its log names; the same command goes on from there.",
        )  # fmt: skip
    if dry_run:
        return [f"Next: plant train {shlex.quote(str(config))}"]
    lines = [f"Model:   {settings.results}/serving/{name}/best" for name in names]
    lines += [f"Report:  {settings.results}/paper/{name}/report.html" for name in names if report]
    return [
        *lines,
        f"Next:    plant predict {settings.results}/serving/{names[0]}/best FILE{_columns(settings, names[0])}",
    ]


def _columns(settings: Settings, experiment: str) -> str:
    """The options of `plant predict` for files with the columns of the table that an experiment trains on."""
    dataset = settings.datasets[settings.whole(settings.experiments[experiment].dataset)]
    if not isinstance(dataset, OwnTable):
        return ""
    named = {"text": dataset.text_column, "id": dataset.id_column}
    return "".join(f" --{role}-column {shlex.quote(name)}" for role, name in named.items() if name not in (role, None))


def _settings(config: Path) -> Settings:
    try:
        found = yaml.safe_load(require_file(config).read_text(encoding="utf-8"))
        got = type(found).__name__
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        found, got = None, re.sub(r"\s+", " ", str(getattr(error, "problem", type(error).__name__)))
    if not isinstance(found, dict):
        raise InputError(str(config), expected="a config in YAML", got=got, fix="Correct it: see config/own.yaml.")
    return load(found, where=str(config))
