"""Tables, figure and page of a study."""

from pathlib import Path

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.ground.settings import Settings
    from plant.paper.studies.study import write_study

    contrasts = {name: Path(path) for name, path in args.settings["contrasts"].items()}
    write_study(Settings.model_validate(args.settings["config"]), args.settings["study"], contrasts, args.out)
