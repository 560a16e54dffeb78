"""A run of an experiment as one model folder: of several runs the best one on validation that can be saved."""

import logging
from pathlib import Path

from plant.ground.job import Arguments, job


def reads(args: Arguments) -> list[Path]:
    """What word channels know of words: metrics come into these folders at any time."""
    folders = {folder for plain in args.settings["candidates"] for folder in (plain.get("channels") or {}).values()}
    files = ("weights.parquet", "features.parquet", "choices.json")
    return sorted(Path(folder) / file for folder in folders for file in files if (Path(folder) / file).is_file())


@job(reads=reads)
def main(args: Arguments) -> dict[str, object]:
    from plant.serving.export import Candidate, Materials, best_candidate, export

    network = Path(args.network[0]) if args.network else None
    materials = Materials(args.corpus[0].parent, args.settings, network, args.backbone, args.threads)
    candidates = [Candidate(**plain) for plain in args.settings["candidates"]]
    chosen, passed_over = best_candidate(candidates, materials)
    for sentence in passed_over:
        logging.getLogger("plant").warning("warning: %s Saved: %s.", sentence, chosen.system)
    export(chosen, materials, args.folder, passed_over=passed_over)
    return {
        "saved_system": chosen.system, "saved_seed": chosen.seed, "on_validation": chosen.on_validation,
        "passed_over": list(passed_over),
    }  # fmt: skip
