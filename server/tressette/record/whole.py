"""Files that are replaced as a whole: after a crash at any point the earlier content is there or the new one.

The new content is written beside the file, under its name and ``DRAFT``, synced and renamed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DRAFT: Final = ".new"
"""Added to the name of a file that is being written. A crash leaves it behind; the next to write there takes
it away."""


def replace_file(path: Path, data: bytes, mode: int = 0o644, keep_owner: bool = False) -> None:
    """Make a file, or put it in place of an earlier one; it is on the disk when this returns.

    mode: its permissions, before the umask; keep_owner: whether it belongs to whom the earlier file belonged
    to, which takes the right to give files away. One writer of a path at a time. Raises OSError, and then the
    earlier file is still there, or the new one whole.
    """
    draft = path.with_name(path.name + DRAFT)
    if os.path.lexists(draft):
        draft.unlink()  # its permissions may be others
    try:
        with open(draft, "wb", opener=lambda name, flags: os.open(name, flags | os.O_EXCL, mode)) as file:
            if keep_owner and path.exists():
                before = path.stat()
                if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
