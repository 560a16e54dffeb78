"""The sidecar says where a result comes from, and nothing about the person who made it."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from plant.ground import provenance
from plant.ground.errors import InputError
from plant.ground.provenance import check_unchanged, code_of, digest, sha256, write_provenance
from plant.ground.resources import Meter

SCRIPTS = sorted((Path(__file__).parents[2] / "workflow" / "scripts").glob("*.py"))
FINETUNE, BASELINE = (SCRIPTS[0].with_name(f"{name}.py") for name in ("finetune", "baseline"))
SILENT = provenance.NO_PART_OF_A_RESULT


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a run, below the home directory of its user."""
    folder = tmp_path / "someone" / "project"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "someone"))
    monkeypatch.chdir(folder)
    return folder


def written(target: Path, **changes: object) -> dict:
    meter = Meter()
    arguments = {
        "settings": {}, "inputs": [], "seed": None, "started": meter.started, "resources": meter.read("cpu"), **changes
    }  # fmt: skip
    write_provenance(target, **arguments)  # type: ignore[arg-type]
    return json.loads(target.read_text(encoding="utf-8"))


def test_the_sidecar_holds_what_a_rerun_needs(here: Path) -> None:
    (here / "raw.csv").write_text("id\n1\n")
    facts = written(
        here / "provenance.json",
        settings={"k": 5},
        inputs=[Path("raw.csv")],
        seed=3,
        started=0.0,
        resources={"wall_seconds": 2.0},
        extra={"documents": 1, "seed": 4},  # the seed cannot be replaced
    )
    assert facts["settings"] == {"k": 5}
    assert facts["seed"] == 3
    assert facts["documents"] == 1
    assert facts["inputs"] == {"raw.csv": hashlib.sha256(b"id\n1\n").hexdigest()}
    assert facts["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["versions"]["numpy"]
    assert set(facts["versions"]) == {"python", *provenance.VERSIONS_OF}
    assert facts["device"]["kind"] == "cpu"
    assert facts["device"]["name"]
    assert facts["resources"] == {"wall_seconds": 2.0}
    assert facts["started"] == "1970-01-01T00:00:00+00:00"


def test_no_home_directory_is_written(here: Path) -> None:
    (here.parent / "notes").mkdir()
    (here.parent / "notes" / "a.csv").write_text("x")
    (here / "b.csv").write_text("y")
    facts = written(
        here / "provenance.json",
        settings={"dataset": {"path": str(here.parent / "notes"), "files": [str(here / "b.csv"), "relative.csv"]}},
        inputs=[here.parent / "notes", here / "b.csv"],
        extra={"more": here / "b.csv"},
    )
    assert str(here.parent) not in json.dumps(facts)
    assert list(facts["inputs"]) == ["b.csv", "~/notes"]
    assert facts["settings"]["dataset"] == {"path": "~/notes", "files": ["b.csv", "relative.csv"]}
    assert facts["more"] == "b.csv"


def test_a_missing_input_is_an_error_and_leaves_no_sidecar(here: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.csv: expected a file or a folder"):
        written(here / "provenance.json", inputs=[Path("gone.csv")])
    assert list(here.iterdir()) == []


def test_the_commit_and_its_changes_are_those_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    try:
        git("init")
    except FileNotFoundError:
        pytest.skip("no git on this machine")
    source = tmp_path / "code.py"
    source.write_text("a = 1\n")
    git("add", "code.py")
    git("commit", "-m", "first")
    target = tmp_path / "provenance.json"
    assert written(target)["code"] == {"commit": git("rev-parse", "HEAD"), "modified": False}
    source.write_text("a = 2\n")
    assert written(target)["code"] == {"commit": git("rev-parse", "HEAD"), "modified": True}


def test_without_git_or_outside_a_checkout_the_commit_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "provenance.json"
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert written(target)["code"] == {"commit": None, "modified": None}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert written(target)["code"] == {"commit": None, "modified": None}


def test_the_digest_of_a_folder_sees_names_and_contents_and_no_sidecar(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "x.csv").write_text("1")
    (second / "provenance.json").write_text("{}")
    (second / ".hidden").write_text("")
    assert sha256(first) == sha256(second)
    (second / "inner" / "x.csv").rename(second / "inner" / "y.csv")
    assert sha256(first) != sha256(second)
    (first / "inner" / "x.csv").write_text("2")
    (second / "inner" / "y.csv").rename(second / "inner" / "x.csv")
    assert sha256(first) != sha256(second)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package that may be changed."""
    shutil.copytree(provenance.PACKAGE, tmp_path / "plant", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "plant")
    return tmp_path / "plant"


def upstream(script: Path, graph: grimp.ImportGraph) -> set[str]:
    """Modules that a script imports, by other means: modulefinder's view of the script, grimp's of the package."""
    direct = {
        name
        for line in re.findall(r"^\s*from (plant[\w.]*) import (.+)$", script.read_text("utf-8"), re.MULTILINE)
        for name in (line[0], *(f"{line[0]}.{word.strip()}" for word in line[1].split(",")))
        if name in graph.modules and not any(f"{name}.".startswith(f"{silent}.") for silent in SILENT)
    }
    found: set[str] = set()
    while direct - found:  # a module, its packages, which run before it, and what these import
        found |= direct
        packages = {name.rpartition(".")[0] for name in direct} - {""}
        direct = set().union(packages, *(graph.find_modules_directly_imported_by(name) for name in direct))
        direct = {name for name in direct if not any(f"{name}.".startswith(f"{silent}.") for silent in SILENT)}
    return found


def test_a_changed_line_moves_the_digests_of_the_scripts_that_import_its_module_and_no_other(package: Path) -> None:
    graph = grimp.build_graph("plant", cache_dir=None)
    expected = {script: upstream(script, graph) for script in SCRIPTS}
    assert "plant.metrics.f1" in expected[FINETUNE]
    assert "plant.evidence.stage3" not in expected[BASELINE]
    for script in SCRIPTS:
        modules = [file.relative_to(package.parent) for file in code_of(script) if file.suffix == ".py"]
        assert {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in modules} == expected[script]
    before = {script: digest(script) for script in (FINETUNE, BASELINE)}
    for name in sorted(graph.modules - {"plant"}):
        place = package.joinpath(*name.split(".")[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        text = file.read_text("utf-8")
        file.write_text(f"{text}\nCHANGED = 1\n", encoding="utf-8")
        moved = {script for script in before if digest(script) != before[script]}
        file.write_text(text, encoding="utf-8")
        assert moved == {script for script in before if name in expected[script]}, name


def test_a_digest_ignores_comments_docstrings_and_layout_and_sees_data(package: Path) -> None:
    script, module = SCRIPTS[0].with_name("audit.py"), package / "paper/audit/findings.py"
    before, text = digest(script), module.read_text("utf-8")
    module.write_text(f'"""Other words."""\n# why\n{text[text.index("from __future__") :]}', "utf-8")
    assert digest(script) == before
    module.write_text(text, "utf-8")
    (package / "paper/audit/audit.yaml").write_text("{}", "utf-8")
    assert digest(script) != before


def test_a_module_that_no_import_names_is_part_of_a_digest_where_it_is_named(package: Path) -> None:
    script = SCRIPTS[0].with_name("baseline.py")
    names = ("plant.baselines.linear", "plant.baselines.mentions")
    before = {name: digest(script, name) for name in names}
    with (package / "baselines/linear.py").open("a", encoding="utf-8") as module:
        module.write("CHANGED = 1\n")
    assert [digest(script, name) == before[name] for name in names] == [False, True]


# --- inputs that are not what their job wrote -----------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"who", b"whole contenu", b"whole content and more"])
@pytest.mark.parametrize("named", ["weights", "folder"])
def test_a_changed_file_or_folder_is_refused_with_the_command_that_makes_it_anew(here: Path, named: str, damage: bytes):
    for file in (Path("weights"), Path("folder/config.json")):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"whole content")
    inputs = [Path("weights"), Path("folder"), Path("raw.csv")]
    written(here / "made.provenance.json", outputs=inputs[:2])
    Path("raw.csv").touch()  # no job made it
    check_unchanged(inputs)
    (Path("weights") if named == "weights" else Path("folder/config.json")).write_bytes(damage)
    with pytest.raises(InputError, match=f"^{named}: expected the bytes that its job .* --cores 1 --force {named} "):
        check_unchanged(inputs)
    check_unchanged(inputs, largest=-1)


def test_of_several_sidecars_that_name_a_file_the_newest_counts(here: Path) -> None:
    """A rule that has a new name leaves the sidecar of its old one behind."""
    for name, content, year in (("z", "old", 2025), ("a", "new", 2026)):
        Path("weights").write_text(content)
        facts = {"written": f"{year}-01-01", "outputs": {"weights": sha256(Path("weights"))}}
        Path(f"{name}.provenance.json").write_text(json.dumps(facts))
    check_unchanged([Path("weights")])
