"""Reads the result vectors: a copy in tests/vectors, or the folder named by TRESSETTE_VECTORS."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_DEFAULT = Path(__file__).resolve().parent.parent / "vectors"


def folder() -> Path:
    """Where the vector files are."""
    return Path(os.environ.get("TRESSETTE_VECTORS") or _DEFAULT)


def load(name: str) -> list[dict[str, Any]]:
    """The vectors of one file, e.g. ``legal`` for legal.jsonl."""
    text = (folder() / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]
