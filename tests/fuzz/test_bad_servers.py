"""What a server may not do is noticed: so a run without failures says something."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.fuzz import over_http
from tests.integration.webhook.serving import Pair

REVIEW = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":'
    b'{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}'
)


def http(status: bytes, body: bytes, *headers: bytes) -> bytes:
    """A response, as bytes."""
    lines = b"\r\n".join((b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers))
    return lines + b"\r\n\r\n" + body


@contextmanager
def always(answer: bytes, pair: Pair) -> Iterator[int]:
    """A server that says the same to whatever comes first on a connection, and then nothing; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    kept: list[ssl.SSLSocket] = []

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                plain, _ = listening.accept()
                with suppress(OSError):  # of this connection alone
                    kept.append(context.wrap_socket(plain, server_side=True))
                    threading.Thread(target=talk, args=(kept[-1],), daemon=True).start()

    def talk(connection: ssl.SSLSocket) -> None:
        with suppress(OSError):
            connection.recv(1 << 16)
            if answer:
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve, args=(listening,), daemon=True)
        serving.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        serving.join()
    for each in kept:
        each.close()


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        pytest.param(b"", "TimeoutError", id="nothing"),
        pytest.param(http(b"500 Oh", REVIEW), "HTTP status 500", id="500"),
        pytest.param(http(b"200 OK", b"{}"), "ValidationError", id="no review"),
        pytest.param(http(b"200 OK", b"{"), "DecodeError", id="no JSON"),
        pytest.param(
            http(b"200 OK", REVIEW, b"Connection: close"), "would end", id="the last answer"
        ),
        pytest.param(http(b"200 OK", REVIEW)[:-5], "TimeoutError", id="half an answer"),
    ],
)
def test_it_is_noticed(
    answer: bytes, failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long where an answer comes: it must not be too late only because the machine is busy.
    monkeypatch.setattr(over_http, "DEADLINE_SECONDS", 0.5 if failure == "TimeoutError" else 60)
    pair = Pair(tmp_path)
    authority = tmp_path / "authority.crt"
    authority.write_bytes(pair.authority)
    with always(answer, pair) as port:
        tally = over_http.fuzzed_over_http(port, authority, "bad", 3)
    assert len(tally.failures) == 3
    assert all(failure in each for each in tally.failures), tally.failures[0][:300]
