"""docs/reference/config.md: every key of the config, written from the settings (`make reference`)."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from plant.ground.settings import Frozen, Settings

Keys = Mapping[str, FieldInfo]
HEAD = """\
# The config, key by key

Written by `make reference` from the docstrings in `src/plant/ground/settings/`; do not edit it by hand. To start, read
[config/README.md](../../config/README.md). A key that is not listed here is an error, and so is a value out of range.

`<name>` stands for a name that you choose. `none` means that a key is not set (`null` in YAML). A place such as
"appendix A" is one of the paper (arXiv 2410.23066); "choice C08" is a page of [choices](../explanation/choices).
"""
TYPES = {"integer": "integer", "number": "number", "string": "text", "boolean": "`true`, `false`", "null": "none"}
SIGNS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}


def describe(model: type[Frozen] = Frozen) -> None:
    """Give each field of a model, and of all models that come from it, the docstring below it in the source.

    Pydantic can do this (`use_attribute_docstrings`), but at each import: it would take every job 0.1 s.
    """
    for part in reversed(model.__mro__[: model.__mro__.index(Frozen)]):
        (source,) = ast.parse(dedent(inspect.getsource(part))).body
        for key, text in pairwise(source.body if isinstance(source, ast.ClassDef) else ()):
            match key, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    model.model_fields[name].description = inspect.cleandoc(words)
    for below in model.__subclasses__():
        describe(below)


def tables(fields: Keys = Settings.model_fields, path: str = "") -> Iterator[tuple[str, str, str, Keys]]:
    """(path, title, text, keys) of each table: of a section, of each source or kind, of a section in a section."""
    for key, field in fields.items():
        models = _models(field.annotation)
        here = path + key + (".<name>" if models and get_origin(field.annotation) is dict else "")
        every = dict(models[0].model_fields) if models else {key: field}
        if len(models) > 1:  # what all sources have in common comes once
            every = {k: f for k, f in every.items() if all(repr(m.model_fields.get(k)) == repr(f) for m in models)}
        if len(models) != 1:
            yield here, f"`{here}`", "Every entry may have these keys." if models else "", every
        nested = dict(every)
        for model in models:
            own = {k: f for k, f in model.model_fields.items() if k not in every} if len(models) > 1 else every
            tags = [(k, *get_args(f.annotation)) for k, f in own.items() if get_origin(f.annotation) is Literal]
            form = next((f" with `{tag[0]}: {tag[1]}`" for tag in tags if len(tag) == 2), "")
            yield here, f"`{here}`{form}", " ".join((model.__doc__ or "").split()), own
            nested |= own
        yield from tables({k: f for k, f in nested.items() if models and _models(f.annotation)}, f"{here}.")


def _models(annotation: Any) -> list[type[Frozen]]:
    """The models in a type: the type itself, the items of a list, the entries of a section, the forms of an entry."""
    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def values(node: Mapping[str, Any]) -> str:
    """Type and range of a value, in words, from its JSON schema."""
    if "anyOf" in node:
        return " or ".join(values(option) for option in node["anyOf"])
    if "enum" in node or "const" in node:
        return ", ".join(f"`{value}`" for value in node.get("enum", [node.get("const")]))
    if node.get("type") == "array":
        return f"list of: {values(node.get('items') or node['prefixItems'][0])}"
    limits = [f"{sign} {node[word]:,}" for word, sign in SIGNS.items() if node.get(word) not in (None, 2**31)]
    return " ".join([TYPES.get(node.get("type", ""), "mapping"), " and ".join(limits)]).strip()


def row(key: str, field: FieldInfo) -> str:
    """A row of a table: key, meaning, values, default."""
    annotated: Any = Annotated[field.annotation, field]
    schema = TypeAdapter(annotated).json_schema()
    allowed = "section below" if _models(field.annotation) else values(schema)
    shown = "**required**" if field.is_required() else f"`{json.dumps(schema.get('default'))}`"
    shown = {"`null`": "none"}.get(shown, "" if allowed == "section below" else shown)
    cells = (f"`{key}`", " ".join((field.description or "").split()), allowed, shown)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def render() -> str:
    """The page."""
    describe()
    parts = [HEAD]
    for path, title, text, keys in tables():
        level = "###" if " with " in title or "." in path.removesuffix(".<name>") else "##"
        rows = [row(key, field) for key, field in keys.items()]
        head = f"{level} {title}\n" + (f"\n{text}\n" if text else "")
        parts.append("\n".join([head, "| Key | Meaning | Values | Default |", "| --- | --- | --- | --- |", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render())
