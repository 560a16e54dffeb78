"""Stage 2 of one seed, from planted or random attention."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, object]:
    from plant.finetuning.candidates import load_shortlist
    from plant.finetuning.finetune import finetune
    from plant.finetuning.kept_evidence import keep_evidence
    from plant.ground.checkpoints import discard_checkpoint
    from plant.ground.files import write_table
    from plant.ground.settings import Finetuning
    from plant.model.assemble import load_weights, prepare, run_digest, save_weights
    from plant.model.fitting import TrainingRun
    from plant.model.parallel import processes

    settings, planted = Finetuning.model_validate(args.settings["finetuning"]), args.planted or []
    data, classifier, facts = prepare(
        args.settings, seed=args.seed, corpus=args.labels.parent, tokens=args.tokens, backbone=args.backbone,
        features=args.features, embeddings=args.embeddings,
        initialisation="random" if planted else settings.initialisation,
    )  # fmt: skip
    if planted:
        load_weights(classifier, planted[0].parent, head=False)
    shortlist = load_shortlist(args.shortlist, data, settings)
    data = keep_evidence(
        data, classifier, settings, static=args.static, residual=args.residual, whole=shortlist is None
    )
    more = [path for path in (args.made, args.shortlist, args.embeddings, args.static, args.residual) if path]
    digest = run_digest([args.settings, args.code], [args.labels, args.tokens, *planted, *more])
    run = TrainingRun(args.seed, args.out / "checkpoint", digest)
    history = finetune(classifier, data.corpus, settings, run, shortlist=shortlist)
    if processes().first:
        save_weights(classifier, args.out, head=True)
        write_table(args.out / "history.parquet", history)
        discard_checkpoint(run.checkpoint)
    return facts
