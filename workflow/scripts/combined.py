"""The weighted sum of the two baselines: the bar to beat."""

from argparse import Namespace

from plant.commandline import job
from plant.evaluation.baselines import combined
from plant.settings import BaselineSettings, Evaluation


def main(args: Namespace) -> None:
    combined(
        args.linear,
        args.log_odds,
        settings=BaselineSettings.model_validate(args.settings["baselines"]),
        evaluation=Evaluation.model_validate(args.settings["evaluation"]),
        out=args.out,
    )


if __name__ == "__main__":
    job(main, inputs=("linear", "log_odds"), outputs=("out",))
