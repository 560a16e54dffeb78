"""Write the stand-in of a dataset in its raw form."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.corpus.synthetic import write_raw
    from plant.ground.settings import parse_dataset

    write_raw(parse_dataset(args.settings["dataset"]), args.raw)
