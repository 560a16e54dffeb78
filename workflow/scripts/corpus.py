"""Read, clean, split and check one dataset."""

from argparse import Namespace

from plant.commandline import job
from plant.corpus.build import build_corpus
from plant.settings import parse_dataset


def main(args: Namespace) -> None:
    build_corpus(parse_dataset(args.settings["dataset"]), args.out, raw=args.raw)


if __name__ == "__main__":
    job(main, inputs=("raw?",), outputs=("out",))
