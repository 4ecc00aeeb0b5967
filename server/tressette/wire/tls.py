"""How a server is kept from standing open: TLS, and what an address that others can reach takes."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from tressette.wire.server import is_loopback, split_address


class TlsError(Exception):
    """Files that TLS cannot be done with; the text says why. of_clients: whether it is ``client_ca``."""

    def __init__(self, reason: str, of_clients: bool) -> None:
        super().__init__(reason)
        self.of_clients = of_clients


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM. With ``client_ca`` only clients with a certificate that it has signed are let in."""

    cert: Path
    key: Path
    client_ca: Path | None

    def credentials(self) -> grpc.ServerCredentials:
        """What a server is given. Raises TlsError."""
        # gRPC would not say what is wrong with the files.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.cert, self.key, password="")
            pair = (self.key.read_bytes(), self.cert.read_bytes())
        except (OSError, ValueError) as error:
            raise TlsError(str(error), of_clients=False) from None
        if self.client_ca is None:
            return grpc.ssl_server_credentials([pair])
        try:
            context.load_verify_locations(self.client_ca)
            return grpc.ssl_server_credentials([pair], self.client_ca.read_bytes(), require_client_auth=True)
        except (OSError, ValueError) as error:
            raise TlsError(str(error), of_clients=True) from None


def takes_protection(address: str) -> bool:
    """Whether other machines can reach an address, which takes TLS and tokens. Raises BadAddress."""
    host, _ = split_address(address)
    return not is_loopback(host)
