"""Whatever somebody writes into the Secret, there is a bundle afterwards, and its leaves are accepted."""

import base64
import warnings
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.certs.authority import END_OF_TIME, Authority, Key, generate_key, pem
from pumice.certs.bundle import KEYS, Bundle, read
from pumice.certs.rotation import DAY, new_leaf, next_step, up_to_date
from pumice.certs.verification import problem_with
from tests.unit.certs.keys import NOW, SETTINGS, authority

SOUND = Bundle(authority(), authority(), (authority().certificate,)).to_data()
Edit = tuple[str, float, int, bool]
EDITS = st.lists(
    st.tuples(
        st.sampled_from(KEYS),
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 255),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


def edited(data: dict[str, str], key: str, place: float, byte: int, inside: bool) -> dict[str, str]:
    """A Secret in which one byte is another: of the text, or of the DER inside the text."""
    content = bytearray(base64.b64decode(data[key]))
    head, dashes, rest = bytes(content).partition(b"-----\n")
    body, foot, tail = rest.partition(b"\n-----")
    if not inside or not foot:
        content[int(place * len(content))] = byte
        return {**data, key: base64.b64encode(content).decode()}
    try:
        der = bytearray(base64.b64decode(body))
    except ValueError:
        return data
    der[int(place * len(der))] = byte
    whole = head + dashes + base64.b64encode(der) + foot + tail
    return {**data, key: base64.b64encode(whole).decode()}


def assert_mended(data: dict[str, str]) -> None:
    reading = read(data)
    bundle, _ = up_to_date(reading.bundle, SETTINGS, NOW, generate_key, reading.trusted)
    assert next_step(bundle, SETTINGS, NOW) is None
    leaf = new_leaf(bundle, SETTINGS, NOW, generate_key)
    assert problem_with(leaf.certificate_pem, bundle.trust, SETTINGS.host, NOW) is None
    again = read(bundle.to_data())
    assert again.problems == ()
    assert again.bundle is not None
    assert again.bundle.trust == bundle.trust


@given(EDITS)
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_repaired(edits: list[Edit]) -> None:
    data = SOUND
    for each in edits:
        data = edited(data, *each)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library has opinions about serial numbers
        assert_mended(data)


@given(st.dictionaries(st.sampled_from(KEYS), st.text() | st.binary().map(base64.b64encode)))
@settings(max_examples=50, deadline=None)
def test_any_values_are_repaired(data: dict[str, str]) -> None:
    assert_mended(data)


Builder = x509.CertificateBuilder
Change = Callable[[Builder], Builder]


def foreign(key: Key, *changes: Change, end: float = NOW + 365 * DAY) -> dict[str, str]:
    """A Secret with a CA that somebody else made."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody else")])
    builder = (
        Builder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.fromtimestamp(NOW - DAY, UTC))
        .not_valid_after(datetime.fromtimestamp(end, UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    for change in changes:
        builder = change(builder)
    certificate = builder.sign(key, hashes.SHA256())
    return written(certificate, key)


def written(certificate: x509.Certificate, key: Key | rsa.RSAPrivateKey) -> dict[str, str]:
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {
        "ca.crt": base64.b64encode(pem(certificate)).decode(),
        "ca.key": base64.b64encode(text).decode(),
    }


def with_usage(builder: Builder) -> Builder:
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "encipher_only", "decipher_only", "digital_signature", "crl_sign"), False,
    )  # fmt: skip
    return builder.add_extension(x509.KeyUsage(key_cert_sign=True, **usage), critical=True)


def with_identifier(builder: Builder) -> Builder:
    key = generate_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return builder.add_extension(identifier, critical=False)


def with_constraints(builder: Builder) -> Builder:
    constraints = x509.NameConstraints([x509.DNSName("example.com")], None)
    return builder.add_extension(constraints, critical=True)


STRANGE: dict[str, Callable[[], dict[str, str]]] = {
    "no key usage and no identifier": lambda: foreign(generate_key()),
    "no identifier": lambda: foreign(generate_key(), with_usage),
    "an identifier of its own": lambda: foreign(generate_key(), with_usage, with_identifier),
    "bound to other names": lambda: foreign(
        generate_key(), with_usage, with_identifier, with_constraints
    ),
    "a curve that is no longer trusted": lambda: foreign(
        ec.generate_private_key(ec.SECP224R1()), with_usage, with_identifier
    ),
    "without an end": lambda: foreign(generate_key(), with_usage, with_identifier, end=END_OF_TIME),
    "ours without an end": lambda: written(
        *vars_of(Authority.create(generate_key(), NOW - DAY, 2 * END_OF_TIME))
    ),
    "of ours that expired": lambda: written(*vars_of(authority(NOW - 20 * DAY, NOW - 10 * DAY))),
    "of ours that is not valid yet": lambda: written(
        *vars_of(authority(NOW + 10 * DAY, NOW + 20 * DAY))
    ),
    "a key of another kind": lambda: written(
        authority().certificate, rsa.generate_private_key(65537, 2048)
    ),
}


def vars_of(made: Authority) -> tuple[x509.Certificate, Key]:
    return made.certificate, made.key


@pytest.mark.parametrize("kind", STRANGE)
def test_a_ca_of_any_kind_is_used_or_replaced(kind: str) -> None:
    assert_mended(STRANGE[kind]())


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("an identifier of its own", True),
        ("without an end", True),
        ("bound to other names", False),
        ("a curve that is no longer trusted", False),
    ],
)
def test_a_ca_of_another_owner_signs_if_clients_accept_it(kind: str, kept: bool) -> None:
    reading = read(STRANGE[kind]())
    assert (reading.bundle is not None) is kept
    if not kept:
        assert "what ca.crt signs is refused" in reading.problems[0]
