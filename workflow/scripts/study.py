"""Tables, figure and page of a study."""

from argparse import Namespace
from pathlib import Path

from plant.commandline import job
from plant.paper.study import write_study
from plant.settings import Settings


def main(args: Namespace) -> None:
    contrasts = {name: Path(path) for name, path in args.settings["contrasts"].items()}
    write_study(Settings.model_validate(args.settings["config"]), args.settings["study"], contrasts, args.out)


if __name__ == "__main__":
    job(main, inputs=("contrasts*",), outputs=("out",))
