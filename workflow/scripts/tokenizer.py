"""Train the tokenizer of a random backbone on the training split."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.tokens import train_tokenizer

    train_tokenizer(args.train, vocabulary=args.settings["vocabulary"], out=args.tokenizer)


if __name__ == "__main__":
    job(main)
