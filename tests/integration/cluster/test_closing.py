"""Closing leaves no connection behind, also where the other side of a TLS connection does not close its own."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path

import uvloop
from aiohttp import web

from pumice.api.kinds import POD
from pumice.cluster.client import Client
from pumice.cluster.connection import Connection, StaticCredentials
from pumice.cluster.event_loop import EventLoop
from pumice.cluster.transport import Sockets
from pumice.serving.connections import HttpLimits
from pumice.serving.http_server import HttpServer
from tests.integration.webhook.serving import Pair

EVENT = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n'
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def serving(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@contextmanager
def deaf_server(pair: Pair) -> Iterator[int]:
    """A server that sends one event of a watch and then does not read or close its connection."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)

        def serve() -> None:
            accepted, _ = listening.accept()
            with serving(pair).wrap_socket(accepted, server_side=True) as connection:
                connection.recv(65536)
                connection.sendall(HEAD + b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
                done.wait(60)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            done.set()
            thread.join()


async def test_a_client_waits_for_no_goodbye_of_the_server(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    made: list[socket.socket] = []
    with deaf_server(pair) as port:
        server = f"https://127.0.0.1:{port}"
        client = Client(Connection(server, StaticCredentials(), tls=pair.trusting()))
        async with aclosing(client.collection(POD).watch("0")) as events:
            assert (await anext(events))[0] == "BOOKMARK"
            made += client._transport._sockets._open()
        await client.close()
        assert [each.fileno() for each in made] == [-1]


def test_nor_does_it_in_the_event_loop_of_the_components(tmp_path: Path) -> None:
    uvloop.run(test_a_client_waits_for_no_goodbye_of_the_server(tmp_path), loop_factory=EventLoop)


async def test_a_server_waits_for_no_goodbye_of_its_clients(tmp_path: Path) -> None:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(text="ok")

    pair = Pair(tmp_path)
    server = HttpServer(answer, HttpLimits())
    await server.open("127.0.0.1", 0, serving(pair))

    def ask() -> ssl.SSLSocket:
        connection = socket.create_connection(("127.0.0.1", server.port))
        client = pair.trusting().wrap_socket(connection, server_hostname="127.0.0.1")
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(1024).startswith(b"HTTP/1.1 200")
        return client

    with await asyncio.to_thread(ask):
        assert server.connections == 1
        await server.close(0.0)
        assert server.connections == 0


async def test_a_handshake_that_ends_after_its_server_opens_no_connection(tmp_path: Path) -> None:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(text="ok")

    pair = Pair(tmp_path)
    server = HttpServer(answer, HttpLimits())
    await server.open("127.0.0.1", 0, serving(pair))
    connection = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", server.port))
    await asyncio.sleep(0.05)  # accepted
    await server.close(0.0)

    def ask() -> bytes:
        context = pair.trusting()
        with (
            suppress(OSError),
            context.wrap_socket(connection, server_hostname="127.0.0.1") as client,
        ):
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            return client.recv(1024)
        return b""

    assert await asyncio.to_thread(ask) == b""
    assert server.connections == 0


async def test_sockets_that_were_never_connected_are_no_obstacle() -> None:
    sockets = Sockets()
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    sockets.make(address).close()
    await sockets.close()
