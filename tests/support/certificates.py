"""Certificates made by the ``openssl`` command, as an operator makes them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KEY: Final = ("-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM files."""

    cert: Path
    key: Path


async def _openssl(*arguments: str) -> None:
    made = await asyncio.create_subprocess_exec("openssl", *arguments, stderr=asyncio.subprocess.PIPE)
    _, errors = await made.communicate()
    assert made.returncode == 0, errors


def _pair(folder: Path, name: str) -> Pair:
    folder.mkdir(exist_ok=True)
    return Pair(folder / f"{name}.pem", folder / f"{name}.key")


async def self_signed(folder: Path, name: str = "server") -> Pair:
    """A certificate for this machine, signed by itself."""
    pair = _pair(folder, name)
    await _openssl(
        *("req", "-x509", *_KEY, "-keyout", str(pair.key), "-out", str(pair.cert)),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
    )
    return pair


async def authority(folder: Path, name: str = "ca") -> Pair:
    """An authority that can sign others."""
    pair = _pair(folder, name)
    await _openssl(
        *("req", "-x509", *_KEY, "-keyout", str(pair.key), "-out", str(pair.cert), "-subj", f"/CN={name}"),
    )
    return pair


async def signed(ca: Pair, name: str) -> Pair:
    """A certificate for this machine, signed by an authority and beside it."""
    pair = _pair(ca.cert.parent, name)
    await _openssl(
        *("req", "-x509", *_KEY, "-keyout", str(pair.key), "-out", str(pair.cert)),
        *("-CA", str(ca.cert), "-CAkey", str(ca.key), "-subj", f"/CN={name}"),
        *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"),
    )
    return pair
