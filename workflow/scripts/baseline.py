"""One system without a network: scores of validation and test documents."""

from argparse import Namespace
from pathlib import Path

from plant.baselines.registry import baselines
from plant.baselines.target import Sources, run
from plant.corpus.reader import load_labels
from plant.ground.job import job
from plant.ground.settings import BaselineSettings, Evaluation, Relevance


def main(args: Namespace) -> None:
    files = {"tokens": args.tokens and args.tokens.parent, "relevance": args.relevance, "mentions": args.mentions}
    sources = Sources(
        load_labels(Path(args.corpus)),
        BaselineSettings.model_validate(args.settings["baselines"]),
        files | {path.parents[1].name: path.parent for path in args.scores},
        Relevance.model_validate(args.settings["relevance"]),
        category_ends=args.settings["category_ends"],
        seed=args.seed,
        threads=int(args.threads),
    )
    evaluation = Evaluation.model_validate(args.settings["evaluation"])
    run(baselines()[args.name], sources, evaluation=evaluation, out=args.out)


def reads(args: Namespace) -> list[Path]:
    """The dense scores of other baselines, where there are some."""
    return [dense for path in args.scores if (dense := path.with_suffix(".safetensors")).is_file()]


if __name__ == "__main__":
    job(
        main,
        inputs=("documents*", "labels*", "tokens?", "relevance?", "mentions?", "scores*"),
        outputs=("out",),
        texts=("name", "corpus", "threads"),
        reads=reads,
    )
