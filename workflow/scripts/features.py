"""Hidden states of a frozen backbone for every token of a corpus."""

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> dict[str, str]:
    import torch

    from plant.model.assemble import load_training_data, parse_transformer
    from plant.model.determinism import set_up
    from plant.model.features import write_features
    from plant.model.transformer.backbone import load_backbone

    threads = torch.get_num_threads()  # those of the rule
    device = set_up(args.settings["compute"])
    data = load_training_data(args.labels.parent, args.tokens.parent)
    backbone = load_backbone(parse_transformer(args.settings["backbone"]), args.backbone, device=device)
    write_features(backbone, data.corpus, args.features, device=device, threads=threads)
    return {"device": str(device)}
