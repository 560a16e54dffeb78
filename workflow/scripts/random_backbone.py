"""Make a small transformer with random weights beside its tokenizer."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.ground.settings import Random
    from plant.model.transformer.backbone import make_random_backbone

    make_random_backbone(Random.model_validate(args.settings["backbone"]), args.tokenizer, args.backbone)


if __name__ == "__main__":
    job(main)
