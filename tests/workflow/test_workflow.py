"""The pipeline as users start it: from raw files to the report, once for real, then what a change reruns."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from plant.paper.contents import contents, report_figures

ROOT = Path(__file__).resolve().parents[2]


def planned(run):
    """Rule -> number of jobs of a dry run."""
    assert run.returncode == 0, run.stdout
    text = run.stdout
    counts = re.search(r"Job stats:\njob +count\n[- ]+\n(.*?)\ntotal", text, re.DOTALL)
    if counts is None:
        assert "Nothing to be done" in text, text
        return {}
    return {line.split()[0]: int(line.split()[1]) for line in counts[1].splitlines()}


def test_the_pipeline_runs_from_raw_files_to_tables_figures_and_report(finished):
    paper = finished / "results/paper/small"
    table = (paper / "tables/ablation.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 6  # three variants, three baselines
    for name in ("ablation", "intervals", "seeds", "corpus", "cost"):
        assert all((paper / f"tables/{name}.{kind}").stat().st_size for kind in ("csv", "md", "tex"))
    for kind in ("png", "pdf"):
        assert {path.stem for path in (paper / "figures").glob(f"*.{kind}")} == set(report_figures())
    assert (paper / "report.html").stat().st_size > 100_000


def test_a_second_run_does_nothing(finished, snakemake, config):
    assert planned(snakemake(finished, config, "--dry-run")) == {}


def test_snakemake_makes_its_own_report_with_captions(finished, snakemake, config, tmp_path):
    page = tmp_path / "snakemake.html"
    made = snakemake(finished, config, "--report", str(page))
    assert made.returncode == 0, made.stdout[-2000:]
    text = page.read_text(encoding="utf-8")
    assert "pretrained by learning to rank" in text  # the start page
    for part in contents():
        assert json.dumps(part.caption)[1:-1] in text or part.caption in text, part.name
    assert text.count("in one file that needs nothing else") == 1


def test_what_the_workflow_catalogue_asks_for_is_there():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))["usage"]
    assert usage["software-stack-deployment"]["conda"] == (ROOT / "envs/plant.yaml").is_file()
    assert usage["report"] == bool([*(ROOT / "workflow/report").glob("*.rst")])
    assert "../Snakefile" in (ROOT / "workflow/Snakefile").read_text(encoding="utf-8")
    assert (ROOT / "config/README.md").is_file()


def test_a_change_of_one_ablation_reruns_what_hangs_on_it_and_nothing_else(finished, snakemake, config):
    config["finetunings"]["focal_long"]["gamma"] = 1.0
    jobs = planned(snakemake(finished, config, "--dry-run"))
    assert jobs["finetune"] == jobs["predict"] == 1
    assert {"corpus", "tokens", "relevance", "pretrain", "tfidf_linear", "mig_log_odds", "combined"} & set(
        jobs
    ) == set()


def test_a_change_of_what_is_measured_runs_no_network_and_no_baseline_again(finished, snakemake, config):
    config["evaluation"] = {"rare_below": 5, "frequency_groups": [1, 5], "at": [1, 5], "tune_for": "micro_f1"}
    jobs = planned(snakemake(finished, config, "--dry-run"))
    assert jobs["metrics"] == 6
    assert not {"predict", "evidence", "tfidf_linear", "mig_log_odds", "combined"} & set(jobs)
    config["evaluation"]["top"] = 50
    jobs = planned(snakemake(finished, config, "--dry-run"))
    assert (jobs["predict"], jobs["evidence"], jobs["tfidf_linear"]) == (2, 1, 1)


def test_a_change_of_stage_1_leaves_the_variant_without_it_alone(finished, snakemake, config):
    config["pretrainings"]["plant"]["sigma"] = 2.0
    jobs = planned(snakemake(finished, config, "--dry-run"))
    assert (jobs["pretrain"], jobs["finetune"], jobs["predict"]) == (1, 1, 1)
    assert "relevance" not in jobs


@pytest.mark.parametrize("target", ["ablation_random_init", "ablation_random_init_in_small"])
def test_an_ablation_target_plans_the_variant_the_reference_and_their_comparison_only(
    tmp_path, snakemake, config, target
):
    jobs = planned(snakemake(tmp_path, config, "--dry-run", target))
    assert (jobs["finetune"], jobs["predict"], jobs["metrics"], jobs["compare"], jobs[target]) == (2, 2, 1, 1, 1)
    assert not {"write_tables", "tfidf_linear", "intervals_and_tests", "evidence"} & set(jobs)


def test_an_ablation_ends_with_its_difference_to_the_reference(again, snakemake, config):
    run = snakemake(again, config, "ablation_random_init")
    assert run.returncode == 0, run.stdout[-3000:]
    said = (again / "logs/paper/ablation_random_init.log").read_text(encoding="utf-8")
    runs = again / "results/evaluation/small/tiny"
    ours, theirs = (
        100 * json.loads((runs / f"{name}/seed0/metrics.json").read_text(encoding="utf-8"))["p@5"]
        for name in ("none+focal_long", "plant+focal")
    )
    row = next(line for line in said.splitlines() if "| P@5 |" in line)
    found = [float(number.replace("\N{MINUS SIGN}", "-")) for number in re.findall(r"[+\N{MINUS SIGN}-]?\d+\.\d+", row)]
    assert found == pytest.approx([ours, theirs, ours - theirs], abs=0.051)
    assert row in run.stdout


def test_two_runs_have_the_same_bits_whatever_the_number_of_cores(finished, tmp_path, snakemake, config):
    targets = [f"results/evaluation/small/{system}/seed0/test.scores.safetensors"
               for system in ("tiny/plant+focal", "words/tfidf_linear")]  # fmt: skip
    run = snakemake(tmp_path, config, "ablation_plant", targets[1].replace("safetensors", "parquet"), cores="1")
    assert run.returncode == 0, run.stdout[-3000:]
    for target in targets:
        assert (tmp_path / target).read_bytes() == (finished / target).read_bytes()


FAULTY = {
    "finetunings: {focal: {hard_negativs: 5}}": "finetunings.focal.hard_negativs: unknown key. Did you mean 'hard_neg",
    "results: a\nresults: b\n": "over.yaml: expected every key once",
    "statistics: {metrics: [macro_f2]}": "macro_f2",
}


@pytest.mark.parametrize("more", FAULTY)
def test_a_faulty_config_stops_before_the_first_job(tmp_path, snakemake, config, more):
    (tmp_path / "over.yaml").write_text(more, encoding="utf-8")
    run = snakemake(tmp_path, config, "--dry-run", "--configfile", tmp_path / "config.yaml", tmp_path / "over.yaml")
    assert run.returncode != 0
    assert FAULTY[more] in run.stdout


def traced(folder, *words):
    """What `plant trace` prints in a folder."""
    command = [sys.executable, "-m", "plant.commandline", "trace", *words]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_from_a_cell_of_the_table_one_command_shows_the_chain_down_to_the_raw_files(finished, notes):
    run = "small/tiny/plant+focal/seed0"
    metrics = json.loads((finished / f"results/evaluation/{run}/metrics.json").read_text(encoding="utf-8"))
    said = traced(finished, "results/paper/small/tables/ablation.csv", "plant", "p@5")
    value = re.match(r"plant, planted, p@5: (\S+) \[", said)
    assert value is not None and float(value[1]) == pytest.approx(metrics["p@5"])
    chain = [
        "results/paper/small/tables/ablation.csv", f"results/evaluation/{run}/metrics.json",
        f"results/evaluation/{run}/test.scores.parquet", f"results/finetuning/{run}/label_attention.safetensors",
        "results/pretraining/small/tiny/plant/seed0/label_attention.safetensors",
        "results/relevance/small/tiny/mig.safetensors", "results/corpus/small/tiny/tokens.safetensors",
        "results/corpus/small/tiny/tokenizer ", "results/corpus/small/train.parquet", f"{notes}/NOTEEVENTS.csv.gz",
    ]  # fmt: skip
    lines = said.splitlines()
    starts = [f"{'  ' * depth}{name}" for depth, name in enumerate(chain)]  # each below what was made from it
    places = [[n for n, line in enumerate(lines) if line.startswith(start)] for start in starts]
    assert all(len(found) == 1 for found in places), places
    assert places == sorted(places)
    for part in ("seed 0", "commit", " MB on ", "settings in results/", "torch 2.", "model/small/tiny/backbone",
                 "statistics/small/intervals.parquet", "all are what they were"):  # fmt: skip
        assert part in said, part
    assert not {"random_init", "none+focal_long", "tfidf_linear"} & set(re.split(r"[/ ]", said))
    assert max(map(len, lines)) <= 120
    sidecars = re.findall(r"settings in\s+(\S+)", said)
    assert len(sidecars) == len(set(sidecars)) == 11  # each step once


def test_every_file_under_results_can_be_traced(finished):
    results = finished / "results"
    files = [
        path.relative_to(finished).as_posix()
        for path in results.rglob("*")
        if path.is_file() and path.parent.name != "settings" and not path.name.startswith(".")
    ]
    assert len(files) > 100
    code = (
        "import sys; from pathlib import Path; from plant.ground.trace import Index; index = Index(Path('results'));"
        "print([file for file in sys.argv[1:] if index.maker(file) is None])"
    )
    run = subprocess.run([sys.executable, "-c", code, *files], cwd=finished, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_file_of_a_finished_run_is_what_its_job_wrote(finished):
    run = subprocess.run(
        [sys.executable, "-m", "plant.commandline", "verify"], cwd=finished, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout
    assert int(run.stdout.split()[0]) > 100


def test_all_missing_sources_are_told_in_one_message_that_names_their_keys_before_any_job(
    tmp_path, snakemake, config, on_request
):
    files = {"train": "mine/train.csv", "test": "fetched/test.csv"}
    config["datasets"] = {
        "small": {"source": "mimic3", "path": "nowhere"},
        "second": {"source": "table", "files": files, "mentions": "marks.csv"},
        "unused": {"source": "mimic3", "path": "elsewhere"},
    }
    config["downloads"] = {"public": {"url": "https://example.org/a.zip", "path": "fetched"}}
    on_request(config, "unused")
    config["experiments"]["second"] = {**config["experiments"]["small"], "dataset": "second"}
    for arguments in ([], ["--dry-run", "ablation_random_init"]):
        run = snakemake(tmp_path, config, *arguments)
        assert run.returncode != 0
        assert sorted(re.findall(r"^  (datasets\S+): (\S+)$", run.stdout, re.MULTILINE)) == [
            ("datasets.second.files.train", "mine/train.csv"),
            ("datasets.second.mentions", "marks.csv"),
            ("datasets.small.path", "nowhere"),
        ]
        assert run.stdout.count("error: ") == 1 and "Traceback" not in run.stdout
        assert "The target `all` needs these too:\n" in run.stdout
        assert not (tmp_path / "logs").exists()
    assert planned(snakemake(tmp_path, config, "--dry-run", "plan")) == {"plan": 1}


NETWORK = {"kind": "word_network", "encoder": "awd_lstm", "hidden_size": 16, "attention_heads": 2}


@pytest.mark.parametrize(("key", "more"), [
    ("word_vectors", {"word_vectors": "nowhere.file"}),
    ("language_model.start", {"language_model": {"start": "nowhere.file"}}),
])  # fmt: skip
def test_a_missing_file_of_word_vectors_or_weights_is_told_before_any_job(tmp_path, snakemake, config, key, more):
    config["backbones"]["tiny"] = NETWORK | more
    run = snakemake(tmp_path, config, "--dry-run")
    assert run.returncode != 0
    assert f"error: backbones.tiny.{key}: expected a file, got nothing at nowhere.file" in run.stdout
    assert "Traceback" not in run.stdout
    (tmp_path / "nowhere.file").touch()
    assert snakemake(tmp_path, config, "--dry-run").returncode == 0


def test_a_corpus_that_is_made_needs_its_raw_files_no_more(again, snakemake, config):
    config["datasets"]["small"]["path"] = "gone"
    run = snakemake(again, config, "--dry-run", "--rerun-triggers", "mtime")
    assert planned(run) == {}
