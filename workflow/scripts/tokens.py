"""Tokenise every document of a corpus."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.corpus.tokens import tokenize_corpus
    from plant.ground.settings import parse_backbone

    backbone = parse_backbone(args.settings["backbone"])
    tokenize_corpus(args.documents[0].parent, backbone, tokenizer=args.tokenizer, out=args.out)
