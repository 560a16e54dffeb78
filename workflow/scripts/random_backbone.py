"""Make a small transformer with random weights beside its tokenizer."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.ground.settings import Random
    from plant.model.transformer.backbone import make_random_backbone

    make_random_backbone(Random.model_validate(args.settings["backbone"]), args.tokenizer, args.backbone)
