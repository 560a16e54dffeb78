"""A run of an experiment as one model folder: of several runs the one that is best on validation."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def main(args: Namespace) -> dict[str, object]:
    from plant.serving.export import Candidate, Materials, best_candidate, export

    chosen = best_candidate([Candidate.of(plain) for plain in args.settings["candidates"]])
    private = bool(args.settings.get("private"))
    materials = Materials(
        args.corpus[0].parent, {**args.settings, "private": private}, args.network and Path(args.network[0]),
        args.backbone, args.threads,
    )  # fmt: skip
    shown = args.settings["evaluation"]["show_credentialed"]
    export(chosen, materials, args.folder, private=private, words_of_private=shown)
    return {"saved_system": chosen.system, "saved_seed": chosen.seed, "on_validation": chosen.on_validation}


def reads(args: Namespace) -> list[Path]:
    """What word channels know of words: metrics come into these folders at any time."""
    folders = {folder for plain in args.settings["candidates"] for folder in (plain.get("channels") or {}).values()}
    files = ("weights.parquet", "features.parquet", "choices.json")
    return sorted(Path(folder) / file for folder in folders for file in files if (Path(folder) / file).is_file())


if __name__ == "__main__":
    job(main, optional=("network",), reads=reads)
