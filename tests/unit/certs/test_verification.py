"""The verdict on a chain is the client's: right name, right CA, right moment."""

from collections.abc import Callable

import pytest

from pumice.certs.authority import Leaf, generate_key
from pumice.certs.verification import certificates_in, problem_with
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
