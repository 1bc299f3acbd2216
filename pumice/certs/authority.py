"""Certificate authorities and the leaf certificates that they sign. Pure: times and keys are arguments.

Elliptic curve P-256 throughout: a new TLS connection costs half a millisecond of CPU against 0.8 with
RSA. Serial numbers come from the cryptography library's own source of randomness.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pumice.certs.verification import FLAWS

ORGANIZATION = "Pumice"
"""Subject organization by which our own authorities are known in a bundle."""

END_OF_TIME = 253_402_300_799.0
"""The last second of the year 9999, the latest end of a certificate."""

Key = ec.EllipticCurvePrivateKey
KeyFactory = Callable[[], Key]


def generate_key() -> Key:
    """Make a new P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def pem(certificate: x509.Certificate) -> bytes:
    """A certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def not_after(certificate: x509.Certificate) -> float:
    """The end of a certificate, in UNIX seconds."""
    return certificate.not_valid_after_utc.timestamp()


def not_before(certificate: x509.Certificate) -> float:
    """The start of a certificate, in UNIX seconds."""
    return certificate.not_valid_before_utc.timestamp()


def same(one: x509.Certificate, other: x509.Certificate) -> bool:
    """True if two certificates are equal, byte for byte."""
    return one.fingerprint(hashes.SHA256()) == other.fingerprint(hashes.SHA256())


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether a certificate may sign others."""
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except (x509.ExtensionNotFound, *FLAWS):
        return False
    return constraints.value.ca


@dataclass(frozen=True, slots=True)
class _Pair:
    """A certificate with its key.

    Attributes:
        certificate: The certificate.
        key: Its key.
    """

    certificate: x509.Certificate
    key: Key

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as PEM."""
        return pem(self.certificate)

    @property
    def key_pem(self) -> bytes:
        """The key as PKCS 8."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


@dataclass(frozen=True, slots=True)
class Leaf(_Pair):
    """The certificate that a server presents."""


@dataclass(frozen=True, slots=True)
class Authority(_Pair):
    """A CA that can sign; its certificate is what clients trust."""

    @classmethod
    def create(cls, key: Key, start: float, end: float) -> "Authority":
        """Make a self-signed CA.

        Args:
            key: Its key.
            start: UNIX seconds from which it is valid.
            end: UNIX seconds until which it is valid, if there is such a moment in a certificate.
        """
        public = key.public_key()
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        # Siblings differ in name as well as in key, so that a client finds the right one at once.
        common = f"pumice admission CA {identifier.digest.hex()[:16]}"
        name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
                x509.NameAttribute(NameOID.COMMON_NAME, common),
            ]
        )
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.fromtimestamp(int(start), UTC))
            .not_valid_after(datetime.fromtimestamp(int(min(end, END_OF_TIME)), UTC))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(identifier, critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
                critical=False,
            )
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    def issue(
        self,
        key: Key,
        names: Sequence[str],
        addresses: Sequence[str],
        start: float,
        end: float,
    ) -> Leaf:
        """Sign a certificate for a server.

        Args:
            key: The server's key.
            names: DNS names of the server; the subject has the first one.
            addresses: IP addresses of the server.
            start: UNIX seconds from which it is valid, but never before the CA.
            end: UNIX seconds until which it is valid, but never after the CA.
        """
        begun = int(max(start, not_before(self.certificate)))
        ended = int(min(end, not_after(self.certificate)))
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives += [x509.IPAddress(ip_address(address)) for address in addresses]
        identifier = self._identifier()
        # A common name holds 64 characters; clients look at the alternative names only.
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
        public = key.public_key()
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.certificate.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.fromtimestamp(begun, UTC))
            .not_valid_after(datetime.fromtimestamp(ended, UTC))
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
                critical=False,
            )
        )
        return Leaf(builder.sign(self.key, hashes.SHA256()), key)

    def _identifier(self) -> x509.SubjectKeyIdentifier:
        """How leaves name the key that signed them; a CA made by another tool may lack it."""
        try:
            found = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        except x509.ExtensionNotFound:
            return x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        return found.value

    def valid_at(self, moment: float) -> bool:
        """Whether it may sign at a moment, in UNIX seconds."""
        return not_before(self.certificate) <= moment < self.end

    @property
    def end(self) -> float:
        """End of validity in UNIX seconds."""
        return not_after(self.certificate)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
