"""Tokenise every document of a corpus."""

from argparse import Namespace
from pathlib import Path

from plant.corpus.tokens import tokenize_corpus
from plant.ground.job import job
from plant.ground.settings import parse_backbone


def main(args: Namespace) -> None:
    tokenize_corpus(
        Path(args.corpus), parse_backbone(args.settings["backbone"]), tokenizer=args.tokenizer, out=args.out
    )


if __name__ == "__main__":
    job(main, inputs=("documents*", "tokenizer?"), outputs=("out",), texts=("corpus",))
