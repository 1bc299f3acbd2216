"""Authorities in the Secret: the CA that signs, the CA that will sign next, and CAs that are still trusted.

People and tools edit, truncate and restore Secrets, so reading never fails. Readable parts are used. Other parts are
reported, and `rotation` creates them again.

| key | content |
|---|---|
| `ca.crt`, `ca.key` | the CA that signs leaves now |
| `next.crt`, `next.key` | the CA that signs after it; trusted already |
| `previous.crt` | CAs that signed before, trusted until they expire |
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pumice.certs.authority import Authority, is_authority, not_after, not_before, pem, same
from pumice.certs.verification import FLAWS, certificates_in, problem_with

CURRENT, NEXT = "ca", "next"
KEYS = ("ca.crt", "ca.key", "next.crt", "next.key", "previous.crt")

KEEP_PREVIOUS = 4
"""Maximum number of previous CAs in the bundle. One is usual; more come from changed settings."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Authorities by role.

    Attributes:
        current: Signs leaves.
        next: Signs after the current one; None only until it is created.
        previous: No longer sign, but leaves that they signed may still be served; the one that
            expires last comes first.
    """

    current: Authority
    next: Authority | None = None
    previous: tuple[x509.Certificate, ...] = ()

    @property
    def trusted(self) -> list[x509.Certificate]:
        """All CAs that clients must trust, current first."""
        following = [self.next.certificate] if self.next else []
        return [self.current.certificate, *following, *self.previous]

    @property
    def trust(self) -> bytes:
        """The trust bundle as PEM: what `caBundle` must be, byte for byte."""
        return b"".join(pem(each) for each in self.trusted)

    def trusting(self, *certificates: x509.Certificate) -> "Bundle":
        """This bundle with further previous CAs; those that it already has are ignored."""
        more = list(self.previous)
        for each in certificates:
            if not any(same(each, known) for known in (*self.trusted, *more)):
                more.append(each)
        more.sort(key=not_after, reverse=True)
        return Bundle(self.current, self.next, tuple(more[:KEEP_PREVIOUS]))

    def to_data(self) -> dict[str, str]:
        """The Secret's `data` with all keys, so that writing it removes old values."""
        following = self.next
        parts = {
            "ca.crt": self.current.certificate_pem,
            "ca.key": self.current.key_pem,
            "next.crt": following.certificate_pem if following else b"",
            "next.key": following.key_pem if following else b"",
            "previous.crt": b"".join(pem(each) for each in self.previous),
        }
        return {key: base64.b64encode(value).decode() for key, value in parts.items()}


@dataclass(frozen=True, slots=True)
class BundleReading:
    """The result of reading a Secret.

    Attributes:
        bundle: The authorities, or None when none can sign.
        trusted: CAs without a usable key, for a new bundle to go on trusting.
        problems: Problems by key; none for a valid Secret and for an empty one.
    """

    bundle: Bundle | None = None
    trusted: tuple[x509.Certificate, ...] = ()
    problems: tuple[str, ...] = ()


def read(data: Mapping[str, Any] | None) -> BundleReading:
    """Read a Secret's `data`; never raises."""
    problems: list[str] = []
    parts = {key: _decoded(key, data[key], problems) for key in KEYS if data and key in data}
    authorities: list[Authority | None] = []
    trusted: list[x509.Certificate] = []
    if not any(parts.get(key) for key in KEYS) and not problems:
        return BundleReading()
    for role in (CURRENT, NEXT):
        certificate = _certificate(role, parts, problems)
        key = _key(role, parts, problems) if certificate else None
        authority = Authority(certificate, key) if certificate and key else None
        if authority and (flaw := _flaw(role, authority)):
            problems.append(flaw)
            authority = None
        authorities.append(authority)
        if certificate and authority is None:
            trusted.append(certificate)  # cannot sign any more, but what it signed is served
    past = [each for each in certificates_in(parts.get("previous.crt", b"")) if is_authority(each)]
    current, following = authorities
    if current is None:
        current, following = following, None  # the next CA is trusted already; let it sign now
    trusted += past
    if current is None:
        return BundleReading(None, tuple(trusted), tuple(problems))
    bundle = Bundle(current, following).trusting(*trusted)
    return BundleReading(bundle, bundle.previous, tuple(problems))


def _flaw(role: str, authority: Authority) -> str | None:
    """Why clients would refuse certificates of an authority; found out by signing one."""
    start, host = not_before(authority.certificate), "trial.invalid"
    try:
        if authority.certificate.public_key() != authority.key.public_key():
            return f"{role}.key does not belong to {role}.crt"
        leaf = authority.issue(authority.key, [host], [], start, authority.end)
    except FLAWS as error:
        return f"{role}.crt cannot sign: {error}"
    problem = problem_with(leaf.certificate_pem, authority.certificate_pem, host, start)
    return f"what {role}.crt signs is refused: {problem}" if problem else None


def _decoded(key: str, value: Any, problems: list[str]) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        problems.append(f"{key} is no base64")
        return b""


def _certificate(
    role: str, parts: Mapping[str, bytes], problems: list[str]
) -> x509.Certificate | None:
    found = certificates_in(parts.get(f"{role}.crt", b""))
    if len(found) != 1 or not is_authority(found[0]):
        problems.append(f"{role}.crt is not one CA certificate")
        return None
    return found[0]


def _key(
    role: str, parts: Mapping[str, bytes], problems: list[str]
) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = load_pem_private_key(parts.get(f"{role}.key", b""), password=None)
    except FLAWS:
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        problems.append(f"{role}.key is no EC key")
        return None
    return key
