"""Scores of validation and test documents by a trained model."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, object]:
    from plant.finetuning.candidates import load_shortlist
    from plant.finetuning.kept_evidence import keep_evidence
    from plant.finetuning.predict import predict_split
    from plant.ground.settings import Evaluation, Finetuning
    from plant.model.assemble import load_weights, prepare

    settings = Evaluation.model_validate(args.settings["evaluation"])
    recipe = Finetuning.model_validate(args.settings["finetuning"])
    data, classifier, facts = prepare(
        args.settings, seed=args.seed, corpus=args.labels.parent, tokens=args.tokens, backbone=args.backbone,
        features=args.features,
    )  # fmt: skip
    shortlist = load_shortlist(args.shortlist, data, recipe)
    data = keep_evidence(data, classifier, recipe, static=args.static, residual=args.residual, whole=shortlist is None)
    load_weights(classifier, args.weights[0].parent, head=True)
    for split in ("val", "test"):
        predict_split(
            classifier, data, split, corpus=args.labels.parent, out=args.out, settings=settings,
            batch_size=recipe.batch_size, shortlist=shortlist,
        )  # fmt: skip
    return facts
