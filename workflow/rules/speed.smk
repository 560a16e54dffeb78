"""What makes planning fast. It changes no job."""

import gc
import sys
from functools import cache

import smart_open

gc.set_threshold(1_000_000)  # the graph has millions of objects, and all live until the end: few are garbage
if hasattr(smart_open, "parse_uri"):  # Snakemake asks three times a job for the place of its script: 0.2 ms each
    smart_open.parse_uri = cache(smart_open.parse_uri)


def named(targets):
    """Those of the targets that the command names; all, where it lists or checks the rules. The paper's config has 735 of
    them: their rules would cost a sixteenth of a dry run."""
    every, command = any(word.startswith(("-l", "--li")) for word in sys.argv), " ".join(sys.argv)
    return {name: content for name, content in targets.items() if every or name in command}
