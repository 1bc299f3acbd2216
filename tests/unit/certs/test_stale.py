"""A process that slept through the end of its certificate does not present it to anybody."""

import ssl
import time

import pytest

from pumice.certs.authority import Authority, generate_key
from pumice.certs.reload import ServingCertificate
from pumice.certs.verification import certificates_in
from tests.kit.clocks import ManualClock
from tests.unit.certs.keys import authority

HOST = "webhook.system.svc"
NOW = time.time()
CA = authority(NOW - 3600, NOW + 86_400)


class Connection:
    """A connection that is accepted already, of a client that does not check anything."""

    def __init__(self, serving: ServingCertificate, host: str | None = HOST) -> None:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._calling = client.wrap_bio(down, up, server_hostname=host)
        self._answering = serving.context.wrap_bio(up, down, server_side=True)

    def presented(self) -> bytes:
        for side in (self._calling, self._answering, self._calling):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        der = self._calling.getpeercert(binary_form=True)
        assert der is not None
        return ssl.DER_cert_to_PEM_cert(der).encode()


def presented(serving: ServingCertificate, host: str | None = HOST) -> bytes:
    return Connection(serving, host).presented()


class Renewing:
    """Serves leaves of a hundred seconds, and renews when it is told to."""

    def __init__(self, ca: Authority = CA) -> None:
        self.clock = ManualClock(NOW)
        self.serving = ServingCertificate(self.clock)
        self.renewals = 0
        self._ca = ca
        self.issue()
        self.serving.on_stale(self.renew)

    def issue(self) -> None:
        moment = self.clock.wall()
        leaf = self._ca.issue(generate_key(), [HOST], [], moment - 10, moment + 100)
        self.serving.use(leaf.certificate_pem, leaf.key_pem)

    def renew(self) -> None:
        self.renewals += 1
        self.issue()


@pytest.mark.parametrize("host", [HOST, None], ids=["by name", "by address"])
def test_the_first_handshake_after_the_end_sees_a_new_certificate(host: str | None) -> None:
    renewing = Renewing()
    first = renewing.serving.chain
    assert certificates_in(presented(renewing.serving, host)) == certificates_in(first)
    assert renewing.renewals == 0
    renewing.clock.now += 101
    seen = certificates_in(presented(renewing.serving, host))
    assert renewing.renewals == 1
    assert seen == certificates_in(renewing.serving.chain) != certificates_in(first)
    assert seen == certificates_in(presented(renewing.serving, host))
    assert renewing.renewals == 1, "what was renewed is good for a while"


def test_a_renewal_that_fails_leaves_the_handshake_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    renewing = Renewing()

    def fail() -> None:
        raise RuntimeError("no key today")

    renewing.serving.on_stale(fail)
    renewing.clock.now += 101
    assert certificates_in(presented(renewing.serving)) == certificates_in(renewing.serving.chain)
    assert "no key today" in caplog.text


def test_a_renewal_that_has_nothing_better_leaves_what_there_is() -> None:
    renewing = Renewing()
    renewing.serving.on_stale(lambda: None)
    renewing.clock.now += 101
    assert certificates_in(presented(renewing.serving)) == certificates_in(renewing.serving.chain)


def test_connections_that_were_accepted_before_see_the_new_certificate_too() -> None:
    renewing = Renewing()
    waiting = [Connection(renewing.serving) for _ in range(3)]
    renewing.clock.now += 101
    new = [certificates_in(each.presented()) for each in waiting]
    assert renewing.renewals == 1
    assert new == [certificates_in(renewing.serving.chain)] * 3
