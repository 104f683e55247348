"""Where the servers are and who the caller is, as the command line finds it."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import grpc

from berth import _certificates, errors
from berth._certificates import TlsFiles

DEFAULT_SERVER = "127.0.0.1:7070"
MAX_SERVERS = 16
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Settings:
    """What a client needs to know; `of` fills in what the environment says."""

    servers: tuple[str, ...]
    tls: TlsFiles = field(default_factory=TlsFiles)
    auth_socket: str = ""
    auth: str = ""
    timeout_s: float = TIMEOUT_S

    @classmethod
    def of(cls, server: Optional[str], certificate: Optional[str], key: Optional[str], ca: Optional[str],
           auth_socket: Optional[str], timeout_s: float) -> Settings:
        """Arguments win over BERTH_SERVER, BERTH_TLS_CERTIFICATE, BERTH_TLS_KEY, BERTH_TLS_CA, BERTH_AUTH_SOCKET."""
        def chosen(given: Optional[str], variable: str) -> str:
            return os.environ.get(variable, "") if given is None else given
        servers = servers_of(chosen(server, "BERTH_SERVER") or DEFAULT_SERVER)
        tls = TlsFiles(chosen(certificate, "BERTH_TLS_CERTIFICATE"), chosen(key, "BERTH_TLS_KEY"),
                       chosen(ca, "BERTH_TLS_CA"))
        if any(tls) and not all(tls):
            raise errors.InvalidArgument("tls needs all of certificate, key and ca")
        return cls(servers, tls, chosen(auth_socket, "BERTH_AUTH_SOCKET"), os.environ.get("BERTH_AUTH", ""), timeout_s)

    def tls_now(self) -> TlsFiles:
        """The files for the next connection: given, of a login, or of berth-authd's socket; empty for plain text."""
        if any(self.tls):
            return self.tls
        off = self.auth_socket == "off"
        if self.auth_socket and not off:
            return _certificates.from_socket(self.auth_socket)
        if self.servers[0].startswith("unix:"):
            return TlsFiles()  # a task's socket, or berthd's own: who may connect is known there
        local = all(is_loopback(server) for server in self.servers)
        if local and not self.auth:
            return TlsFiles()  # berthd on loopback mostly runs without TLS
        login = _certificates.from_login()
        if login is not None:
            return login
        if not off and not local and os.path.exists(_certificates.SOCKET):
            return _certificates.from_socket(_certificates.SOCKET)
        if not local and self.auth:
            raise errors.FailedPrecondition("you are not logged in; run berth login")
        return TlsFiles()

    def credentials(self) -> Optional[grpc.ChannelCredentials]:
        """For the next connection; None for plain text."""
        files = self.tls_now()
        if not any(files):
            return None
        parts = []
        for path in files:
            try:
                data = Path(path).read_bytes()
            except OSError as error:
                raise errors.InvalidArgument(f"{path}: {error.strerror}") from None
            if b"-----BEGIN " not in data:
                raise errors.InvalidArgument(f"{path} is not a PEM file")
            parts.append(data)
        certificate, key, ca = parts
        return grpc.ssl_channel_credentials(ca, key, certificate)


def servers_of(text: str) -> tuple[str, ...]:
    """The addresses between commas; InvalidArgument, with the reason."""
    servers = tuple(one.strip() for one in text.split(","))
    for index, server in enumerate(servers):
        host, _, port = server.rpartition(":")
        if not server.startswith("unix:") and not (host and port.isdigit() and 0 < int(port) < 65536):
            raise errors.InvalidArgument(f'the list of servers: "{server}" is no address; write HOST:PORT or unix:PATH')
        if server in servers[:index]:
            raise errors.InvalidArgument(f"the list of servers: names {server} twice")
    if len(servers) > MAX_SERVERS:
        raise errors.InvalidArgument(f"the list of servers: names {len(servers)} servers, and may name {MAX_SERVERS}")
    return servers


def is_loopback(server: str) -> bool:
    """Whether the address is reachable from this machine only."""
    if server.startswith("unix:"):
        return True
    host = server.rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or (host.startswith("127.") and all(c in "0123456789." for c in host))
