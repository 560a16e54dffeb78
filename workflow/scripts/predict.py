"""Scores of validation and test documents by a trained model."""

from argparse import Namespace
from pathlib import Path

from plant.commandline import job
from plant.evaluation.predict import predict_split
from plant.model.assemble import load_weights, prepare
from plant.settings import Evaluation, Finetuning


def main(args: Namespace) -> dict[str, object]:
    settings = Evaluation.model_validate(args.settings["evaluation"])
    batch_size = Finetuning.model_validate(args.settings["finetuning"]).batch_size
    data, classifier, facts = prepare(args)
    load_weights(classifier, args.weights, head=True)
    for split in ("val", "test"):
        predict_split(
            classifier, data, split, corpus=Path(args.corpus), out=args.out, settings=settings, batch_size=batch_size
        )
    return facts


if __name__ == "__main__":
    job(main, inputs=("tokens", "weights", "features?"), outputs=("out",), texts=("backbone", "corpus"))
