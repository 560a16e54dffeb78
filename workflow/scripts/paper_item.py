"""One table or figure of the paper beside ours, from whatever has run."""

import logging
from argparse import Namespace

from pydantic import TypeAdapter

from plant.commandline import job
from plant.paper.grid import write_item
from plant.paper.inputs import Inputs, files_read
from plant.settings import Settings


def main(args: Namespace) -> dict[str, object]:
    paths = TypeAdapter(dict[str, Inputs]).validate_python(args.settings["paths"])
    settings = Settings.model_validate(args.settings["config"])
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every glyph
    write_item(args.settings["item"], settings, paths, args.out)
    return {"inputs": list(dict.fromkeys(file for each in paths.values() for file in files_read(each)))}


if __name__ == "__main__":
    job(main, outputs=("out",))
