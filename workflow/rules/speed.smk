"""What makes planning fast. It changes no job."""

import gc
from functools import cache

import smart_open

gc.set_threshold(1_000_000)  # the graph has millions of objects, and all live until the end: few are garbage
if hasattr(smart_open, "parse_uri"):  # Snakemake asks three times a job for the place of its script: 0.2 ms each
    smart_open.parse_uri = cache(smart_open.parse_uri)
