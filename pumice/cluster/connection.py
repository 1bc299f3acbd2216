"""The connection to one API server: address, verification of its certificate, credentials.

`Credentials.headers()` is called before every request and must be cheap. `Credentials.refused()` is called after a 401 and
returns whether other credentials may be available, so that the request is sent once more.
"""

import base64
import os
import re
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec
from multidict import CIMultiDict

from pumice.cluster.clock import Clock, SystemClock

REFRESH_SECONDS = 60.0
"""How long a token read from a file is used before the file is read again.

The kubelet replaces a service account's token at 80 % of its validity, at least two minutes before it expires.
"""


MOST_BYTES = 16 << 20
"""Maximum size of a kubeconfig and of a file that it names, and of other certificates and settings."""


class Credentials(Protocol):
    """A source of authentication headers.

    Attributes:
        tls: TLS context to use instead of the connection's; None if that has the certificate.
    """

    tls: ssl.SSLContext | None

    async def headers(self) -> Mapping[str, str]:
        """Headers for the next request."""
        ...

    async def refused(self) -> bool:
        """Report that the server answered 401; True if the next `headers()` may differ."""
        ...


def contents(file: Path) -> bytes:
    """Content of a kubeconfig, certificate, key, token or file of settings: a device such as /dev/zero has no end.

    Raises:
        OSError: It cannot be read.
        ConfigurationError: It has more than `MOST_BYTES`.
    """
    with file.open("rb") as stream:
        found = stream.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise ConfigurationError(
            f"{file}: has more than {MOST_BYTES:,} bytes, the limit of kubeconfigs, certificates and settings"
        )
    return found


def replace(target: Path, text: str, like: os.stat_result | None = None) -> None:
    """Write a file beside its place and rename it, so that it appears complete, with the owner and mode of `like`.

    Raises:
        OSError: It cannot be written.
    """
    descriptor, name = tempfile.mkstemp(prefix=".pumice-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
            if like is not None:
                os.fchown(descriptor, like.st_uid, like.st_gid)
                os.fchmod(descriptor, like.st_mode & 0o7777)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def bearer(token: str) -> dict[str, str]:
    """Headers of a bearer token."""
    return {"Authorization": f"Bearer {token.strip()}"}


def basic(username: str, password: str) -> dict[str, str]:
    """Headers of a name and password."""
    text = base64.b64encode(f"{username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


def joined(*parts: Mapping[str, str]) -> CIMultiDict[str]:
    """All headers of all parts; a name may occur several times (`Impersonate-Group`).

    Raises:
        ValueError: A header would be several lines.
    """
    headers: CIMultiDict[str] = CIMultiDict()
    for part in parts:
        headers.extend(part)
    for name, value in headers.items():
        if re.search("[\r\n\0\ud800-\udfff]", value):
            raise ValueError(
                f"{name}: expected one line of text, found a line break, a zero byte or half a character"
            )
    return headers


class StaticCredentials:
    """Headers that never change; none with a client certificate."""

    tls: ssl.SSLContext | None = None

    def __init__(self, *headers: Mapping[str, str]) -> None:
        self._headers = joined(*headers)

    async def headers(self) -> Mapping[str, str]:
        """Fixed headers."""
        return self._headers

    async def refused(self) -> bool:
        """False: there are no other credentials."""
        return False


class TokenFile:
    """A bearer token in a file that another process renews, as in a pod."""

    tls: ssl.SSLContext | None = None

    def __init__(
        self,
        path: Path,
        extra: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        """Read the file for the first time.

        Raises:
            OSError: When the file cannot be read.
            ConfigurationError: When it is too large.
        """
        self._path = path
        self._extra = extra or {}
        self._clock = clock or SystemClock()
        self._headers: Mapping[str, str] = {}
        self._read_at = 0.0
        self._read()

    def _read(self) -> None:
        self._headers = joined(bearer(contents(self._path).decode()), self._extra)
        self._read_at = self._clock.monotonic()

    async def headers(self) -> Mapping[str, str]:
        """The header with the token, which is read again every minute; if a read fails, the last token is used."""
        if self._clock.monotonic() - self._read_at >= REFRESH_SECONDS:
            await self.refused()
        return self._headers

    async def refused(self) -> bool:
        """Read the file again; True when it holds another token."""
        before = self._headers
        try:
            self._read()
        except (OSError, ValueError, ConfigurationError):
            # The volume is being replaced; the old token is usually still valid.
            self._read_at = self._clock.monotonic()
        return self._headers != before


class ConfigurationError(Exception):
    """The configuration of an API server cannot be used; the text says what is missing and how to set it."""


class NoServerError(ConfigurationError):
    """Nothing names an API server."""


class Connection(msgspec.Struct, frozen=True):
    """All parameters for the connection to one API server.

    Attributes:
        server: Base URL without a trailing slash; it may have a path.
        credentials: Source of authentication headers.
        tls: TLS context, which verifies the server and presents the client certificate; None for plain HTTP.
        server_name: Name in the server's certificate, if it is not the host's.
        proxy: URL of an HTTP proxy.
        namespace: Namespace of the context or of the pod.
        load: Reads the same connection again, with credentials that are renewed by themselves; None if event loops of
            several threads may share the credentials, which change in one step or not at all.
    """

    server: str
    credentials: Credentials
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"
    load: "Callable[[], Awaitable[Connection]] | None" = None

    async def of_another_thread(self) -> "Connection":
        """The connection to use in the event loop of another thread; call it there.

        Raises:
            ConfigurationError: When it cannot be read again.
        """
        return self if self.load is None else await self.load()


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate chain, leaf first, and its key, both PEM, from memory into a context.

    Python's `ssl` loads them from paths only. An anonymous in-memory file has a path, needs no writable file system, and
    leaves no key on a disk.

    On the context of a running server, new connections use the new pair.

    Raises:
        ssl.SSLError: When they are invalid or do not match.
    """
    content = certificate.rstrip() + b"\n" + key
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pumice-pair")
        try:
            os.write(descriptor, content)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        pair = Path(folder, "pair.pem")
        pair.touch(mode=0o600)
        pair.write_bytes(content)
        context.load_cert_chain(pair)
