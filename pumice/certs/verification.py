"""Would a client that trusts a bundle accept what a server presents?

Two judges. For certificates of our own, a whole path validation by the cryptography library (signatures,
key identifiers, validity, usage, name), stricter than what Go and OpenSSL ask for, at a moment that is an
argument. For certificates made by other tools, possibly as loosely as Go allows, a handshake
in memory with OpenSSL.
"""

import ssl
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import verification

FLAWS = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What the cryptography library raises about a certificate or key that is none, or a strange one."""

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"


def certificates_in(text: bytes) -> list[x509.Certificate]:
    """All readable certificates in PEM text, in order; whatever is unreadable is left out."""
    found = []
    for part in text.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if not end:
            continue
        try:
            found.append(x509.load_pem_x509_certificate(_BEGIN + body + _END + b"\n"))
        except FLAWS:
            continue
    return found


def problem_with(chain: bytes, trust: bytes, host: str, moment: float) -> str | None:
    """Say why a client would refuse a server, or None when it would not.

    Args:
        chain: What the server presents, as PEM: the leaf, then intermediates.
        trust: What the client trusts, as PEM (a webhook's `caBundle`).
        host: DNS name or IP address that the client calls.
        moment: UNIX seconds at which it calls.
    """
    presented = certificates_in(chain)
    if not presented:
        return "no certificate is served"
    # An expired anchor must not prevent the use of the others.
    anchors = [
        each
        for each in certificates_in(trust)
        if each.not_valid_before_utc.timestamp() <= moment <= each.not_valid_after_utc.timestamp()
    ]
    if not anchors:
        return "the bundle holds no CA that is valid now"
    subject: x509.DNSName | x509.IPAddress
    try:
        subject = x509.IPAddress(ip_address(host))
    except ValueError:
        subject = x509.DNSName(host)
    verifier = (
        verification.PolicyBuilder()
        .store(verification.Store(anchors))
        .time(datetime.fromtimestamp(moment, UTC).replace(tzinfo=None))
        .build_server_verifier(subject)
    )
    leaf, *intermediates = presented
    try:
        verifier.verify(leaf, intermediates)
    except verification.VerificationError as error:
        return str(error)
    return None


def refusal(server: ssl.SSLContext, trust: bytes, host: str) -> str | None:
    """Say why a client would break off a handshake now, or None when it would not.

    Like the API server's, the client takes whatever is in its bundle for an anchor, also an
    intermediate CA or the certificate itself.

    Args:
        server: What is served with.
        trust: What the client trusts, as PEM (a webhook's `caBundle`).
        host: DNS name or IP address that the client calls.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.verify_flags = ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    anchors = b"".join(
        each.public_bytes(serialization.Encoding.PEM) for each in certificates_in(trust)
    )
    if not anchors:
        return "the bundle holds no certificate"
    client.load_verify_locations(cadata=anchors.decode())
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        calling = client.wrap_bio(down, up, server_hostname=host)
        answering = server.wrap_bio(up, down, server_side=True)
        for side in (calling, answering, calling):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (ssl.SSLError, ValueError) as error:
        return f"no handshake is possible: {error}"
    return None
