"""Make a small transformer with random weights beside its tokenizer."""

from argparse import Namespace

from plant.ground.job import job
from plant.ground.settings import Random
from plant.model.encoders.transformer import make_random_backbone


def main(args: Namespace) -> None:
    make_random_backbone(Random.model_validate(args.settings["backbone"]), args.tokenizer, args.backbone)


if __name__ == "__main__":
    job(main, inputs=("tokenizer",), outputs=("backbone",))
