"""Write the stand-in of a dataset in its raw form."""

from argparse import Namespace

from plant.corpus.synthetic import write_raw
from plant.ground.job import job
from plant.ground.settings import parse_dataset


def main(args: Namespace) -> None:
    write_raw(parse_dataset(args.settings["dataset"]), args.raw)


if __name__ == "__main__":
    job(main, outputs=("raw",))
