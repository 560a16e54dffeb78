"""What makes planning fast. It changes no job."""

import gc
import inspect
import sys
from functools import cache

import smart_open
import snakemake.common
import snakemake.resources

gc.set_threshold(1_000_000)  # the graph has millions of objects, and all live until the end: few are garbage


def for_each_job(function):
    """A function that many jobs call. Snakemake asks up to three times a call what its parameters are, and Python would
    work it out every time: a twentieth of a dry run."""
    function.__signature__ = inspect.signature(function)
    if hasattr(snakemake.common, "overwrite_function_params"):
        snakemake.common.overwrite_function_params(function, function.__signature__.parameters)
    return function


def quicken(owner, name, how):
    """Replace a function of a library by `how` of it, which gives the same answers faster. A version of the library that
    has no such function is left as it is: only time is lost."""
    if hasattr(owner, name):
        setattr(owner, name, how(getattr(owner, name)))


quicken(smart_open, "parse_uri", cache)  # asked three times a job for the place of its script: 0.2 ms each
quicken(getattr(snakemake.resources, "Resource", None), "evaluate", for_each_job)  # for each resource of a job


def named(targets):
    """Those of the targets that the command names; all, where it lists or checks the rules. The paper's config has 735 of
    them: their rules would cost a sixteenth of a dry run."""
    every, command = any(word.startswith(("-l", "--li")) for word in sys.argv), " ".join(sys.argv)
    return {name: content for name, content in targets.items() if every or name in command}
