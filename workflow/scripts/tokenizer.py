"""Train the tokenizer of a random backbone on the training split."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.corpus.tokens import train_tokenizer

    train_tokenizer(args.train, vocabulary=args.settings["vocabulary"], out=args.tokenizer)
