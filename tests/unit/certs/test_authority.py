"""What our certificates say."""

import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from pumice.certs.authority import generate_key, is_authority, not_after, not_before, same
from tests.unit.certs.keys import NOW, authority

HOUR = 3600.0


def test_a_ca_may_sign_certificates_and_nothing_else() -> None:
    certificate = authority().certificate
    assert is_authority(certificate)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.key_cert_sign, usage.value.digital_signature) == (True, False)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.value.path_length, constraints.critical) == (0, True)
    assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)
    assert (not_before(certificate), not_after(certificate)) == (NOW - HOUR, NOW + 365 * 24 * HOUR)


def test_cas_have_names_of_their_own() -> None:
    assert authority().certificate.subject != authority().certificate.subject


def test_a_leaf_is_for_one_server() -> None:
    ca = authority()
    leaf = ca.issue(
        generate_key(), ["a", "a.b.svc"], ["10.0.0.1", "fd00::1"], NOW, NOW + HOUR
    ).certificate
    leaf.verify_directly_issued_by(ca.certificate)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a", "a.b.svc"]
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("10.0.0.1"),
        ipaddress.ip_address("fd00::1"),
    ]
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not is_authority(leaf)
    own = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issuer = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert issuer.key_identifier == own.digest


def test_a_leaf_never_reaches_beyond_its_ca() -> None:
    ca = authority(NOW, NOW + HOUR)
    leaf = ca.issue(generate_key(), ["a"], [], NOW - HOUR, NOW + 9 * HOUR).certificate
    assert (not_before(leaf), not_after(leaf)) == (NOW, NOW + HOUR)


def test_long_names_fit() -> None:
    name = f"{'a' * 60}.{'b' * 60}.svc"
    leaf = authority().issue(generate_key(), [name], [], NOW, NOW + HOUR).certificate
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [name]


def test_serial_numbers_differ() -> None:
    ca, key = authority(), generate_key()
    leaves = [ca.issue(key, ["a"], [], NOW, NOW + HOUR).certificate for _ in range(3)]
    assert len({leaf.serial_number for leaf in leaves}) == 3
    assert not same(leaves[0], leaves[1])
