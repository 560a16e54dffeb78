"""Stage 1 of one seed."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, object]:
    from plant.ground.checkpoints import discard_checkpoint
    from plant.ground.files import write_table
    from plant.ground.settings import Pretraining
    from plant.model.assemble import prepare, run_digest, save_weights
    from plant.model.fitting import TrainingRun
    from plant.model.parallel import processes
    from plant.pretraining.lists import load_top_tokens
    from plant.pretraining.pretrain import pretrain, publish_epochs
    from plant.pretraining.vocabulary import pretrain_l2r

    settings = Pretraining.model_validate(args.settings["pretraining"])
    data, classifier, facts = prepare(
        args.settings, seed=args.seed, corpus=args.labels.parent, tokens=args.tokens, backbone=args.backbone,
        features=args.features, embeddings=args.embeddings, initialisation=settings.initialisation,
    )  # fmt: skip
    top = load_top_tokens(args.relevance, data, k=settings.k)
    more = [path for path in (args.made, args.embeddings) if path]
    digest = run_digest([args.settings, args.code], [args.labels, args.tokens, args.relevance, *more])
    run = TrainingRun(args.seed, args.out / "checkpoint", digest)
    if settings.lists == "vocabulary":
        history = pretrain_l2r(classifier, top, settings, run)
    else:
        history = pretrain(classifier, data.corpus, top, settings, run)
    if processes().first:
        save_weights(classifier, args.out, head=False)
        publish_epochs(run.checkpoint, args.out, epochs=len(history))
        write_table(args.out / "history.parquet", history)
        discard_checkpoint(run.checkpoint)
    return facts
