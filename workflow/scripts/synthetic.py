"""Write the stand-in of a dataset in its raw form."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.synthetic import write_raw
    from plant.ground.settings import parse_dataset

    write_raw(parse_dataset(args.settings["dataset"]), args.raw)


if __name__ == "__main__":
    job(main)
