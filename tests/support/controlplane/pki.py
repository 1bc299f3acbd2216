"""Certificates and keys of one control plane: a CA, the server's certificate, users' certificates.

The CA signs the API server's serving certificate and every client certificate, so that a kubeconfig
trusts the server and a test can be any user of any groups at any time.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = datetime.timedelta(days=2)
SKEW = datetime.timedelta(minutes=5)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


class Authority:
    """A certificate authority that lives as long as one control plane.

    Attributes:
        certificate: Its own certificate, PEM.
    """

    def __init__(self) -> None:
        self._key = new_key()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pumice-tests")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self.certificate = _pem(
            self._signed(self._name, self._key).add_extension(constraints, critical=True),
            self._key,
        )

    def server(self, hosts: Sequence[str]) -> tuple[bytes, bytes]:
        """Certificate and key, PEM, for a server under `hosts` (names or addresses)."""
        key = new_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        draft = self._signed(subject, key)
        draft = draft.add_extension(names, critical=False).add_extension(usage, critical=False)
        return _pem(draft, self._key), private_pem(key)

    def client(self, user: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
        """Certificate and key, PEM, that kube-apiserver takes for `user` in `groups`."""
        key = new_key()
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        draft = self._signed(subject, key).add_extension(usage, critical=False)
        return _pem(draft, self._key), private_pem(key)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - SKEW)
            .not_valid_after(now + LIFE)
        )


def _pem(draft: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey) -> bytes:
    return draft.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
