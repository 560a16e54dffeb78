"""One system without a network: scores of validation and test documents."""

from pathlib import Path

from plant.ground.job import Arguments, job


def reads(args: Arguments) -> list[Path]:
    """The dense scores of other baselines, where there are some."""
    return [dense for path in args.scores or [] if (dense := path.with_suffix(".safetensors")).is_file()]


@job(reads=reads)
def main(args: Arguments) -> None:
    from plant.baselines.target import Sources, run
    from plant.corpus.reader import load_labels
    from plant.ground.settings import BaselineSettings, Evaluation, Relevance

    files = {"tokens": args.tokens and args.tokens.parent, "relevance": args.relevance, "mentions": args.mentions}
    results = args.out.parents[4]  # results/evaluation/<dataset>/words/<baseline>/seed0
    sources = Sources(
        load_labels(results / "corpus" / args.dataset),
        BaselineSettings.model_validate(args.settings["baselines"]),
        files | {path.parents[1].name: path.parent for path in args.scores or []},
        Relevance.model_validate(args.settings["relevance"]),
        category_ends=args.settings["category_ends"],
        seed=args.seed,
        threads=args.threads,
    )
    evaluation = Evaluation.model_validate(args.settings["evaluation"])
    run(args.name, sources, evaluation=evaluation, out=args.out)
