"""Attention of a network at three points of training: on relevant tokens, against marks, or over a few texts."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, object]:
    from plant.corpus.marks import read_marks
    from plant.evaluation.attention import write_attention_points
    from plant.evaluation.attention_marks import write_marks_study
    from plant.evaluation.attention_mass import write_mass
    from plant.evaluation.points import open_network
    from plant.ground.settings import AttentionStudy

    run, facts = open_network(
        args.settings, seed=args.seed, corpus=args.labels.parent, tokens=args.tokens, backbone=args.backbone,
        features=args.features, embeddings=args.embeddings, relevance=args.relevance, start=args.start,
        trained=args.weights[0].parent, static=args.static, residual=args.residual,
    )  # fmt: skip
    settings = AttentionStudy.model_validate(args.settings["attention_study"])
    if args.rule == "attention_mass":
        write_mass(run, settings=settings, out=args.table)
        return facts
    marks = args.marks and read_marks(args.marks)
    if args.rule == "attention_marks":
        return facts | write_marks_study(run, marks, settings=settings, out=args.table)
    shown = args.settings["evaluation"]["attention_documents"]
    write_attention_points(run, marks, vocabulary=args.vocabulary, documents=shown, out=args.table)
    return facts
