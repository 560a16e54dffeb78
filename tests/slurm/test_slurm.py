"""The pipeline on a real scheduler: one node, two fake GPUs, the committed profile, every job through sbatch."""

import re
import shutil
import signal
import subprocess

import pytest

pytestmark = pytest.mark.slurm

# Polling for the impatient: on a real cluster the profile's own numbers hold.
QUICK = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "15")
PREPARED = ("results/corpus/small/tiny/tokens.safetensors", "results/model/small/tiny/backbone")
RELEVANCE = "results/relevance/small/tiny/mig.parquet"
MOVED = ("--rerun-triggers", "mtime")  # results that came from a folder with another name count as made here
WITNESS = """\
import os, pathlib
seen = " ".join([os.environ["SLURM_JOB_PARTITION"], os.environ.get("CUDA_VISIBLE_DEVICES", "none")])
pathlib.Path("logs", f"seen.{pathlib.Path(__file__).stem}.{os.environ['SLURM_JOB_ID']}").write_text(seen)
"""
STAGE_1 = "results/pretraining/small/tiny/plant/seed0/label_attention.safetensors"
GPU_SCRIPTS = ("pretrain", "finetune", "predict", "attention")
CPU_SCRIPTS = ("corpus", "tokens", "relevance", "baseline", "intervals_and_tests", "paper")


def text(run: subprocess.CompletedProcess) -> str:
    return run.stdout + run.stderr


def rule_of(job) -> str:
    return re.match(r"rule_([a-z]+)", job.comment)[1]


@pytest.fixture(scope="module")
def finished(slurm, tmp_path_factory):
    """A clone in which `snakemake --profile slurm all` has run, and what it said."""
    clone = slurm.clone(tmp_path_factory.mktemp("run") / "clone")
    for script in (*GPU_SCRIPTS, *CPU_SCRIPTS):
        clone.first(script, WITNESS)
    run = clone.snakemake("all", *QUICK)
    assert run.returncode == 0, text(run)[-5000:]
    return clone, text(run)


@pytest.fixture(scope="module")
def prepared(slurm, tmp_path_factory):
    """A clone that has made corpus, tokens and backbone, without the scheduler."""
    clone = slurm.clone(tmp_path_factory.mktemp("prepared") / "clone")
    subprocess.run(["snakemake", "--cores", "2", *PREPARED], cwd=clone.folder, env=clone.env, check=True)
    return clone


@pytest.fixture
def half_done(prepared, slurm, tmp_path):
    """A fresh clone with these results."""
    clone = slurm.clone(tmp_path / "clone")
    for folder in ("results", ".snakemake"):
        shutil.copytree(prepared.folder / folder, clone.folder / folder, symlinks=True)
    return clone


def test_the_miniature_runs_through_the_scheduler_and_small_jobs_share_one(finished, slurm) -> None:
    clone, said = finished
    assert (clone.folder / "results/paper/small/report.html").stat().st_size > 100_000
    ended = re.search(r"^\[(\d+)/\1\] all$", said, re.MULTILINE)
    assert ended is not None
    jobs = slurm.jobs(clone)
    assert {job.state for job in jobs} == {"COMPLETED"}
    comments = [job.comment for job in jobs]
    assert comments.count("rule_evaluate_metrics_predict") == 2
    assert comments.count("rule_paper_write_figures_write_report") == 1
    assert len(jobs) == int(ended[1]) - 1 - 2 - 1  # `all` is no job; two predictions, and figures and report, share


@pytest.mark.parametrize("script", [*GPU_SCRIPTS, *CPU_SCRIPTS])
def test_rules_land_on_their_partition_and_see_a_device_on_that_of_gpus_alone(finished, script: str) -> None:
    seen = {path.read_text("utf-8") for path in (finished[0].folder / "logs").glob(f"seen.{script}.*")}
    assert seen
    assert seen <= ({"gpu 0", "gpu 1"} if script in GPU_SCRIPTS else {"cpu none"})


def test_an_ablation_target_reruns_alone(finished, slurm) -> None:
    clone, _ = finished
    before = len(slurm.jobs(clone))
    config = clone.config()
    config["finetunings"]["focal_long"]["gamma"] = 1.0
    clone.write_config(config)
    run = clone.snakemake("ablation_random_init", *QUICK)
    assert run.returncode == 0, text(run)[-5000:]
    new = [job.comment for job in slurm.jobs(clone)[before:]]
    assert new == [
        "rule_finetune_wildcards_small_tiny_none_focal_long_0", "rule_evaluate_metrics_predict",
        "rule_compare_wildcards_small_random_init",
    ]  # fmt: skip


def test_a_failed_job_shows_its_log_and_is_retried_with_more_memory(half_done, slurm) -> None:
    half_done.first(
        "relevance",
        "import pathlib, sys\n"
        "if not pathlib.Path('failed').exists():\n"
        "    pathlib.Path('failed').touch()\n"
        "    pathlib.Path(snakemake.log[0]).write_text('the first attempt fails')\n"
        "    sys.exit(1)",
    )
    run = half_done.snakemake(RELEVANCE, *QUICK, *MOVED)
    assert run.returncode == 0, text(run)[-5000:]
    assert "the first attempt fails" in text(run)
    jobs = slurm.jobs(half_done)
    assert [(job.state, job.memory) for job in jobs] == [("FAILED", "4000M"), ("COMPLETED", "8000M")]


def test_quick_one_gpu_job_and_one_without_land_where_they_belong(half_done, slurm) -> None:
    """The first two claims above by two jobs, for continuous integration."""
    for script in ("relevance", "pretrain"):
        half_done.first(script, WITNESS)
    run = half_done.snakemake(STAGE_1, *QUICK, *MOVED)
    assert run.returncode == 0, text(run)[-5000:]
    assert [(job.partition, job.state) for job in slurm.jobs(half_done)] == [("cpu", "COMPLETED"), ("gpu", "COMPLETED")]
    seen = {path.name.split(".")[1]: path.read_text("utf-8") for path in (half_done.folder / "logs").glob("seen.*")}
    assert seen["relevance"] == "cpu none"
    assert seen["pretrain"] in ("gpu 0", "gpu 1")


def test_training_that_slurm_tells_to_end_saves_is_sent_again_and_ends_with_the_same_bits(half_done, slurm) -> None:
    """SIGTERM to all steps: what preemption and a time limit begin with. To write a state takes seconds, as for 7B."""
    config = half_done.config()
    config["pretrainings"]["plant"]["epochs"] = 4
    half_done.write_config(config)
    half_done.first(
        "pretrain",
        "import time\nfrom plant.model import fitting\nwrite = fitting.save_checkpoint\n"
        "fitting.save_checkpoint = lambda *where, **what: (time.sleep(4), write(*where, **what))",
    )
    folder = (half_done.folder / STAGE_1).parent
    with half_done.running(STAGE_1, *QUICK, *MOVED) as run:
        slurm.wait_until((folder / "checkpoint" / "state.json").exists)
        (job,) = (job for job in slurm.jobs(half_done) if "pretrain" in job.comment)
        slurm.ask("scancel", "--signal=TERM", str(job.number))
        assert run.wait(300) == 0, (half_done.folder / "first.log").read_text("utf-8")[-5000:]
    states = [job.state for job in slurm.jobs(half_done) if "pretrain" in job.comment]
    assert states == ["FAILED", "COMPLETED"]
    assert "interrupted in Stage 1, epoch" in (half_done.folder / "first.log").read_text("utf-8")  # the job's log
    assert "resumed in epoch" in (half_done.folder / "logs/pretraining/small/tiny/plant/seed0.log").read_text("utf-8")
    found = {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
    again = ["snakemake", "--cores", "2", STAGE_1, "--force", *MOVED]  # undisturbed, without the scheduler
    subprocess.run(again, cwd=half_done.folder, env=half_done.env, check=True)
    assert {path.name: path.read_bytes() for path in folder.glob("*.safetensors")} == found


def test_a_job_over_its_time_limit_is_reported_as_such(half_done, slurm) -> None:
    half_done.first("relevance", "import time\ntime.sleep(600)")
    run = half_done.snakemake(RELEVANCE, *QUICK, *MOVED, "--retries", "0", "--set-resources", "relevance:runtime=1")
    assert run.returncode != 0
    assert "SLURM status is: 'TIMEOUT'" in text(run)
    assert not (half_done.folder / RELEVANCE).exists()


def test_a_job_over_its_memory_is_reported_and_gets_more(half_done, slurm) -> None:
    half_done.first("relevance", "import time\nfill = bytearray(900 * 2**20)\ntime.sleep(20)")
    more = "relevance:mem_mb=600 + 1400 * (attempt - 1)"
    run = half_done.snakemake(RELEVANCE, *QUICK, *MOVED, "--set-resources", more)
    assert run.returncode == 0, text(run)[-5000:]
    # Without cgroups the status is FAILED, not OUT_OF_MEMORY, and Slurm's own log has the reason.
    logs = list(half_done.folder.rglob("logs/slurm/rule_relevance/**/*.log"))
    assert any("exceeded memory limit" in path.read_text("utf-8") for path in logs)
    assert [(job.state, job.memory) for job in slurm.jobs(half_done)] == [("FAILED", "600M"), ("COMPLETED", "2000M")]


def test_partitions_that_the_cluster_lacks_end_in_an_error_that_names_them(half_done, slurm) -> None:
    half_done.write_partitions({"batch": {"max_runtime": "1d"}, "a100": {"max_runtime": "1d", "max_gpu": 4}})
    run = half_done.snakemake(RELEVANCE, *QUICK, *MOVED, "--retries", "0")
    assert run.returncode != 0
    assert "invalid partition specified: batch" in text(run)
    assert slurm.jobs(half_done) == []


def test_a_killed_run_goes_on_where_it_was_and_repeats_nothing(half_done, slurm) -> None:
    target = "results/finetuning/small/tiny/plant+focal/seed0/head.safetensors"
    half_done.first("pretrain", "import time\ntime.sleep(20)")
    with half_done.running(target, *QUICK, *MOVED) as first:
        slurm.wait_until(
            lambda: any("pretrain" in job.comment and job.state == "RUNNING" for job in slurm.jobs(half_done))
        )
        first.send_signal(signal.SIGKILL)
        first.wait()
    locked = half_done.snakemake(target, *QUICK, *MOVED)
    assert locked.returncode != 0
    assert "LockException" in text(locked)
    slurm.wait_until(lambda: all(job.state == "COMPLETED" for job in slurm.jobs(half_done)))  # jobs outlive Snakemake
    assert half_done.snakemake("--unlock").returncode == 0
    again = half_done.snakemake(target, *QUICK, *MOVED)
    assert again.returncode == 0, text(again)[-5000:]
    assert [rule_of(job) for job in slurm.jobs(half_done)] == ["relevance", "pretrain", "finetune"]
