"""Stage 2 of one seed, from planted or random attention."""

from argparse import Namespace

from plant.checkpoints import discard_checkpoint
from plant.commandline import job
from plant.files import write_table
from plant.finetuning.finetune import finetune
from plant.model.assemble import load_weights, prepare, run_digest, save_weights
from plant.settings import Finetuning


def main(args: Namespace) -> dict[str, object]:
    settings = Finetuning.model_validate(args.settings["finetuning"])
    data, classifier, facts = prepare(args)
    if args.planted:
        load_weights(classifier, args.planted[0].parent, head=False)
    digest = run_digest(args.settings, [args.labels, args.tokens, *args.planted])
    history = finetune(
        classifier, data.corpus, settings, seed=args.seed, checkpoint=args.out / "checkpoint", digest=digest
    )
    save_weights(classifier, args.out, head=True)
    write_table(args.out / "history.parquet", history)
    discard_checkpoint(args.out / "checkpoint")
    return facts


if __name__ == "__main__":
    job(main, inputs=("labels", "tokens", "planted*", "features?"), outputs=("out",), texts=("backbone", "corpus"))
