"""Write a synthetic MIMIC-III in the raw schema."""

from argparse import Namespace

from plant.commandline import job
from plant.corpus.synthetic import write_mimic3
from plant.settings import Generate


def main(args: Namespace) -> None:
    write_mimic3(Generate.model_validate(args.settings["generate"]), args.raw)


if __name__ == "__main__":
    job(main, outputs=("raw",))
