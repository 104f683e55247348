"""Certificates that berth-authd gave, in the directory that the command line uses.

A certificate on disk is used while it is fresh, and renewed through the socket of berth-authd from two thirds of its
life on. To make a request for a certificate needs the package `cryptography`: pip install berth[certificates].
"""
from __future__ import annotations

import base64
import fcntl
import os
import re
import socket as sockets
import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple, Optional

from berth import errors

SOCKET = "/run/berth/auth.sock"
_PATIENCE_S = 20
_PACKET = (64 << 10) * 2 + (16 << 10)


class TlsFiles(NamedTuple):
    """PEM files: all of them, or none for plain text."""

    certificate: str = ""
    key: str = ""
    ca: str = ""


class Life(NamedTuple):
    """When a certificate should be renewed, and when it ends."""

    renew: datetime
    end: datetime


PAST = datetime(1970, 1, 1, tzinfo=timezone.utc)


def directory() -> Optional[Path]:
    """$XDG_RUNTIME_DIR/berth, else ~/.cache/berth."""
    runtime, home = os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("HOME", "")
    if runtime.startswith("/"):
        return Path(runtime) / "berth"
    return Path(home) / ".cache" / "berth" if home.startswith("/") else None


def files_of(place: Path, name: str) -> TlsFiles:
    """The files of one identity: certificate and key are in one."""
    identity = str(place / f"{name}.pem")
    return TlsFiles(identity, identity, str(place / f"{name}.servers.pem"))


def prepare(place: Path) -> None:
    """Makes the directory; FailedPrecondition if others may use it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise errors.FailedPrecondition(f"{place} must be a directory that only you can use (chmod 700)")


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """(tag, begin, end) of the content of the DER element at `at`."""
    tag, length, at = data[at], data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length, at = int.from_bytes(data[at:at + count], "big"), at + count
    return tag, at, at + length


def _time(data: bytes, at: int) -> tuple[datetime, int]:
    tag, begin, end = _element(data, at)
    text = data[begin:end].decode("ascii")
    if tag == 0x17:  # UTCTime has two digits of the year
        text = ("20" if int(text[:2]) < 50 else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=timezone.utc), end


def life_of(files: TlsFiles) -> Life:
    """Of the first certificate in the file; in the past if there is none."""
    try:
        text = Path(files.certificate).read_text(encoding="ascii")
        Path(files.ca).stat()
        found = re.search(r"-----BEGIN CERTIFICATE-----(.*?)-----END", text, re.S)
        data = base64.b64decode(found.group(1)) if found else b""
        _, at, _ = _element(data, 0)   # certificate
        _, at, _ = _element(data, at)  # to be signed
        if data[at] == 0xA0:           # version
            at = _element(data, at)[2]
        for _ in range(3):             # serial, algorithm, issuer
            at = _element(data, at)[2]
        _, at, _ = _element(data, at)  # validity
        begin, at = _time(data, at)
        end, _ = _time(data, at)
    except (OSError, ValueError, IndexError):
        return Life(PAST, PAST)
    return Life(begin + (end - begin) * 2 / 3, end)


def _keep(path: str, text: str) -> None:
    """Replaces a file as a whole."""
    following = f"{path}.{os.getpid()}"
    fd = os.open(following, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    os.replace(following, path)


def _request() -> tuple[str, str]:
    """(key, request for a certificate), both PEM."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise errors.FailedPrecondition(
            "your certificate must be renewed: run any berth command, or pip install berth[certificates]") from None
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private.decode(), made.public_bytes(serialization.Encoding.PEM).decode()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _texts(data: bytes) -> dict[int, str]:
    """The text fields of a message of texts and flags, such as CertificateAnswer; a flag is "1"."""
    found: dict[int, str] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        size = varint()
        if key & 7 == 2:
            found[key >> 3] = data[at:at + size].decode()
            at += size
        else:
            found[key >> 3] = str(size)
    return found


def _order(path: str, request: str) -> dict[int, str]:
    """One CertificateOrder and its CertificateAnswer (proto/berth/auth/v1/auth.proto)."""
    data = request.encode()
    try:
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_SEQPACKET) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(path)
            connection.send(b"\x0a" + _varint(len(data)) + data)
            answer = _texts(connection.recv(_PACKET))
    except (OSError, IndexError, UnicodeDecodeError) as error:
        raise errors.Unavailable(f"berth-authd at {path}: {error}") from None
    if not answer:
        raise errors.Unavailable(f"berth-authd at {path} gave no answer")
    if answer.get(3):
        kind = errors.Unavailable if answer.get(4) == "1" else errors.PermissionDenied
        raise kind(f"berth-authd: {answer[3]}")
    return answer


def from_socket(path: str) -> TlsFiles:
    """The caller's certificate from berth-authd, renewed if it is time."""
    place = directory()
    if place is None:
        raise errors.FailedPrecondition("there is no place for a certificate: set HOME or XDG_RUNTIME_DIR")
    prepare(place)
    files = files_of(place, path.replace("%", "%25").replace("/", "%2f"))
    now = datetime.now(timezone.utc)
    if now < life_of(files).renew:
        return files
    lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = life_of(files)  # another process may have renewed it
        if now < kept.renew:
            return files
        try:
            key, request = _request()
            answer = _order(path, request)
        except errors.BerthError:
            if now < kept.end - timedelta(seconds=1):
                return files
            raise
        _keep(files.ca, answer.get(2, ""))
        _keep(files.certificate, answer.get(1, "") + key)
    finally:
        os.close(lock)
    return files


def from_login() -> Optional[TlsFiles]:
    """That of `berth login`; None without one, FailedPrecondition once it has ended."""
    place = directory()
    if place is None or not os.path.exists(files_of(place, "login").certificate):
        return None
    prepare(place)
    files = files_of(place, "login")
    if datetime.now(timezone.utc) >= life_of(files).end:
        raise errors.FailedPrecondition("your login has ended; run berth login again, or berth logout")
    return files
