"""The serving certificate, which can be replaced while connections are served.

`ssl.SSLContext.load_cert_chain` on a live context changes what the next handshake presents and leaves open connections
alone. A pair is first loaded into an unused context: a certificate with the wrong key would leave the live context with
a mixed pair. The last good pair stays when a new one cannot be read.

A process may be stopped for longer than its certificate is valid (SIGSTOP, a suspended machine), and clients may
connect before a timer fires. So each handshake reads the wall clock and renews an expired certificate first.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from pumice.certs.validity import end_of
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.pem import load_pair

__all__ = ["FileReloader", "ServingCertificate"]

logger = logging.getLogger(__name__)

_CERTIFICATE, _KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"
"""Certificate and key must be PEM in memory: OpenSSL would take both from other sources, and then the expiry is
unknown.
"""


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])  # what aiohttp speaks; Go offers HTTP/2 first
    return context


class ServingCertificate:
    """A TLS server context and the certificate that it presents.

    Attributes:
        context: Give it to the server; it stays the same object.
        chain: The presented certificates as PEM; empty before the first `use`.
        swaps: How often a pair was set.
        expires: UNIX seconds at which the certificate expires; 0 if there is none.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        """Create a context without a certificate.

        Args:
            clock: Tells the time, to detect an expired certificate.
        """
        self.context = _server_context()
        self.context.sni_callback = self._greet
        self.chain = b""
        self.swaps = 0
        self.expires = 0.0
        self._clock = clock or SystemClock()
        self._key = b""
        self._latest = self.context
        self._renew: Callable[[], object] | None = None

    def on_stale(self, renew: Callable[[], object]) -> None:
        """Register a function to be called by each handshake that would present an expired certificate.

        It is called in the event loop, with the client waiting: it must be quick, and `use` another pair.
        """
        self._renew = renew

    def _greet(self, connection: ssl.SSLObject, name: str, context: ssl.SSLContext) -> None:
        """Begin a handshake with the current pair.

        OpenSSL copied the pair when it accepted the connection, which may be long ago.
        """
        del name, context
        if self._renew is not None and self._clock.wall() >= self.expires:
            try:
                self._renew()
            except Exception:
                logger.exception("renewing a certificate that has ended")
        connection.context = self._latest

    def use(self, chain: bytes, key: bytes) -> bool:
        """Present another pair from the next handshake on.

        Args:
            chain: Certificates as PEM, leaf first.
            key: The leaf's key as PEM.

        Returns:
            False when this pair is presented already.

        Raises:
            ValueError: The pair is unreadable or does not match; the previous one stays.
        """
        if chain == self.chain and key == self._key:
            return False
        for what, text, mark in (("certificate", chain, _CERTIFICATE), ("key", key, _KEY)):
            if mark not in text:
                missing = f"there is no {mark.decode()!r} in the {what}"
                raise ValueError(f"certificate and key cannot be served: {missing}")
        trial = _server_context()
        try:
            load_pair(trial, chain, key)
        except ssl.SSLError as error:
            raise ValueError(
                f"certificate and key cannot be served: {error.reason or error}"
            ) from error
        load_pair(self.context, chain, key)
        self.chain, self._key, self._latest = chain, key, trial
        self.expires = end_of(chain)
        self.swaps += 1
        return True


class FileReloader:
    """Serves a pair of files that another tool renews (cert-manager, `--tls-cert-file`).

    Files are read every few seconds and compared: kubelet swaps whole folders under a mounted Secret,
    which defeats watching the files themselves. Two replicas need no leader for it.

    Attributes:
        reads: How often the files were read.
        failures: How often that failed, or gave no usable pair.
    """

    def __init__(
        self,
        serving: ServingCertificate,
        certificate: Path,
        key: Path,
        *,
        poll_seconds: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        """Read the files for the first time and serve them.

        Raises:
            ValueError: When there is no usable pair to begin with.
        """
        self.reads = 0
        self.failures = 0
        self._serving = serving
        self._certificate = certificate
        self._key = key
        self._poll_seconds = poll_seconds
        self._clock = clock or SystemClock()
        self._problem = ""
        self._use(self._content())
        serving.on_stale(self.look)

    @property
    def problem(self) -> str | None:
        """Why the served certificate is not the one in the files, or None if it is."""
        return self._problem or None

    def _content(self) -> tuple[bytes, bytes]:
        self.reads += 1
        try:
            return self._certificate.read_bytes(), self._key.read_bytes()
        except OSError as error:
            raise ValueError(f"cannot read {error.filename}: {error.strerror}") from error

    def _use(self, pair: tuple[bytes, bytes]) -> bool:
        try:
            return self._serving.use(*pair)
        except ValueError as error:
            raise ValueError(f"{self._certificate} and {self._key}: {error}") from error

    def look(self) -> bool:
        """Read the files once; True if another pair is served now.

        While they are incomplete or missing the last valid pair stays in use. This is logged once.
        """
        try:
            swapped = self._use(self._content())
        except ValueError as error:
            self._keep(error)
            return False
        self._note(swapped)
        return swapped

    async def run(self) -> None:
        """Read the files every few seconds until cancelled.

        Only reading happens in a thread, which a slow volume may hold up: the live context must not
        change while the event loop begins a handshake with it.
        """
        while True:
            await self._clock.sleep(self._poll_seconds)
            try:
                self._note(self._use(await asyncio.to_thread(self._content)))
            except Exception as error:  # what is served stays, whatever is wrong with the files
                self._keep(error)

    def _keep(self, error: Exception) -> None:
        self.failures += 1
        is_expected = isinstance(error, ValueError)
        problem = str(error) if is_expected else f"{type(error).__name__}: {error}"
        if problem != self._problem:
            self._problem = problem
            exc_info = None if is_expected else error
            logger.warning("keeping the certificate as it was: %s", problem, exc_info=exc_info)

    def _note(self, swapped: bool) -> None:
        self._problem = ""
        if swapped:
            logger.info("serving the certificate of %s as it is now", self._certificate)
