"""Mean hidden state of each label's description."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job
from plant.model.assemble import made_backbone, parse_network
from plant.model.descriptions import write_label_embeddings
from plant.model.determinism import set_up


def main(args: Namespace) -> dict[str, object]:
    device = set_up(args.settings["compute"])
    settings = parse_network(args.settings["backbone"])
    found = write_label_embeddings(settings, args.backbone, Path(args.corpus), out=args.embeddings, device=device)
    return {"device": str(device), **found}


if __name__ == "__main__":
    job(main, inputs=("labels?", "tokens?"), outputs=("embeddings",), texts=("backbone", "corpus"), reads=made_backbone)
