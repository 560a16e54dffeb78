"""`plant trace`: from a number back to the raw files, on a small tree of results whose every digest is known."""

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plant.commandline import main
from plant.ground import provenance
from plant.ground import trace as tracing
from plant.ground.errors import InputError
from plant.ground.provenance import write_provenance
from plant.ground.trace import Index, trace

CANARY = "qzvxjwcanary"
RAW, TRAIN, METRICS = "raw/notes.csv", "results/corpus/small/train.parquet", "results/evaluation/{}/metrics.json"
TABLE = "results/paper/small/tables/ablation.csv"
USED = {"wall_seconds": 1234.5, "peak_host_mb": 2048.4, "peak_device_mb": None, "energy_joules": {"device": None}}


def write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def made(sidecar: str, *, inputs: list[str], outputs: list[str], seed: int | None = None, **changes: object) -> None:
    """The sidecar of a job."""
    arguments = {"settings": {}, "resources": USED, "started": 0.0, **changes}
    write_provenance(Path(sidecar), inputs=[*map(Path, inputs)], outputs=[*map(Path, outputs)], seed=seed, **arguments)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """raw -> corpus -> weights -> metrics of two systems -> table; the metrics read the corpus as well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(provenance, "_git", functools.cache(provenance._git))  # once for all sidecars
    tracing._state.cache_clear()  # it remembers relative paths
    write(RAW, f"id,text\n1,{CANARY}\n")
    write(TRAIN, f"one document: {CANARY}")
    made("results/corpus/small/provenance.json", inputs=[RAW], outputs=[TRAIN],
         settings={"dataset": {"source": "mimic3", "credentialed": True}})  # fmt: skip
    for system in ("plant", "random_init"):
        weights = f"results/finetuning/{system}/seed3/head.safetensors"
        write(weights, system)
        made(f"results/finetuning/{system}/seed3/provenance.json", inputs=[TRAIN], outputs=[weights], seed=3)
        metrics = write(METRICS.format(system), json.dumps({"p@5": 0.5}))
        made(f"results/evaluation/{system}/metrics.provenance.json", inputs=[weights, TRAIN], outputs=[str(metrics)])
    write(TABLE, "system,metric,value,low,high\nplant,p@5,0.5,0.4,0.6\nplant,map,0.3,0.2,0.4\nrandom_init,p@5,0.1,,\n")
    systems = {system: [f"results/evaluation/{system}"] for system in ("plant", "random_init")}
    made("results/paper/small/tables.provenance.json", outputs=[TABLE], settings={"systems": systems},
         inputs=[METRICS.format(system) for system in systems])  # fmt: skip
    yield tmp_path
    tracing._state.cache_clear()


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """(arguments of `plant trace`) -> what it prints."""

    def run(*arguments: str) -> str:
        main(["trace", *arguments])
        return capsys.readouterr().out

    return run


def sha(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


def test_from_a_cell_the_chain_goes_down_to_the_raw_file_and_every_file_is_as_it_was(tree, said):
    lines = said(TABLE, "plant", "p@5").splitlines()
    assert lines[0] == "plant, p@5: 0.5 [0.4, 0.6]"
    head = "results/finetuning/plant/seed3/head.safetensors"
    chain = [TABLE, METRICS.format("plant"), head, TRAIN, RAW]
    expected = [f"{'  ' * depth}{path}  {sha(path)}  unchanged" for depth, path in enumerate(chain)]
    assert [line for line in lines if line in expected] == expected
    assert "random_init" not in "\n".join(lines)
    assert lines[-1] == "5 files: all are what they were"


def test_a_step_that_several_read_from_is_told_once_below_the_farthest(tree, said):
    text = said(METRICS.format("plant"))
    assert text.count("settings in results/corpus/small/provenance.json") == 1
    elsewhere = text.index("also read, described elsewhere:")
    assert text.index(f"- {TRAIN}") > elsewhere  # for the metrics
    assert text.index(f"    {TRAIN}") > text.index("head.safetensors")  # below the weights


def test_without_words_every_system_is_followed_and_system_narrows_it(tree, said):
    assert {"plant", "random_init"} <= set(re.findall(r"results/evaluation/(\w+)/", said(TABLE)))
    assert set(re.findall(r"results/evaluation/(\w+)/", said(TABLE, "--system", "random_init"))) == {"random_init"}


def test_a_file_that_changed_since_it_was_read_and_one_that_is_gone_are_said(tree, said):
    write(RAW, "id,text\n1,another\n")
    Path("results/finetuning/plant/seed3/head.safetensors").unlink()
    text = said(METRICS.format("plant"))
    assert re.search(rf"{RAW}  [0-9a-f]{{12}}  CHANGED since then", text)
    assert "no longer there" in next(line for line in text.splitlines() if "head.safetensors" in line)
    assert text.rstrip().endswith("4 files: 2 are not what they were")


@pytest.mark.parametrize("path", [RAW, "results/nowhere.csv", "results/stray.json"])
def test_a_file_that_no_sidecar_names_is_one_clear_error(tree, path):
    write("results/stray.json", "{}")
    with pytest.raises(InputError, match=rf"{path}: expected a file that a job of this pipeline made.*--root"):
        list(trace(Path(path), root=Path("results")))


def test_of_several_sidecars_that_name_a_file_the_newest_counts(tree, capsys):
    """A rule that has a new name leaves the sidecar of its old one behind."""
    weights = "results/finetuning/plant/seed3/head.safetensors"
    old = json.loads(Path("results/finetuning/plant/seed3/provenance.json").read_text(encoding="utf-8"))
    old |= {"outputs": {weights: "0" * 64}, "written": "2025-01-01T00:00:00+00:00"}
    write("results/finetuning/plant/seed3/train.provenance.json", json.dumps(old))
    assert Index(Path("results")).maker(weights).sidecar == "results/finetuning/plant/seed3/provenance.json"
    main(["verify", "results"])
    assert " 0 changed" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "says"), [
    ([TABLE, "plont"], f"{TABLE}: expected words that name a row of it.*Did you mean 'plant'"),
    ([TABLE, "plant", "p@6"], "expected words that name a row of it, got 'p@6'"),
    ([TABLE, "random_init", "map"], "expected words that name a row of it, got 'map'"),
    ([TABLE.replace(".csv", ".md"), "plant"], r"ablation\.csv"),
])  # fmt: skip
def test_words_that_name_no_cell_of_a_csv_end_in_one_line(tree, capsys, words, says):
    with pytest.raises(SystemExit, match=rf"^plant: .*{says}"):
        main(["trace", *words])
    assert capsys.readouterr().out == ""


def test_no_text_of_credentialed_files_is_shown_whatever_is_asked_for(tree, capsys):
    for arguments in ([TABLE], [TABLE, "plant"], [TRAIN], ["results/corpus/small/provenance.json"]):
        main(["trace", *arguments])
    notes = write("raw/notes_with_names.csv", f"name,text\n1,{CANARY}\n")
    for arguments in ([RAW], [RAW, "1"], [str(notes), "1"], [TABLE, CANARY]):
        with pytest.raises(SystemExit) as stopped:
            main(["trace", *arguments])
        assert CANARY not in str(stopped.value).replace(f"got {CANARY!r}", "")  # the user's own word
    out, errors = capsys.readouterr()
    assert RAW in out
    assert CANARY not in out + errors


def test_attempts_processes_devices_energy_and_other_versions_are_told_where_there_were_any(tree, said):
    used = {**USED, "attempts": 3, "processes": 2, "peak_device_mb": 70_000.0,
            "energy_joules": {"device": 1500.0, "host": 500.0}}  # fmt: skip
    sidecar = Path("results/corpus/small/provenance.json")
    made(str(sidecar), inputs=[RAW], outputs=[TRAIN], resources=used)
    facts = json.loads(sidecar.read_text(encoding="utf-8"))
    facts["versions"]["numpy"] = "1.0.0"
    sidecar.write_text(json.dumps(facts), encoding="utf-8")
    text = said(METRICS.format("plant"))
    assert "1,234.5 s in 3 attempts, 2 processes, 2,048 MB, 70,000 MB on the device, 2,000 J on " in " ".join(
        text.split()
    )
    assert text.count("other versions:") == 1
    assert "other versions: numpy 1.0.0" in text


def test_another_root_is_searched_where_it_is_named(tree, said):
    Path("results").rename("elsewhere")
    with pytest.raises(SystemExit, match="expected a file that a job of this pipeline made"):
        main(["trace", TABLE])
    assert "no longer there" in said(TABLE, "--root", "elsewhere")


def test_verify_finds_a_flipped_byte_in_weights_and_says_how_to_make_them_anew(tree, capsys):
    main(["verify", "results"])
    assert capsys.readouterr().out == "6 files compared, 0 changed; 0 are no longer there\n"
    weights = Path("results/finetuning/plant/seed3/head.safetensors")
    content = bytearray(weights.read_bytes())
    content[2] ^= 1
    weights.write_bytes(content)
    Path(METRICS.format("random_init")).unlink()
    tracing._state.cache_clear()
    with pytest.raises(SystemExit) as ended:
        main(["verify", "results"])
    assert ended.value.code == 1
    line, summary = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{weights} is not what its job wrote")
    assert line.endswith(f"snakemake --cores 1 --force {weights} (and your --configfile)")
    assert summary == "5 files compared, 1 changed; 1 are no longer there"
    Path("results/evaluation/plant/metrics.provenance.json").write_text("{half", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"metrics\.provenance\.json: expected JSON, got a damaged file"):
        main(["verify", "results"])


def test_a_cell_with_codes_of_a_terminal_is_printed_without_them(tree, said):
    write(TABLE, "system,metric,value\nplant,\x1b[2Jp@5,0.5\n")
    assert "\\x1b[2Jp@5: 0.5" in (shown := said(TABLE, "plant"))
    assert "\x1b" not in shown


def test_verify_from_another_folder_does_not_say_that_nothing_has_changed(tree, tmp_path_factory, monkeypatch):
    results = Path("results").resolve()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(SystemExit, match=r"expected files that sidecars name, got none of 6.*go there"):
        main(["verify", str(results)])
