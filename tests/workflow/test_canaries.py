"""Patient text stays where it is: a word of every note is found in no log, report, table, sidecar or message."""

import csv
import gzip
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import zlib
from pathlib import Path

import polars as pl
import psutil
import pytest

from plant.ground.job import describe

STEM = b"qzvxjw"  # begins every canary (conftest)
HOLDERS = (
    r"corpus/small/(train|val|test)\.parquet",
    r"corpus/small/(tiny|words)/vocabulary\.parquet",
    r"relevance/small/(tiny|words)/mig\.parquet",
    r".*/tokenizer\.json",
    r"evaluation/small/words/(tfidf_linear|mig_log_odds)/seed0/(features|weights)\.parquet",
    r"evaluation/small/tiny/plant\+focal\+all/seed0/evidence\.parquet",
)
"""Files below results/ that hold words of notes, as they must."""


def content(path: Path) -> bytes:
    """What a file says: columns and rows of a table, the drawn text of a PDF, the bytes of anything else."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path).write_ndjson().encode()
    raw = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(raw)
    if path.suffix == ".html":
        return re.sub(rb"base64,[\w+/=]+", b"", raw)  # pictures: their letters are chance
    if path.suffix != ".pdf":
        return raw
    streams = (
        zlib.decompress(part) for part in re.findall(rb"/FlateDecode.*?stream\r?\n(.*?)endstream", raw, re.DOTALL)
    )
    return raw + b"\n".join(b"".join(re.findall(rb"\(((?:\\.|[^()\\])*)\)", stream)) for stream in streams)


def holders(folder: Path) -> list[str]:
    """Files below a folder in which a canary is found, in their contents or names."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [
        path.relative_to(folder).as_posix()
        for path in files
        if STEM in content(path).lower() or STEM in path.name.encode()
    ]


def test_the_words_of_notes_are_where_they_must_be_and_nowhere_else(finished):
    found = holders(finished)
    assert {"results/corpus/small/train.parquet", "results/corpus/small/words/vocabulary.parquet"} <= set(found)
    leaks = [name for name in found if not any(re.fullmatch(f"results/{holder}", name) for holder in HOLDERS)]
    assert leaks == []
    searched = {path.relative_to(finished).parts[0] for path in finished.rglob("*") if path.is_file()}
    assert searched >= {"logs", "benchmarks", ".snakemake", "results", "snakemake.out"}


def test_every_note_of_the_corpus_holds_its_canary(finished):
    """So that the search above can fail."""
    texts = pl.concat(pl.read_parquet(finished / f"results/corpus/small/{name}.parquet") for name in ("train", "test"))
    assert texts["text"].str.contains(STEM.decode()).all()


def test_no_admission_is_named_in_what_may_be_shared(finished):
    ids = pl.read_parquet(finished / "results/corpus/small/test.parquet")["document_id"]
    for path in [*finished.glob("results/paper/small/tables/*"), finished / "results/paper/small/report.html"]:
        said = re.sub(r"base64,[\w+/=]+", "", path.read_text(encoding="utf-8"))
        assert set(re.findall(r"(?<![\d.])\d{6}(?![\d.])", said)) & set(ids) == set(), path


def test_results_of_credentialed_notes_are_their_owners_alone(finished):
    results = finished / "results"
    files = [
        path
        for path in results.rglob("*")
        if path.is_file() and path.parent.name != "settings" and not path.name.startswith(".")
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    folders = {path.parent for path in files if not path.name.endswith("provenance.json")}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_logs_of_credentialed_notes_are_their_owners_alone(finished):
    logs = [*(finished / "logs").rglob("*.log")]
    assert len(logs) > 20
    assert {stat.S_IMODE(path.stat().st_mode) for path in logs} == {0o600}


def test_a_copy_that_lost_its_modes_is_still_worked_on_in_private(again, config, snakemake, on_request):
    """As `cp -r --no-preserve=mode` leaves it. A part of a credentialed dataset is credentialed too."""
    made = ["finetuning/small/tiny/plant+focal/seed0/head.safetensors", "corpus/part/train.parquet",
            "evaluation/small/words/tfidf_linear/seed0/test.scores.parquet", "statistics/small/intervals.parquet",
            "paper/small/report.html"]  # fmt: skip
    for path in [again, *again.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    config["datasets"]["part"] = {"source": "subset", "of": "small", "train_size": 20}
    on_request(config, "part")
    targets = [f"results/{name}" for name in made]
    ended = snakemake(again, config, *targets, "--forcerun", *targets, "--rerun-triggers", "mtime")
    assert ended.returncode == 0, ended.stdout[-3000:]
    for path in (again / target for target in targets):
        assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700), path
    logs = [again / "logs/corpus/part/subset.log", again / "logs/finetuning/small/tiny/plant+focal/seed0.log"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in logs} == {0o600}


def unquoted(rows: list[list[str]]) -> str:
    """A table whose texts spill into rows and columns of their own."""
    return "\n".join(",".join(row) for row in rows) + "\n"


def quoted(rows: list[list[str]], **options) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n", **options).writerows(rows)
    return out.getvalue()


SPOILT = {
    "a row with more fields": lambda rows: quoted([*rows[:50], [*rows[50], "more", rows[51][-1]], *rows[51:]]).encode(),
    "a row with fewer fields": lambda rows: quoted([*rows[:50], rows[50][3:], *rows[51:]]).encode(),
    "a quote that never ends": lambda rows: quoted(rows).encode().replace(b'xvzq"', b"xvzq", 1),
    "texts without quotes": lambda rows: unquoted(rows).encode(),
    "a byte that is no text": lambda rows: quoted(rows).encode().replace(STEM, STEM + b"\xff", 40),
    "cut in a text": lambda rows: quoted(rows).encode()[:20_000],
    "no header": lambda rows: quoted(rows[1:]).encode(),
    "texts as ids": lambda rows: quoted([[*row[:2], row[-1], *row[3:]] for row in rows]).encode(),
}
SCRIPT = Path(__file__).parents[2] / "workflow" / "scripts" / "corpus.py"


def build(folder: Path, dataset: dict) -> subprocess.CompletedProcess:
    """The script of the rule `corpus`."""
    made = {"sidecar": "out/provenance.json"}
    job = describe({"raw": []}, made, rule="corpus", params={"settings": {"dataset": dataset}})
    return subprocess.run([sys.executable, SCRIPT, json.dumps(job)], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def rows(notes) -> list[list[str]]:
    """NOTEEVENTS as it is."""
    text = gzip.decompress((notes / "NOTEEVENTS.csv.gz").read_bytes()).decode("utf-8")
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_spoilt_file_of_notes_is_not_quoted(notes, rows, tmp_path, how, ending):
    shutil.copytree(notes, tmp_path / "raw")
    (tmp_path / "raw/NOTEEVENTS.csv.gz").unlink()
    spoilt = SPOILT[how](rows)
    assert STEM in spoilt
    (tmp_path / f"raw/NOTEEVENTS{ending}").write_bytes(gzip.compress(spoilt) if ending == ".csv.gz" else spoilt)
    ended = build(tmp_path, {"source": "mimic3", "path": "raw"})
    assert STEM.decode() not in (ended.stdout + ended.stderr).lower()
    assert ended.returncode in (0, 2), ended.stderr
    assert (ended.returncode == 2) == ("error: " in ended.stderr)


def test_notes_that_are_named_as_something_else_are_not_quoted(notes, rows, tmp_path):
    (tmp_path / "notes.csv").write_text(quoted(rows[1:]), encoding="utf-8")
    mimic = {"source": "mimic3", "path": str(notes)}
    lists = dict.fromkeys(("train", "val", "test"), "notes.csv")
    for dataset, says in (
        ({**mimic, "split": {"ids": lists}}, "expected one document id a line"),
        ({**mimic, "labels": {"keep": "notes.csv"}}, "none of which occurs"),
        ({**mimic, "labels": {"keep": "nowhere.txt"}}, "nowhere.txt: expected a file, got nothing there"),
        ({"source": "table", "path": "notes.csv", "credentialed": True}, "expected every column once"),
    ):
        ended = build(tmp_path, dataset)
        assert ended.returncode == 2
        assert says in ended.stderr
        assert STEM.decode() not in ended.stderr.lower()


WORD = STEM.decode()
NOTES = pl.DataFrame(
    {
        "id": [str(100_000 + i) for i in range(12)],
        "text": [f"{WORD} of note {i // 2}" for i in range(12)],
        "phrase": [f"{WORD} of note {i // 2}" for i in range(12)],
        "word": [WORD + "abcdef"[i // 2] for i in range(12)],
        "codes": [f"E1{i % 3}.9;I10" for i in range(12)],
        "split": ["train"] * 5 + ["test"] * 7,  # cuts a pair of equal notes
    }
)
"""Notes of many words and of one; every two of them are equal."""
WRONG_COLUMNS = {
    "texts as ids": ({"id_column": "{notes}"}, "got 6 repeated"),
    "texts as patients": ({"group_column": "{notes}", "split_column": "split"}, "1 group(s) in more than one"),
    "texts as splits": ({"split_column": "{notes}"}, "split names train, val and test"),
    "texts as the listed ids": ({"split": {"ids": {"train": "notes.txt", "test": "notes.txt"}}}, "got "),
    "texts as ids of the split table": ({"split": {"table": "split.parquet"}}, "ids listed again"),
    "texts as columns of the split table": ({"split": {"table": "header.parquet"}}, "the columns _id, split"),
    "texts in the header": ({"path": "header.parquet"}, "a column 'id'"),
}


@pytest.mark.parametrize("kind", ["phrase", "word"])
@pytest.mark.parametrize("what", WRONG_COLUMNS)
def test_a_column_of_the_wrong_kind_is_not_quoted(tmp_path, what, kind):
    NOTES.write_parquet(tmp_path / "notes.parquet")
    NOTES.rename({kind: "_id"}).write_parquet(tmp_path / "split.parquet")
    NOTES.rename({"id": NOTES[kind][0], "split": "_split"}).write_parquet(tmp_path / "header.parquet")
    (tmp_path / "notes.txt").write_text("\n".join(NOTES[kind].unique()), encoding="utf-8")
    table = {"source": "table", "path": "notes.parquet", "labels_column": "codes"}
    config, says = WRONG_COLUMNS[what]
    ended = build(tmp_path, {**table, "credentialed": True, **json.loads(json.dumps(config).replace("{notes}", kind))})
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False), ended.stderr
    assert says in ended.stderr
    assert WORD not in (ended.stdout + ended.stderr).lower()


def codiesp(folder: Path) -> dict:
    """The first column of the codes holds words of the texts."""
    for split in ("train", "dev", "test"):
        (folder / f"raw/{split}/text_files_en").mkdir(parents=True)
        (folder / f"raw/{split}/text_files_en/S0001.txt").write_text(WORD, encoding="utf-8")
        for kind in "DP":
            (folder / f"raw/{split}/{split}{kind}.tsv").write_text(f"{WORD}\tE11.9\n", encoding="utf-8")
    return {"source": "codiesp", "path": "raw"}


def xmc(folder: Path) -> dict:
    (folder / "raw").mkdir()
    (folder / "raw/lbl.json").write_text('{"uid": "1", "title": "E11.9"}\n', encoding="utf-8")
    for name in ("trn", "tst"):
        line = json.dumps({"uid": WORD, "title": WORD, "target_ind": [3]})
        (folder / f"raw/{name}.json").write_text(f"{line}\n", encoding="utf-8")
    return {"source": "xmc", "path": "raw", "format": "xmc_json"}


def eurlex57k(folder: Path) -> dict:
    for split in ("train", "dev", "test"):
        (folder / f"raw/{split}").mkdir(parents=True)
        for number in (1, 2):
            law = dict.fromkeys(("title", "header", "recitals", "main_body", "attachments"), WORD)
            law |= {"celex_id": f"{WORD} of a law", "concepts": ["100"]}
            (folder / f"raw/{split}/{number}.json").write_text(json.dumps(law), encoding="utf-8")
    return {"source": "eurlex57k", "path": "raw"}


@pytest.mark.parametrize("source", [codiesp, xmc, eurlex57k])
def test_a_published_form_with_words_as_ids_is_not_quoted(tmp_path, source):
    ended = build(tmp_path, {**source(tmp_path), "credentialed": True})
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False), ended.stderr
    assert WORD not in (ended.stdout + ended.stderr).lower()


def test_texts_as_admissions_of_mimic_are_not_quoted(notes, rows, tmp_path):
    """Two patients with the same text in HADM_ID."""
    header, *body = rows
    admission, patient = header.index("HADM_ID"), header.index("SUBJECT_ID")
    for number, row in enumerate(body):
        row[admission], row[patient] = WORD + "ab"[number % 2], str(number)
    shutil.copytree(notes, tmp_path / "raw")
    (tmp_path / "raw/NOTEEVENTS.csv.gz").write_bytes(gzip.compress(quoted([header, *body]).encode()))
    ended = build(tmp_path, {"source": "mimic3", "path": "raw"})
    assert ended.returncode == 2
    assert "admissions of several: 2 (not shown" in ended.stderr
    assert WORD not in ended.stderr.lower()


def test_failing_jobs_leave_no_words_of_notes(again, notes, rows, config, snakemake, on_request):
    shutil.copytree(notes, again / "raw")
    (again / "raw/NOTEEVENTS.csv.gz").write_bytes(gzip.compress(SPOILT["cut in a text"](rows)))
    (again / "labels.txt").write_text("999.99\n", encoding="utf-8")
    config["datasets"]["cut"] = {"source": "mimic3", "path": "raw"}
    config["datasets"]["unknown"] = {**config["datasets"]["small"], "labels": {"keep": "labels.txt"}}
    on_request(config, "cut", "unknown")
    targets = [f"results/corpus/{name}/train.parquet" for name in ("cut", "unknown")]
    ended = snakemake(again, config, *targets, "--keep-going", "--show-failed-logs")
    assert ended.returncode != 0
    assert ended.stdout.count("error: ") == 2
    assert STEM.decode() not in ended.stdout.lower()
    shutil.rmtree(again / "raw")
    assert [name for name in holders(again) if not any(re.fullmatch(f"results/{one}", name) for one in HOLDERS)] == []


def test_a_killed_training_job_leaves_no_words_of_notes_and_nothing_that_others_can_read(
    again, config, start_snakemake
):
    config["finetunings"]["focal"]["epochs"] = 1000
    run = again / "results/finetuning/small/tiny/plant+focal/seed0"
    process = start_snakemake(again, config, f"{run.relative_to(again)}/head.safetensors", "--show-failed-logs")
    try:
        until = time.monotonic() + 120
        while not (run / "checkpoint/state.json").is_file() and time.monotonic() < until:
            time.sleep(0.1)
        kept = [*(run / "checkpoint").iterdir(), run / "checkpoint"]
        assert len(kept) > 2 and all(path.stat().st_mode & 0o077 == 0 for path in kept)
        below = psutil.Process(process.pid).children(recursive=True)
        (job,) = (one for one in below if "finetune.py" in "".join(one.cmdline()[1:2]))
        job.kill()
        said, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0
    assert "FAILED: finetune (" in said
    assert STEM.decode() not in said.lower()
    assert [name for name in holders(again) if not any(re.fullmatch(f"results/{one}", name) for one in HOLDERS)] == []


def test_attention_over_credentialed_text_is_made_only_where_it_is_asked_for(again, config, snakemake):
    assert not list(again.rglob("attention.parquet"))
    assert "credentialed and is not shown" in (again / "results/paper/small/report.html").read_text(encoding="utf-8")
    config["evaluation"] = {"show_credentialed": True}
    file = "results/evaluation/small/tiny/plant+focal/seed0/attention.parquet"
    ended = snakemake(again, config, file, "--rerun-triggers", "mtime")
    assert ended.returncode == 0, ended.stdout[-3000:]
    shown = pl.read_parquet(again / file)["token"].str.join().item()
    assert STEM.decode() in shown.lower()  # the words of the notes, so:
    assert stat.S_IMODE((again / file).stat().st_mode) == 0o600
