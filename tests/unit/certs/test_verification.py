"""The verdict on a chain is the client's: right name, right CA, right moment."""

import time
from collections.abc import Callable

import pytest

from pumice.certs.authority import Authority, Leaf, generate_key
from pumice.certs.reload import ServingCertificate
from pumice.certs.verification import certificates_in, problem_with, refusal
from tests.unit.certs.keys import NOW, authority

DAY = 86_400.0
OURS, OTHER = authority(), authority()
EXPIRED = authority(NOW - 9 * DAY, NOW - 8 * DAY)


def leaf(start: float = NOW - 3600, end: float = NOW + DAY) -> Leaf:
    return OURS.issue(generate_key(), ["a.b.svc"], ["127.0.0.1"], start, end)


@pytest.mark.parametrize("host", ["a.b.svc", "127.0.0.1"])
def test_the_right_chain_is_accepted(host: str) -> None:
    trust = EXPIRED.certificate_pem + OTHER.certificate_pem + OURS.certificate_pem
    assert problem_with(leaf().certificate_pem, trust, host, NOW) is None


@pytest.mark.parametrize(
    ("chain", "trust", "host", "moment", "expected"),
    [
        (leaf, OTHER.certificate_pem, "a.b.svc", NOW, "validation failed"),
        (leaf, OURS.certificate_pem, "c.b.svc", NOW, "no matching subjectAltName"),
        (leaf, OURS.certificate_pem, "127.0.0.2", NOW, "no matching subjectAltName"),
        (leaf, OURS.certificate_pem, "a.b.svc", NOW + 2 * DAY, "not valid at validation time"),
        (leaf, OURS.certificate_pem, "a.b.svc", NOW - 2 * DAY, "no CA that is valid now"),
        (leaf, OURS.certificate_pem, "a.b.svc", NOW + 400 * DAY, "no CA that is valid now"),
        (leaf, b"", "a.b.svc", NOW, "no CA that is valid now"),
        (leaf, b"rubbish", "a.b.svc", NOW, "no CA that is valid now"),
        (lambda: None, OURS.certificate_pem, "a.b.svc", NOW, "no certificate is served"),
    ],
)
def test_every_other_chain_is_refused_with_the_reason(
    chain: Callable[[], Leaf | None], trust: bytes, host: str, moment: float, expected: str
) -> None:
    made = chain()
    problem = problem_with(made.certificate_pem if made else b"", trust, host, moment)
    assert problem is not None
    assert expected in problem


def test_readable_certificates_are_found_among_rubbish() -> None:
    good, also = OURS.certificate_pem, OTHER.certificate_pem
    broken = good.replace(b"MII", b"!!!", 1)
    assert certificates_in(b"text\n" + good + broken + b"\xff\xfe" + also + good[:80]) == [
        OURS.certificate,
        OTHER.certificate,
    ]


LIVE = authority(time.time() - 3600, time.time() + DAY)


def serving(ca: Authority, seconds: float = DAY) -> ServingCertificate:
    now = time.time()
    made = ca.issue(generate_key(), ["a.b.svc"], ["127.0.0.1"], now - 60, now + seconds)
    found = ServingCertificate()
    found.use(made.certificate_pem, made.key_pem)
    return found


@pytest.mark.parametrize("host", ["a.b.svc", "127.0.0.1"])
def test_a_handshake_with_the_right_server_succeeds(host: str) -> None:
    trust = b"rubbish\n" + OTHER.certificate_pem + LIVE.certificate_pem
    assert refusal(serving(LIVE).context, trust, host) is None


def test_the_certificate_itself_may_be_what_is_trusted() -> None:
    """As kube-apiserver does; cert-manager's self-signed issuer makes such certificates."""
    served = serving(LIVE)
    assert refusal(served.context, served.chain, "a.b.svc") is None


@pytest.mark.parametrize(
    ("server", "trust", "host", "expected"),
    [
        (serving(LIVE), OTHER.certificate_pem, "a.b.svc", "unable to get local issuer"),
        (serving(LIVE), LIVE.certificate_pem, "c.b.svc", "Hostname mismatch"),
        (serving(LIVE), LIVE.certificate_pem, "127.0.0.2", "IP address mismatch"),
        (serving(LIVE, -30), LIVE.certificate_pem, "a.b.svc", "certificate has expired"),
        (serving(LIVE), b"", "a.b.svc", "the bundle holds no certificate"),
        (serving(LIVE), b"rubbish", "a.b.svc", "the bundle holds no certificate"),
        (ServingCertificate(), LIVE.certificate_pem, "a.b.svc", "no handshake is possible"),
        (serving(LIVE), LIVE.certificate_pem, "", "no handshake is possible"),
    ],
)
def test_every_other_handshake_is_broken_off_with_the_reason(
    server: ServingCertificate, trust: bytes, host: str, expected: str
) -> None:
    found = refusal(server.context, trust, host)
    assert found is not None
    assert expected in found
