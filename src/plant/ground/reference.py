"""config/README.md and config/schema.yaml, written from the settings so that they cannot disagree with the code.

Run `python -m plant.ground.reference` in the repository root after a change of `plant.ground.settings`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plant.ground.files import atomic_path
from plant.ground.settings import Settings

Schema = Mapping[str, Any]

UNITS = {
    "accumulation": "batches", "admissions": "admissions", "at": "labels", "attention_documents": "documents",
    "attention_heads": "heads", "backbone_from_epoch": "epoch", "batch_size": "documents",
    "character_ngrams": "characters", "chunk_tokens": "tokens", "clip": "L2 norm", "codes": "codes",
    "codes_per_admission": "codes", "dense_limit": "labels", "epochs": "epochs", "folds": "folds",
    "frequency_groups": "documents", "hard_negatives": "labels", "head_learning_rate": "per update",
    "heads": "heads", "hidden_size": "dimensions", "k": "tokens", "layers": "layers", "learning_rate": "per update",
    "log_odds_k": "words", "max_features": "features", "max_negatives": "documents", "max_tokens": "tokens",
    "max_words": "words", "memory_gb": "GB", "min_count": "documents", "min_documents": "documents",
    "ndcg_k": "tokens", "negatives": "labels", "ngrams": "words", "patience": "epochs", "pool_size": "dimensions",
    "rank": "dimensions", "rare_below": "documents", "reasons": "words", "resamples": "resamples",
    "residual": "tokens", "residual_folds": "folds", "rows_in_memory": "rows", "smoothing": "documents",
    "threads": "threads", "top": "labels", "train_size": "documents", "val_size": "documents",
    "vocabulary": "tokens", "words": "words", "words_per_note": "words",
}  # fmt: skip
"""Units of numeric keys. A key that is not here has none (a ratio, a seed, a version)."""

_HEAD = """\
# The config, key by key

Generated from `src/plant/ground/settings/` by `python -m plant.ground.reference`; do not edit by hand. A key that is
not listed here is an error, and so is a value out of range: the message names the key and the nearest known one.

Sections are read in the order of the pipeline. `datasets`, `backbones`, `pretrainings`, `finetunings`, `evidences`,
`variants`, `experiments`, `studies`, `tunings` and `tuned` hold entries under names of your own; the other sections
hold keys. `none` means "not set" (write `null` in YAML). *Source* says where a value comes from: a place in the
paper (arXiv 2410.23066, LLM version), a numbered choice in [docs/choices](../docs/choices), or `ours` where the
paper has no such key.
"""
_PAPER = re.compile(r"appendix [A-G](?:\.\d)?|Eq\. \d|section \d|Table \d+|ablation \d")
_CHOICE = re.compile(r"choice (C\d\d)")


@dataclass(frozen=True)
class Key:
    """One row of the reference: a dotted path below its section, and the schema of its value."""

    path: str
    node: Schema
    required: bool

    @property
    def name(self) -> str:
        return self.path.rsplit(".", 1)[-1]


def render_schema() -> str:
    """The settings as JSON schema (draft 2020-12) in YAML, for `snakemake.utils.validate` and editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}
    head = "# Generated from src/plant/ground/settings/ by `python -m plant.ground.reference`; do not edit by hand.\n"
    return head + yaml.safe_dump(schema, sort_keys=False, allow_unicode=True, width=110)


def render_config_reference() -> str:
    """config/README.md: meaning, values, unit, default and source of every key."""
    schema = Settings.model_json_schema()
    parts = [_HEAD]
    for name, node in schema["properties"].items():
        parts.append(_section(schema, name, node))
    return "\n".join(parts)


def all_keys() -> tuple[tuple[str, Key], ...]:
    """(section, key) of every key, each form of a section's entries with its own."""
    schema = Settings.model_json_schema()
    return tuple(
        (name, key)
        for name, node in schema["properties"].items()
        for _, keys in _forms(schema, name, node)
        for key in keys
    )


def _section(schema: Schema, name: str, node: Schema) -> str:
    forms = _forms(schema, name, node)
    lines = [f"## `{name}`", ""]
    about = _sentence(node) or _sentence(_target(schema, _entry(node)))
    lines += [about, ""] if about else []
    shared = _shared(forms)
    known = {key.path for key in shared}
    meanings = {key.path: text for _, keys in forms for key in keys if (text := _sentence(key.node))}
    if shared:
        lines += ["### in every form", "", *_table(shared, meanings), ""]
    for title, keys in forms:
        own = [key for key in keys if key.path not in known]
        if title:
            lines += [f"### {title}", ""]
            about = _form_description(schema, node, title)
            lines += [about, ""] if about else []
        lines += [*_table(own, meanings), ""] if own else []
    return "\n".join(lines)


def _forms(schema: Schema, name: str, node: Schema) -> list[tuple[str, list[Key]]]:
    """(title, keys) of each form that an entry of this section may have; one without title if there is one form."""
    entry = _entry(node)
    if "oneOf" in entry:
        selector = entry["discriminator"]["propertyName"]
        return [
            (f"`{selector}: {value}`", list(_keys(schema, _target(schema, {"$ref": reference}))))
            for value, reference in entry["discriminator"]["mapping"].items()
        ]
    target = _target(schema, entry)
    if "properties" in target:
        return [("", list(_keys(schema, target)))]
    return [("", [Key(name, node, name in schema.get("required", ()))])]


def _shared(forms: list[tuple[str, list[Key]]]) -> list[Key]:
    """Keys that all forms have with the same schema (none where there is only one form)."""
    if len(forms) < 2:
        return []
    first, *others = ({key.path: key for key in keys} for _, keys in forms)
    return [key for path, key in first.items() if all(path in o and o[path].node == key.node for o in others)]


def _keys(schema: Schema, model: Schema, prefix: str = "") -> Iterator[Key]:
    """Leaf keys of a model; a nested model's keys are written with a dot."""
    for name, node in model["properties"].items():
        nested = _target(schema, _not_null(node))
        if "properties" in nested:
            yield from _keys(schema, nested, f"{prefix}{name}.")
        else:
            yield Key(prefix + name, node, name in model.get("required", ()))


def _table(keys: list[Key], meanings: Mapping[str, str]) -> list[str]:
    """Rows of Markdown.

    Args:
        keys: rows.
        meanings: description by path over all forms of the section: forms that repeat a key may leave it out.
    """
    head = ["| Key | Meaning | Values | Unit | Default | Source |", "| --- | --- | --- | --- | --- | --- |"]
    rows = [_row(key, meanings.get(key.path, "")) for key in keys]
    return head + ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]


def _row(key: Key, meaning: str) -> tuple[str, ...]:
    meaning = _sentence(key.node) or meaning or ("Selects this form." if "const" in key.node else "")
    default = "**required**" if key.required else _value(key.node.get("default"))
    source = _places(meaning) or "ours"
    return f"`{key.path}`", meaning, _values(key.node), unit(key), default, source


def unit(key: Key) -> str:
    """Unit of a numeric key, "fraction" for values between 0 and 1, and a dash for what has none."""
    node = _not_null(key.node)
    if node.get("minimum") == 0 and node.get("maximum") == 1:
        return "fraction"
    return UNITS.get(key.name, "\N{EN DASH}") if is_numeric(key) else "\N{EN DASH}"


def is_numeric(key: Key) -> bool:
    """True for numbers and for lists of numbers."""
    node = _not_null(key.node)
    items = node.get("items") or (node.get("prefixItems") or [{}])[0]
    return (items if node.get("type") == "array" else node).get("type") in ("integer", "number")


def _values(node: Schema) -> str:
    """Type and range in words."""
    inner = _not_null(node)
    none = " or none" if inner is not node else ""
    if "enum" in inner or "const" in inner:
        return ", ".join(f"`{value}`" for value in inner.get("enum", [inner.get("const")])) + none
    if inner.get("type") == "array":
        items = inner.get("items") or (inner.get("prefixItems") or [{}])[0]
        return f"list of {_values(items)}{none}"
    if "propertyNames" in inner or "additionalProperties" in inner:
        names = inner.get("propertyNames", {}).get("enum", ["name"])
        return f"mapping from {', '.join(f'`{name}`' for name in names)}{none}"
    kind = {"integer": "integer", "number": "number", "string": "text", "boolean": "`true`, `false`"}
    return f"{kind.get(inner.get('type', ''), 'mapping')}{_range(inner)}{none}"


def _range(node: Schema) -> str:
    if "minimum" in node and "maximum" in node:
        return f" from {node['minimum']:g} to {node['maximum']:g}"
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    return "".join(f" {sign} {node[word]:g}" for word, sign in signs.items() if word in node)


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool | str):
        return f"`{str(value).lower() if isinstance(value, bool) else value}`"
    return f"`{value}`"


def _places(text: str) -> str:
    """Places in the paper and choices that a description names."""
    paper = [f"paper, {place}" for place in dict.fromkeys(_PAPER.findall(text))]
    choices = [f"[{number}](../docs/choices)" for number in dict.fromkeys(_CHOICE.findall(text))]
    return "; ".join([*paper, *choices])


def _entry(node: Schema) -> Schema:
    """Schema of one entry of a section whose names the user gives; of the section itself otherwise."""
    patterns = node.get("patternProperties")
    return next(iter(patterns.values())) if patterns else node


def _target(schema: Schema, node: Schema) -> Schema:
    reference = node.get("$ref")
    return schema["$defs"][reference.rsplit("/", 1)[-1]] if reference else node


def _not_null(node: Schema) -> Schema:
    """The schema without its `or none`."""
    options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
    return options[0] if options else node


def _form_description(schema: Schema, node: Schema, title: str) -> str:
    mapping = _entry(node)["discriminator"]["mapping"]
    value = title.strip("`").split(": ")[1]
    return _sentence(_target(schema, {"$ref": mapping[value]}))


def _sentence(node: Schema) -> str:
    """The description on one line, empty without one."""
    return " ".join(node.get("description", "").split())


def main(folder: Path) -> None:
    """Write README.md and schema.yaml into `folder`."""
    for name, text in (("README.md", render_config_reference()), ("schema.yaml", render_schema())):
        with atomic_path(folder / name) as partial:
            partial.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "config"))
