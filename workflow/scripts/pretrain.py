"""Stage 1 of one seed."""

from argparse import Namespace

from plant.checkpoints import discard_checkpoint
from plant.commandline import job
from plant.files import write_table
from plant.model.assemble import prepare, run_digest, save_weights
from plant.pretraining.lists import load_top_tokens
from plant.pretraining.pretrain import pretrain
from plant.settings import Pretraining


def main(args: Namespace) -> dict[str, object]:
    settings = Pretraining.model_validate(args.settings["pretraining"])
    data, classifier, facts = prepare(args)
    top = load_top_tokens(args.relevance, data, k=settings.k)
    digest = run_digest(args.settings, [args.labels, args.tokens, args.relevance])
    checkpoint = args.out / "checkpoint"
    history = pretrain(classifier, data.corpus, top, settings, seed=args.seed, checkpoint=checkpoint, digest=digest)
    save_weights(classifier, args.out, head=False)
    write_table(args.out / "history.parquet", history)
    discard_checkpoint(args.out / "checkpoint")
    return facts


if __name__ == "__main__":
    job(main, inputs=("labels", "tokens", "relevance", "features?"), outputs=("out",), texts=("backbone", "corpus"))
