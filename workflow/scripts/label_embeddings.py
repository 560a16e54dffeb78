"""Mean hidden state of each label's description."""

from argparse import Namespace

from plant.ground.job import job


def main(args: Namespace) -> dict[str, object]:
    from plant.model.assemble import parse_transformer
    from plant.model.descriptions import write_label_embeddings
    from plant.model.determinism import set_up

    device = set_up(args.settings["compute"])
    settings, corpus = parse_transformer(args.settings["backbone"]), args.labels.parent
    facts = write_label_embeddings(settings, args.backbone, corpus, out=args.embeddings, device=device)
    return {"device": str(device), **facts}


if __name__ == "__main__":
    job(main)
