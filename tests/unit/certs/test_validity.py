"""When a certificate ends is read alike without the library that makes certificates."""

import warnings
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.certs.authority import generate_key, not_after
from pumice.certs.reload import end_of
from pumice.certs.verification import certificates_in
from tests.unit.certs.keys import NOW, authority

DAY = 86_400.0
CA = authority(0.0, datetime(2200, 1, 1, tzinfo=UTC).timestamp())
LEAF = CA.issue(generate_key(), ["a.svc"], ["127.0.0.1"], NOW - DAY, NOW + DAY).certificate_pem
ROOT = CA.certificate_pem


@pytest.mark.parametrize(
    "end",
    [
        datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2027, 2, 3, 4, 5, 6, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(2199, 6, 1, 12, tzinfo=UTC),
    ],
)
def test_the_end_is_the_certificates_own(end: datetime) -> None:
    moment = end.timestamp()
    made = CA.issue(generate_key(), ["a.svc"], [], moment - 9 * DAY, moment)
    assert end_of(made.certificate_pem) == moment == not_after(made.certificate)


def test_a_chain_ends_with_its_first_certificate_that_does() -> None:
    assert end_of(ROOT + LEAF) == end_of(LEAF + ROOT) == NOW + DAY


@pytest.mark.parametrize("text", [b"", b"rubbish", LEAF[:-30], LEAF.replace(b"MII", b"AAA", 1)])
def test_what_is_unreadable_has_no_end(text: bytes) -> None:
    assert end_of(text) == 0.0


def test_readable_certificates_count_among_rubbish() -> None:
    assert end_of(b"text\n" + LEAF[:80] + b"\xff\n" + ROOT) in (0.0, end_of(ROOT))
    assert end_of(b"text\n" + ROOT + b"\xff\n" + LEAF) == NOW + DAY


@given(st.integers(0, len(LEAF) - 1), st.binary(min_size=1, max_size=3))
def test_nothing_raises_and_what_both_read_ends_alike(at: int, noise: bytes) -> None:
    text = LEAF[:at] + noise + LEAF[at + len(noise) :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library deprecates what the noise made of some fields
        found, read = end_of(text), certificates_in(text)
    if read and found:
        assert found == not_after(read[0])
