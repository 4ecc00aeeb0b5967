"""Two tables for millions of entries, a few bytes each: sums by a pair of numbers, and digests."""

from __future__ import annotations

import hashlib
from array import array
from typing import Final

import numpy as np

from tressette_tournament.bradley_terry import Ints

_FEW: Final = 4096
_SHIFT: Final = 32


class Sums:
    """Sums of two whole numbers by (first, second), each a number from 0 to 2^31 - 1.

    Memory: 24 bytes for each pair of numbers, and as much again for the additions since the last merge,
    which are at most a quarter of the pairs (or 4,096). While it merges it needs four times that.
    """

    def __init__(self) -> None:
        self._merged: tuple[Ints, Ints, Ints] = tuple(np.zeros((3, 0), np.int64))  # type: ignore[assignment]
        self._new = array("q"), array("q"), array("q")

    def add(self, first: int, second: int, one: int, other: int) -> None:
        """Add ``one`` and ``other`` to the sums of a pair."""
        for column, value in zip(self._new, (first << _SHIFT | second, one, other), strict=True):
            column.append(value)
        if len(self._new[0]) > max(_FEW, len(self._merged[0]) // 4):
            self._merge()

    def table(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Columns first, second and their two sums, in ascending order of the pairs."""
        self._merge()
        keys, one, other = self._merged
        return keys >> _SHIFT, keys & ((1 << _SHIFT) - 1), one, other

    def _merge(self) -> None:
        if not self._new[0]:
            return
        keys, one, other = (
            np.concatenate([held, np.frombuffer(new, np.int64)])
            for held, new in zip(self._merged, self._new, strict=True)
        )
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        self._merged = (
            keys[starts],
            np.add.reduceat(one[order], starts),
            np.add.reduceat(other[order], starts),
        )
        self._new = array("q"), array("q"), array("q")


class Digests:
    """What is known under which name, as 64 bits of a digest each. Never forgets.

    Memory: 24 to 48 bytes an entry, 72 while it grows. Among a million entries the chance
    that two of different names are taken for each other is 3 in 100 million.
    """

    def __init__(self) -> None:
        self._keys = array("Q", bytes(8 * _FEW))  # 0: empty
        self._values = array("Q", bytes(8 * _FEW))
        self._used = 0

    def __contains__(self, name: object) -> bool:
        return self._keys[self._place(_digest(name))] != 0

    def put(self, name: object, value: object) -> bool:
        """Remember ``value`` under ``name``, both by their repr. Whether that name was new.

        Raises KeyError if it has another value.
        """
        key, held = _digest(name), _digest(value)
        at = self._place(key)
        if self._keys[at]:
            if self._values[at] != held:
                raise KeyError(name)
            return False
        self._keys[at], self._values[at] = key, held
        self._used += 1
        if 3 * self._used > 2 * len(self._keys):
            self._grow()
        return True

    def _place(self, key: int) -> int:
        """Where the key is, or would be: the table is never full."""
        at = key % len(self._keys)
        while self._keys[at] not in (0, key):
            at = (at + 1) % len(self._keys)
        return at

    def _grow(self) -> None:
        keys, values = self._keys, self._values
        self._keys, self._values = (array("Q", bytes(16 * len(keys))) for _ in range(2))
        for key, value in zip(keys, values, strict=True):
            if key:
                at = self._place(key)
                self._keys[at], self._values[at] = key, value


def _digest(thing: object) -> int:
    """64 bits, never 0."""
    return int.from_bytes(hashlib.blake2b(repr(thing).encode(), digest_size=8).digest(), "little") or 1
