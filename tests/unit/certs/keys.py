"""Settings, moments and a key factory for tests of certificates."""

from pumice.certs.authority import Authority, Key, generate_key
from pumice.certs.rotation import CertSettings

NOW = 1_800_000_000.0
SETTINGS = CertSettings("webhook", "system", extra_addresses=("127.0.0.1",))


def authority(start: float = NOW - 3600, end: float = NOW + 365 * 86_400) -> Authority:
    return Authority.create(generate_key(), start, end)


class CountingKeys:
    """A key factory that counts what it made."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> Key:
        self.made += 1
        return generate_key()
