"""The baselines of TF-IDF, over words or over characters, and one linear classifier a label."""

from argparse import Namespace
from pathlib import Path

from plant.baselines.registry import tfidf_characters, tfidf_linear
from plant.ground.job import job
from plant.ground.settings import BaselineSettings, Evaluation


def main(args: Namespace) -> None:
    baseline = {"words": tfidf_linear, "characters": tfidf_characters}[args.settings["grams"]]
    baseline(
        Path(args.corpus),
        settings=BaselineSettings.model_validate(args.settings["baselines"]),
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
        seed=args.seed,
        threads=int(args.threads),
    )


if __name__ == "__main__":
    job(main, inputs=("documents*",), outputs=("out",), texts=("corpus", "threads"))
