"""Pages on the attention of an experiment's networks: its mass, against people, and over the text of documents."""

from argparse import Namespace
from pathlib import Path

from plant.ground.job import job


def main(args: Namespace) -> None:
    from plant.ground.settings import Settings
    from plant.paper.attention.mass import write_mass_page
    from plant.paper.attention.people import write_people_page

    write = write_mass_page if args.rule == "write_attention_mass" else write_people_page
    tables = {name: [Path(path) for path in paths] for name, paths in args.settings["tables"].items()}
    write(Settings.model_validate(args.settings["config"]), args.settings["experiment"], tables, args.out)


if __name__ == "__main__":
    job(main)
