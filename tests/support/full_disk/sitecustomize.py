"""Makes the disk of a record full for as long as a certain file exists, which takes neither root nor a disk.

Python imports this at its start from any folder on its path. As of a real disk there is room for a few bytes
at first, so that a line is torn."""

from __future__ import annotations

import errno
import os
from typing import Any

_FULL = os.environ["TRESSETTE_TEST_FULL_DISK"]
_write = os.write
_torn: set[str] = set()


def _write_if_there_is_room(file: int, data: Any) -> int:
    if os.path.exists(_FULL) and (path := os.readlink(f"/proc/self/fd/{file}")).endswith(".jsonl"):
        if path in _torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _torn.add(path)
        return _write(file, bytes(data[:7]))
    _torn.clear()
    return _write(file, data)


os.write = _write_if_there_is_room
