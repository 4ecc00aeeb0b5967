"""How ``tressette`` was called, to tell how to call it again."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def called() -> list[str]:
    """The words that call it again: by its name if the shell finds it, else by its path."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return [_name_or_path(Path(sys.executable)), "-m", "tressette"]
    return [_name_or_path(program)]


def _name_or_path(program: Path) -> str:
    found = shutil.which(program.name)
    # Not what links lead to: a virtual environment's Python is a link to another's.
    same = found is not None and os.path.abspath(found) == os.path.abspath(program)
    return program.name if same else str(program)
