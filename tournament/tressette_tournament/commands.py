"""Whether a bot can be started as asked: told before a run begins, not from a log when it is under way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path


def search_path(environment: Mapping[str, str]) -> str:
    """The PATH of a bot with these additions of its own: ``python`` is the runner's unless they say else."""
    here = str(Path(sys.executable).parent)
    return environment.get("PATH", os.pathsep.join((here, os.environ.get("PATH", os.defpath))))


def why_not_found(program: str, directory: str, path: str) -> str | None:
    """Why a program cannot be started in a directory (relative paths are relative to it), or None."""
    if os.sep in program:
        places = [Path(directory, program)]
    else:
        places = [Path(directory, folder or os.curdir, program) for folder in path.split(os.pathsep)]
    # os.path tells False also of places where one may not look; Path would raise.
    files = [place for place in places if os.path.isfile(place)]
    if not files:
        where = f"not found in {directory}" if os.sep in program else "not found on the bot's PATH"
        return f"program {program!r} {where}"
    if not any(os.access(file, os.X_OK) for file in files):
        return f"program {program!r} is not executable ({files[0]})"
    return None


def why_no_cpus(cpus: Iterable[int]) -> str | None:
    """Why a bot cannot be kept to these processors, or None."""
    if not hasattr(os, "sched_getaffinity"):
        return "this system cannot keep a process to some processors"
    usable = os.sched_getaffinity(0)
    for cpu in cpus:
        if cpu not in usable:
            return f"there is no processor {cpu}; there are {', '.join(map(str, sorted(usable)))}"
    return None
