"""Would a client that trusts a bundle accept what a server presents?

The check is a whole path validation by the cryptography library (signatures, key identifiers, validity,
usage, name), stricter than what Go and OpenSSL ask for, at a moment that is an argument.
"""

from datetime import UTC, datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.x509 import verification

__all__ = ["certificates_in", "problem_with"]

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
        except ValueError:
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
    # An anchor that has run out must not stand in the way of the others.
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
