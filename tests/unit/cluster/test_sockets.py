"""A connection to a machine that died is found dead within about a minute."""

import socket

from pumice.cluster.client import Client
from pumice.cluster.transport import probing_socket
from tests.unit.cluster.tiny import TinyApi


def test_probes_are_on_and_end_within_about_a_minute() -> None:
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    with probing_socket(address) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        idle, interval, probes = (
            made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names
        )
        assert idle + interval * probes <= 60


async def test_the_client_uses_them(client: Client, api: TinyApi) -> None:
    await client.version()
    connector = client._transport._session.connector
    assert connector is not None
    ((protocol, _),) = next(iter(connector._conns.values()))
    assert protocol.transport is not None
    used = protocol.transport.get_extra_info("socket")
    assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
