"""Tokenise every document of a corpus."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.corpus.tokens import tokenize_corpus
    from plant.ground.settings import parse_backbone

    backbone = parse_backbone(args.settings["backbone"])
    tokenize_corpus(args.documents[0].parent, backbone, tokenizer=args.tokenizer, out=args.out)


if __name__ == "__main__":
    job(main)
