"""From a user's own table to a config, and from a config to a model: `plant init` and `plant train`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import yaml

import plant
from plant.baselines.words import split_words
from plant.corpus.sources.table import SEPARATORS, separates
from plant.corpus.sources.table import read as read_table
from plant.corpus.splits import canonical_name
from plant.corpus.tables import load_table
from plant.ground.errors import InputError
from plant.ground.files import write_text
from plant.ground.settings import Settings, Table, load

NAMES = {
    "text": ("text", "note", "document", "body", "abstract", "content", "description"),
    "labels": ("labels", "label", "codes", "tags", "categories", "topics", "classes"),
    "id": ("id", "document_id", "doc_id", "name", "key", "uid"),
    "split": ("split", "partition", "fold"),
    "group": ("group", "patient", "patient_id", "subject_id", "author"),
}
"""What people call the columns; the first name that fits is taken."""
FUNCTION_WORDS = {
    "English": "the and of with was for that is", "Spanish": "el los las una con por que del",
    "French": "le les des une dans pour est avec", "German": "der die und das mit ein nicht ist",
    "Italian": "il gli della che con una per sono", "Portuguese": "os uma com para não em dos mais",
    "Dutch": "het een van en met dat niet zijn",
}  # fmt: skip
"""Frequent words of a language: the language of a sample is the one that has the most of them."""
SAMPLE = 500
"""Documents that are looked at for the language."""
TEMPLATE, SNAKEFILE = "config/own.yaml", "Snakefile"


@dataclass(frozen=True)
class Look:
    """What a table holds.

    Attributes:
        path: the file.
        columns: role (`id`, `text`, `labels`, and `split`, `group` where there is one) -> column.
        separator: between labels; None where the column holds lists.
        documents, labels: how many.
        words, labels_of_document: means over the documents.
        language: of most texts, or None where it cannot be told.
    """

    path: Path
    columns: Mapping[str, str]
    separator: str | None
    documents: int
    labels: int
    words: float
    labels_of_document: float
    language: str | None


def checkout() -> Path:
    """The checkout of the repository, with the rules that train: around the working directory, or this package.

    Raises:
        InputError: there is none.
    """
    for folder in (Path.cwd(), Path(plant.__file__).parents[2]):
        if (folder / SNAKEFILE).is_file() and (folder / TEMPLATE).is_file():
            return folder
    raise InputError(
        "plant train", expected="a checkout of the repository", got="the library alone",
        fix="Clone the repository, run `make setup` there, and start this command in it.",
    )  # fmt: skip


def look(path: Path) -> Look:
    """Look at a table: which column is what, how labels are separated, how large it is, which language it is in.

    Raises:
        InputError: it is empty, has no column of texts, labels or ids that could be found, or training would refuse it.
    """
    table = load_table(path)
    if not len(table):
        raise InputError(str(path), expected="documents", got="an empty table", fix="Check the file.")
    strings = [name for name in table.columns if table[name].dtype == pl.String]
    lengths = {name: float(table[name].str.len_chars().mean() or 0) for name in strings}  # type: ignore[arg-type]
    text = _named("text", strings) or max(lengths, key=lambda name: lengths[name], default=None)
    lists = [name for name in table.columns if table[name].dtype in (pl.List, pl.Array)]
    labels = _named("labels", table.columns) or next(iter(lists), None)
    others = [name for name in table.columns if name not in (text, labels)]
    id_column = _named("id", others) or next((name for name in others if table[name].is_unique().all()), None)
    columns = {"text": text, "labels": labels, "id": id_column}
    for role, column in columns.items():
        if column is None:
            raise InputError(
                str(path), expected=f"a column of {role}{'' if role == 'labels' else 's'}",
                got=f"{len(table.columns)} columns, none of which looks like it"
                + (" (each name once)" if role == "id" else ""),
                fix=f"Rename one to {NAMES[role][0]!r}, or name it in a copy of {TEMPLATE}.",
            )  # fmt: skip
    more = {role: name for role in ("split", "group") if (name := _named(role, others)) and name != id_column}
    if "split" in more and not _is_split(table[more["split"]]):
        del more["split"]
    found = {role: str(name) for role, name in (columns | more).items()}
    cells = table[found["labels"]]
    separator = best_separator(cells.fill_null("")) if cells.dtype == pl.String else None
    given = {f"{role}_column": name for role, name in found.items()}
    if separator is not None:
        given["label_separator"] = separator
    frame = read_table(Table(source="table", path=str(path), **given)).frame  # its errors and warnings come now
    names = frame["labels"].explode().str.strip_chars()
    names = names.filter(names.fill_null("") != "")
    texts = frame["text"]
    return Look(
        path, found, separator, len(table), names.n_unique(),
        float(texts.str.count_matches(r"\w+").mean() or 0), len(names) / len(table), language(texts.head(SAMPLE)),  # type: ignore[arg-type]
    )  # fmt: skip


def _named(role: str, columns: Sequence[str]) -> str | None:
    by_name = {name.strip().lower(): name for name in reversed(columns)}
    return next((by_name[name] for name in NAMES[role] if name in by_name), None)


def _is_split(values: pl.Series) -> bool:
    try:
        return {"train"} < {canonical_name(str(value), where="") for value in values.unique()}
    except InputError:
        return False


def best_separator(cells: pl.Series) -> str:
    """What stands between labels: of the signs that may, the one that gives labels the most documents; else `;`.

    White space counts between codes alone (each has a digit): names of labels hold spaces.

    >>> best_separator(pl.Series(["a|b", "b", "a|c"])), best_separator(pl.Series(["heart failure", "heart attack"] * 2))
    ('|', ';')
    """
    cells = cells.str.strip_chars()
    cells = cells.filter(cells != "")
    documents = {}
    for sign in (";", *SEPARATORS):
        parts = cells.str.split(sign).explode().str.strip_chars()
        if not sign.isspace() or parts.str.contains(r"\d").all():
            documents[sign] = separates(cells, sign)
    return max(documents, key=lambda sign: documents[sign])


def language(texts: Sequence[str] | pl.Series) -> str | None:
    """The language with the most function words; None where there are none.

    >>> language(["el paciente con fiebre", "las causas del dolor"])
    'Spanish'
    """
    words = [word for text in texts for word in split_words(text)]
    found = {name: sum(map(set(known.split()).__contains__, words)) for name, known in FUNCTION_WORDS.items()}
    best = max(found, key=lambda name: found[name])
    return best if found[best] else None


def config_for(seen: Look, name: str = "mine") -> str:
    """A commented config for a table: config/own.yaml with the user's columns, and Stage 3 beside the network.

    Args:
        seen: the table.
        name: of the dataset and of the experiment, and so of the folders of results.
    """
    text = (checkout() / TEMPLATE).read_text(encoding="utf-8")
    body = text[text.index("\ndatasets:") :]
    for old, new in _changes(seen, name):
        if body.count(old) != 1:
            raise InputError(TEMPLATE, expected=f"the line {old.strip()!r} once", got="another file", fix="Restore it.")
        body = body.replace(old, new)
    head = "\n".join(f"# {line}" for line in described(seen))
    load(yaml.safe_load(body))
    return f"{head}\n# docs/reference/config.md explains every key; one that is not here has its default.\n{body}"


def _changes(seen: Look, name: str) -> Iterator[tuple[str, str]]:
    yield "  mine: # the name is yours", f"  {name}: # the name is yours"
    yield "  mine: # what is run", f"  {name}: # what is run"
    yield "results/paper/mine/report.html", f"results/paper/{name}/report.html"
    yield "dataset: mine", f"dataset: {name}"
    quoted = {role: json.dumps(column, ensure_ascii=False) for role, column in seen.columns.items()}
    yield "path: data/mine.csv", f"path: {json.dumps(str(seen.path), ensure_ascii=False)}"
    yield "id_column: id ", f"id_column: {quoted['id']} "
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
    line = "  plant: {pretraining: plant, finetuning: focal, title: PLANT}\n"
    more = "  plant_evidence: {pretraining: plant, finetuning: focal, evidence: words, title: PLANT + evidence}\n"
    yield line, line + more
    yield "variants: [plant, random_init]", "variants: [plant, plant_evidence, random_init]"


def described(seen: Look) -> list[str]:
    """What was seen, as lines of a comment. No text and no label is quoted."""
    sizes = f"{seen.documents:,} documents of {seen.words:,.0f} words, {seen.labels:,} labels"
    spoken = f"look like {seen.language}" if seen.language else "are in a language that was not recognised"
    each = f"{seen.labels_of_document:.1f} for each document"
    lines = [f"Written by `plant init` from {seen.path.name}: {sizes}, {each}.", f"The texts {spoken}."]
    if seen.documents < 200:
        lines.append("A few hundred documents are needed before results mean something.")
    if seen.labels > 50_000:
        lines.append("With so many labels, set `shortlist` in the recipe of Stage 2.")
    backbone = "a pretrained backbone" if seen.language == "English" else "a pretrained multilingual backbone"
    lines.append(f"The small backbone learns from these documents alone; for results, name {backbone}.")
    return lines


def write_config(path: Path, out: Path, *, overwrite: bool) -> list[str]:
    """Write the config of a table; what to say about it.

    Raises:
        InputError: as `look`, or `out` is there already.
    """
    if out.exists() and not overwrite:
        raise InputError(str(out), expected="no file there yet", got="one", fix="Name another with --out, or --force.")
    seen = look(path)
    write_text(out, config_for(seen, _entry_name(out)))
    return [*described(seen), f"Config: {out}", f"Next: plant train {out}"]


def _entry_name(out: Path) -> str:
    """The name of a config as that of its entries; `mine` for one that YAML reads as a number or a truth value.

    >>> _entry_name(Path("config/my table (2).yaml")), _entry_name(Path("2024.yaml"))
    ('my_table_2', 'mine')
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", out.stem).strip("_")
    return name if name and yaml.safe_load(name) == name else "mine"


def train(config: Path, *, cores: int, report: bool, dry_run: bool) -> list[str]:
    """Run the workflow of a config up to the model folders of its experiments; where everything is.

    With `dry_run` the jobs are only counted.

    Raises:
        InputError: the config cannot be read, or the workflow ended with an error.
    """
    settings = _settings(config)
    names = [name for name, experiment in settings.experiments.items() if not experiment.on_request]
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
        return [f"Next: plant train {config}"]
    lines = [f"Model:   {settings.results}/serving/{name}/best" for name in names]
    lines += [f"Report:  {settings.results}/paper/{name}/report.html" for name in names if report]
    return [*lines, f"Next:    plant predict {settings.results}/serving/{names[0]}/best FILE"]


def _settings(config: Path) -> Settings:
    if not config.is_file():
        raise InputError(str(config), expected="a table or a config", got="nothing there", fix="Check the path.")
    try:
        found = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = re.sub(r"\s+", " ", str(getattr(error, "problem", type(error).__name__)))
        raise InputError(str(config), expected="YAML", got=problem, fix="Correct the file.") from None
    if not isinstance(found, dict):
        raise InputError(str(config), expected="a config", got=type(found).__name__, fix="See config/own.yaml.")
    return load(found, where=str(config))
