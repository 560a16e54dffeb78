"""Jobs, FLOPs, GPU hours and memory of the whole config, before anything runs."""

from pathlib import Path

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.ground.settings import Settings
    from plant.paper.plan.jobs import find_jobs
    from plant.paper.plan.page import write_plan

    settings = Settings.model_validate(args.settings["config"])
    write_plan(settings, find_jobs(settings, Path(args.snakefile)), args.out)
