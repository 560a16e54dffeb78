"""Initial word vectors of a word network."""

from pathlib import Path

from plant.ground.job import Arguments, job


def given_file(args: Arguments) -> list[Path]:
    """The user's file, where the config names one."""
    source = args.settings["backbone"]["word_vectors"]
    return [] if source == "trained" else [Path(source)]


@job(reads=given_file)
def main(args: Arguments) -> dict[str, object]:
    from plant.ground.settings import WordNetwork
    from plant.model.word_vectors import write_word_vectors

    settings = WordNetwork.model_validate(args.settings["backbone"])
    return dict(write_word_vectors(settings, args.labels.parent, args.tokens.parent, out=args.vectors))
