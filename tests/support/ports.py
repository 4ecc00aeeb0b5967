"""Ports of servers that are stopped and started again."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path
from typing import Final

_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_SPAN: Final = 8000


def lasting_address() -> str:
    """A free loopback address below the ports that the system gives away by itself. While nobody listens on
    one of those, any other connection may get it, such as of a test that runs beside this one."""
    first = int(_RANGE.read_text(encoding="ascii").split()[0]) if _RANGE.exists() else 32768
    lowest = max(1024, first - _SPAN)
    span = max(first - lowest, _SPAN)
    for number in itertools.count(os.getpid() * 101):
        port = lowest + number % span
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return f"127.0.0.1:{port}"
    raise AssertionError
