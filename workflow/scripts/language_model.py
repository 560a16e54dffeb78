"""A language model of the training texts."""

from pathlib import Path

from plant.ground.job import Arguments, job


def given_file(args: Arguments) -> list[Path]:
    """The user's weights, where the config names some."""
    source = args.settings["backbone"]["language_model"]["start"]
    return [] if source is None else [Path(source)]


@job(reads=given_file)
def main(args: Arguments) -> dict[str, object]:
    from plant.ground.checkpoints import discard_checkpoint, save_tensors
    from plant.ground.files import write_table
    from plant.ground.settings import LanguageModel, WordNetwork
    from plant.model.assemble import load_training_data, run_digest
    from plant.model.determinism import set_up
    from plant.model.fitting import TrainingRun
    from plant.model.language_model import start_encoder, train_language_model

    settings = WordNetwork.model_validate(args.settings["backbone"])
    device = set_up(args.settings["compute"])
    corpus = load_training_data(args.labels.parent, args.tokens.parent).corpus
    backbone, facts = start_encoder(settings, args.tokens.parent)
    how = LanguageModel.model_validate(args.settings["backbone"]["language_model"])
    digest = run_digest([args.settings, args.code], [args.labels, args.tokens, *given_file(args)])
    run = TrainingRun(how.seed, args.weights.parent / "checkpoint", digest)
    history = train_language_model(backbone, corpus, how, run, device=device)
    save_tensors(args.weights, backbone.state_dict())
    write_table(args.history, history)
    discard_checkpoint(run.checkpoint)
    return facts | {"device": str(device)}
