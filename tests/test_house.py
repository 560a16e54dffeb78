"""The house's own rules, held by looking at its files."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("corpus", "relevance", "model", "pretraining", "finetuning", "evaluation", "statistics", "paper", "serving")
LINES_OF_A_FILE, LINES_OF_A_FUNCTION = 400, 80
CODE = (".py", ".smk")


def tracked() -> list[Path]:
    """Files that git tracks or would track; without git, all but what .gitignore keeps out."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    except (FileNotFoundError, subprocess.CalledProcessError):
        kept = ("src", "tests", "workflow", "config", "envs", "docs", "slurm", ".ci")
        found = [path for folder in kept for path in (ROOT / folder).rglob("*")] + list(ROOT.iterdir())
        names = [str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts]
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


def texts(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Name and content of the tracked text files, by suffix or all."""
    for path in tracked():
        if suffixes and path.suffix not in suffixes and path.name != "Snakefile":
            continue
        try:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            assert path.suffix in {".png", ".pdf", ".gz", ".zip", ".parquet", ".feather", ".safetensors"}, path


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for name, text in texts(".py"):
        if name.endswith(".py") and name.startswith(folders):
            yield name, ast.parse(text)


def hits(pattern: str, *suffixes: str, but: tuple[str, ...] = ("tests/test_house.py",)) -> list[str]:
    """`name:line text` of every line that a pattern matches."""
    return [
        f"{name}:{number} {line.strip()[:100]}"
        for name, text in texts(*suffixes)
        if name not in but
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_files_and_functions_are_short_enough_to_read() -> None:
    long = [name for name, text in texts(*CODE) if text.count("\n") > LINES_OF_A_FILE]
    for name, tree in trees("src", "tests", "workflow", "envs"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= LINES_OF_A_FUNCTION:
                long.append(f"{name}:{node.lineno} {node.name}")
    assert long == []


def test_no_path_of_one_machine_is_written_down() -> None:
    assert hits(r"(?<![\w.:/~}\])-])/(work|farm|opt|home|root|mnt|Users|tmp)/[\w.]") == []


def test_nothing_is_left_undone() -> None:
    assert hits(r"\b(TODO|FIXME|XXX)\b") == []


def test_nothing_is_read_by_pickle() -> None:
    assert hits(r"pickle\.loads?\(|joblib\.load\(|torch\.(load|save)\(|allow_pickle=True", *CODE) == []


def test_no_random_state_is_global() -> None:
    numpy_state = r"np\.random\.(?!default_rng|Generator|SeedSequence|PCG64|BitGenerator)\w+"
    assert hits(numpy_state, *CODE) == []
    assert hits(r"^\s*(import random$|from random import)|\brandom\.seed\(", *CODE) == []


def test_no_error_is_swallowed() -> None:
    assert hits(r"except:|except (Base)?Exception: *(pass)?$|\|\| true\b") == []


def is_claim(node: ast.AST) -> bool:
    """Whether a piece of a test can fail: an assert, `pytest.raises`, or a call named assert... or check..."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in {"raises", "warns"} or name.lstrip("_").startswith(("assert", "check"))


def test_every_test_asserts_something() -> None:
    empty = [
        f"{name}:{function.lineno} {function.name}"
        for name, tree in trees("tests")
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test")
        if not any(is_claim(node) for node in ast.walk(function))
    ]
    assert empty == []


def test_choices_and_their_citations_match_both_ways() -> None:
    pages = {re.match(r"C\d\d", path.name)[0] for path in (ROOT / "docs" / "explanation" / "choices").glob("C*.md")}  # type: ignore[index]
    files = [(name, text) for name, text in texts() if not name.startswith("docs/explanation/choices/")]
    code = "\n".join(text for name, text in files if name.startswith(("src/", "config/", "workflow/", "Snakefile")))
    lists = [found for _, text in files for found in re.findall(r"[Cc]hoices? ((?:C\d\d(?:, | and )?)+)", text)]
    cited = {number for some in lists for number in re.findall(r"C\d\d", some)}
    assert cited - pages == set(), "cited, but without a page in docs/explanation/choices"
    assert {page for page in pages if not re.search(rf"\b{page}\b", code)} == set(), "pages that no code cites"


def test_every_make_command_in_the_documents_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = {
        (name, command)
        for name, text in texts(".md")
        for command in re.findall(r"(?:^ {4,}|^\$ |`)make ([a-z][a-z-]*)", text, re.MULTILINE)
    }
    assert {(name, command) for name, command in commands if command not in targets} == set()
    assert {"demo", "test"} <= {command for name, command in commands if name == "README.md"}


def test_no_link_and_no_citation_of_a_page_leads_nowhere() -> None:
    dead = [
        f"{name}: {link}"
        for name, text in texts(".md")
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
        if not (ROOT / name).parent.joinpath(link).exists()
    ]
    dead += [
        f"{name}: {page}"
        for name, text in texts()
        for page in re.findall(r"\b(?:docs|config|slurm)/[\w./-]+\.(?:md|png|yaml)\b", text)
        if not (ROOT / page).exists() and "mine.yaml" not in page
    ]
    assert dead == []


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text(encoding="utf-8").splitlines()[-1].endswith("make test")
