"""A Secret is read as far as it can be, whatever happened to it."""

import base64
from collections.abc import Callable

import pytest

from pumice.certs.authority import pem
from pumice.certs.bundle import KEEP_PREVIOUS, Bundle, read
from tests.unit.certs.keys import NOW, authority

CURRENT, NEXT, PAST = authority(), authority(), authority()
BUNDLE = Bundle(CURRENT, NEXT, (PAST.certificate,))
Data = dict[str, str]


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_what_is_written_is_read() -> None:
    reading = read(BUNDLE.to_data())
    assert reading.problems == ()
    assert reading.bundle is not None
    assert reading.bundle.trust == BUNDLE.trust
    assert reading.bundle.to_data() == BUNDLE.to_data()


def test_the_trust_bundle_holds_all_cas_with_the_signer_first() -> None:
    expected = b"".join(pem(each.certificate) for each in (CURRENT, NEXT, PAST))
    assert BUNDLE.trust == expected


@pytest.mark.parametrize("data", [None, {}, {"unrelated": encoded(b"x")}])
def test_an_empty_secret_is_no_fault(data: Data | None) -> None:
    reading = read(data)
    assert (reading.bundle, reading.trusted, reading.problems) == (None, (), ())


def half(data: Data, key: str) -> Data:
    content = base64.b64decode(data[key])
    return {**data, key: encoded(content[: len(content) // 2])}


# What happened to the Secret; who signs afterwards; who is trusted still; what is reported.
FAULTS: dict[str, tuple[Callable[[Data], Data], object, list[object], list[str]]] = {
    "the next CA is gone": (
        lambda data: {key: text for key, text in data.items() if not key.startswith("next")},
        CURRENT,
        [CURRENT, PAST],
        ["next.crt is not one CA certificate"],
    ),
    "the signing certificate is gone": (
        lambda data: {key: text for key, text in data.items() if key != "ca.crt"},
        NEXT,
        [NEXT, PAST],
        ["ca.crt is not one CA certificate"],
    ),
    "the signing key is gone": (
        lambda data: {**data, "ca.key": ""},
        NEXT,
        [NEXT, CURRENT, PAST],
        ["ca.key is no EC key"],
    ),
    "the signing key is half-written": (
        lambda data: half(data, "ca.key"),
        NEXT,
        [NEXT, CURRENT, PAST],
        ["ca.key is no EC key"],
    ),
    "the signing certificate is half-written": (
        lambda data: half(data, "ca.crt"),
        NEXT,
        [NEXT, PAST],
        ["ca.crt is not one CA certificate"],
    ),
    "a key belongs to another certificate": (
        lambda data: {**data, "ca.key": data["next.key"]},
        NEXT,
        [NEXT, CURRENT, PAST],
        ["ca.key does not belong to ca.crt"],
    ),
    "the value is no base64": (
        lambda data: {**data, "next.crt": "%%%"},
        CURRENT,
        [CURRENT, PAST],
        ["next.crt is no base64", "next.crt is not one CA certificate"],
    ),
    "both keys are gone": (
        lambda data: {**data, "ca.key": "", "next.key": ""},
        None,
        [CURRENT, NEXT, PAST],
        ["ca.key is no EC key", "next.key is no EC key"],
    ),
    "the past is spoilt": (
        lambda data: {**data, "previous.crt": encoded(b"\x00\xff")},
        CURRENT,
        [CURRENT, NEXT],
        [],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_readable_is_kept(fault: str) -> None:
    spoil, signer, trusted, problems = FAULTS[fault]
    reading = read(spoil(BUNDLE.to_data()))
    assert list(reading.problems) == problems
    expected = [each.certificate for each in (CURRENT, NEXT, PAST) if each in trusted]
    if signer is None:
        assert reading.bundle is None
        assert list(reading.trusted) == expected
    else:
        assert reading.bundle is not None
        assert reading.bundle.current.certificate == signer.certificate  # type: ignore[attr-defined]
        assert sorted(reading.bundle.trusted, key=hash) == sorted(expected, key=hash)


def test_a_leaf_is_no_ca() -> None:
    leaf = CURRENT.issue(NEXT.key, ["a"], [], 1_800_000_000, 1_800_000_100)
    data = {"ca.crt": encoded(leaf.certificate_pem), "ca.key": encoded(leaf.key_pem)}
    assert read(data).bundle is None


def test_trust_in_the_past_is_bounded_and_without_repetition() -> None:
    known = Bundle(CURRENT, NEXT).trusting(CURRENT.certificate, PAST.certificate, PAST.certificate)
    assert known.previous == (PAST.certificate,)
    crowd = [authority(end=NOW + day * 86_400).certificate for day in range(400, 409)]
    kept = known.trusting(*crowd).previous
    assert list(kept) == crowd[: -KEEP_PREVIOUS - 1 : -1], "those that expire last are kept"
