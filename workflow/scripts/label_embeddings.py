"""Mean hidden state of each label's description."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, object]:
    from plant.model.assemble import parse_transformer
    from plant.model.descriptions import write_label_embeddings
    from plant.model.determinism import set_up

    device = set_up(args.settings["compute"])
    settings, corpus = parse_transformer(args.settings["backbone"]), args.labels.parent
    facts = write_label_embeddings(settings, args.backbone, corpus, out=args.embeddings, device=device)
    return {"device": str(device), **facts}
