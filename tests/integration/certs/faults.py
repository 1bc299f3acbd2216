"""What people and tools do to the Secret: the table of faults, on the embedded and on the real API server."""

import base64
from collections.abc import Callable

from pumice.certs.authority import Authority
from pumice.certs.bundle import Bundle
from tests.unit.certs.keys import authority

Data = dict[str, str]


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def live() -> Authority:
    """An authority of another cluster, valid now and at the moment at which tests' clocks begin."""
    return authority(1_700_000_000, 2_000_000_000)


def _expired() -> Data:
    past = authority(1_000_000_000, 1_000_001_000), authority(1_000_000_000, 1_000_002_000)
    return Bundle(*past).to_data()


def _cut(text: str, length: int) -> str:
    return encoded(base64.b64decode(text)[:length])


FAULTS: dict[str, Callable[[Data], Data]] = {
    "empty": lambda _: {},
    "rubbish": lambda data: dict.fromkeys(data, "AAAA"),
    "half-written": lambda data: {"ca.crt": data["ca.crt"]},
    "only the signer is left": lambda data: {
        key: data[key] for key in ("ca.crt", "ca.key")
    },
    "only the keys": lambda data: {key: data[key] for key in ("ca.key", "next.key")},
    "the signing certificate is gone": lambda data: {**data, "ca.crt": ""},
    "cut in half": lambda data: {key: _cut(text, 200) for key, text in data.items()},
    "the signing key is cut in half": lambda data: {
        **data, "ca.key": _cut(data["ca.key"], 80),
    },
    "the wrong key": lambda data: {**data, "ca.key": data["next.key"]},
    "pairs swapped": lambda data: {
        **data, "ca.key": data["next.key"], "next.key": data["ca.key"],
    },
    "expired": lambda _: _expired(),
    "of another cluster": lambda _: Bundle(live(), live()).to_data(),
}  # fmt: skip
"""What becomes of the Secret's data."""
