"""The serving certificate, which can be replaced while connections are served.

`ssl.SSLContext.load_cert_chain` on a live context changes what the next handshake presents and leaves open connections
alone. A pair is first loaded into an unused context: a certificate with the wrong key would leave the live context with
a mixed pair. The last good pair stays when a new one cannot be read.

A process may be stopped for longer than its certificate is valid (SIGSTOP, a suspended machine), and clients may
connect before a timer fires. So each handshake reads the wall clock and renews an expired certificate first.

The end of a certificate is read here, without the library that makes and verifies certificates: the library would be an
eighth of the memory of a process that serves a certificate from files.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.connection import ConfigurationError, contents, load_pair

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_SEQUENCE, _EXPLICIT_VERSION, _UTC_TIME = 0x30, 0xA0, 0x17
_BEFORE_VALIDITY = 3
"""Serial number, algorithm and issuer."""

_LONG_LENGTH = 0x80
_FORMS = {True: "%y%m%d%H%M%SZ", False: "%Y%m%d%H%M%SZ"}


def end_of(chain: bytes) -> float:
    """When the first of some certificates ends, in UNIX seconds.

    Args:
        chain: Certificates as PEM; whatever is unreadable is left out.

    Returns:
        The moment; 0 when there is no readable certificate.

    Source: RFC 5280, section 4.1.
    """
    ends = []
    for part in chain.split(_BEGIN)[1:]:
        body, closed, _ = part.partition(_END)
        if not closed:
            continue
        try:
            text = (_BEGIN + body + _END).decode("ascii")
            ends.append(_not_after(ssl.PEM_cert_to_DER_cert(text)))
        except (ValueError, IndexError):
            continue
    return min(ends, default=0.0)


def _not_after(der: bytes) -> float:
    """The second time in the fourth field, or the fifth where the version is told first."""
    certificate = _content(der, 0, _SEQUENCE)
    fields = _content(der, certificate, _SEQUENCE)
    if der[fields] == _EXPLICIT_VERSION:
        fields = _after(der, fields)
    for _ in range(_BEFORE_VALIDITY):
        fields = _after(der, fields)
    end = _after(der, _content(der, fields, _SEQUENCE))
    start, stop = _span(der, end)
    moment = datetime.strptime(der[start:stop].decode("ascii"), _FORMS[der[end] == _UTC_TIME])
    if der[end] == _UTC_TIME and moment.year >= 2050:  # its two digits count from 1950 on
        moment = moment.replace(year=moment.year - 100)
    return moment.replace(tzinfo=UTC).timestamp()


def _span(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of a value begins and ends."""
    length, start = der[at + 1], at + 2
    if length >= _LONG_LENGTH:
        digits = length - _LONG_LENGTH
        length, start = int.from_bytes(der[start : start + digits], "big"), start + digits
    if start + length > len(der):
        raise ValueError("a value ends behind the end")
    return start, start + length


def _after(der: bytes, at: int) -> int:
    return _span(der, at)[1]


def _content(der: bytes, at: int, tag: int) -> int:
    if der[at] != tag:
        raise ValueError("no certificate")
    return _span(der, at)[0]


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
            return contents(self._certificate), contents(self._key)
        except OSError as error:
            raise ValueError(f"cannot read {error.filename}: {error.strerror}") from error
        except ConfigurationError as error:
            raise ValueError(str(error)) from error

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
