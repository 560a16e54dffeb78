"""Attention of a few documents."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, object]:
    from plant.evaluation.attention import write_attention
    from plant.finetuning.kept_evidence import keep_evidence
    from plant.ground.settings import Evaluation, Finetuning
    from plant.model.assemble import load_weights, prepare
    from plant.pretraining.lists import load_top_tokens

    settings = Evaluation.model_validate(args.settings["evaluation"])
    recipe = Finetuning.model_validate(args.settings["finetuning"])
    data, classifier, facts = prepare(
        args.settings, seed=args.seed, corpus=args.labels.parent, tokens=args.tokens, backbone=args.backbone,
        features=args.features,
    )  # fmt: skip
    data = keep_evidence(data, classifier, recipe, static=args.static, residual=args.residual, whole=False)
    load_weights(classifier, args.weights[0].parent, head=True)
    write_attention(
        classifier,
        data,
        load_top_tokens(args.relevance, data, k=None),
        corpus=args.labels.parent,
        vocabulary=args.vocabulary,
        out=args.attention,
        documents=settings.attention_documents,
    )
    return facts
