"""When certificates end, read without the library that makes and verifies them.

Who serves a certificate from files needs to know nothing else about it, and the library would be an
eighth of the process's memory.
"""

import ssl
from datetime import UTC, datetime

__all__ = ["end_of"]

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
