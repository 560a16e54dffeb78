"""The log-odds of a label's category over the category's most informative words."""

from argparse import Namespace
from pathlib import Path

from plant.baselines.registry import category_log_odds
from plant.ground.job import job
from plant.ground.settings import BaselineSettings, Evaluation, Relevance


def main(args: Namespace) -> None:
    category_log_odds(
        Path(args.corpus),
        args.tokens.parent,
        ends=args.settings["ends"],
        relevance=Relevance.model_validate(args.settings["relevance"]),
        settings=BaselineSettings.model_validate(args.settings["baselines"]),
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
    )


if __name__ == "__main__":
    job(main, inputs=("tokens", "documents*"), outputs=("out",), texts=("corpus",))
