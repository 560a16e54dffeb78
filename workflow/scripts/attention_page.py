"""Pages on the attention of an experiment's networks: its mass, against people, and over the text of documents."""

from pathlib import Path

from plant.ground.job import Arguments, job


@job
def main(args: Arguments) -> None:
    from plant.ground.settings import Settings
    from plant.paper.attention.mass import write_mass_page
    from plant.paper.attention.page import write_attention_page
    from plant.paper.attention.people import write_people_page

    settings, name = Settings.model_validate(args.settings["config"]), args.settings["experiment"]
    tables = {system: [Path(path) for path in paths] for system, paths in args.settings["tables"].items()}
    if args.rule == "write_attention_page":
        write_attention_page(settings, name, {system: paths[0] for system, paths in tables.items()}, args.page)
    else:
        write = write_mass_page if args.rule == "write_attention_mass" else write_people_page
        write(settings, name, tables, args.out)
