"""Initial word vectors of a word network."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def given_file(args: Namespace) -> list[Path]:
    """The user's file, where the config names one."""
    source = args.settings["backbone"]["word_vectors"]
    return [] if source == "trained" else [Path(source)]


def main(args: Namespace) -> dict[str, object]:
    from plant.ground.settings import WordNetwork
    from plant.model.word_vectors import write_word_vectors

    settings = WordNetwork.model_validate(args.settings["backbone"])
    return dict(write_word_vectors(settings, args.labels.parent, args.tokens.parent, out=args.vectors))


if __name__ == "__main__":
    job(main, reads=given_file)
