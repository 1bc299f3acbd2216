"""Mutated reviews over connections that are kept, to a webhook that is another process."""

import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path

from tests.fuzz.corpus import corpus
from tests.fuzz.judging import Mutated, Tally, checked, mutated
from tests.integration.webhook.raw_http import post

CONNECTIONS = 12
"""Kept by each process that asks, each with one review at a time; kube-apiserver keeps 25."""

DEADLINE_SECONDS = 10
"""How long the API server waits."""

CONNECT_SECONDS = 60
"""How long it may take until there is a connection."""


class _Link:
    """A connection, and the review that waits for its answer on it."""

    def __init__(self, port: int, trusting: ssl.SSLContext) -> None:
        plain = socket.create_connection(("127.0.0.1", port), timeout=CONNECT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = trusting.wrap_socket(plain, server_hostname="localhost")
        self._socket.settimeout(DEADLINE_SECONDS)
        self.waiting: Mutated | None = None
        self.since = 0.0

    def ask(self, review: Mutated) -> None:
        """Send a review."""
        self.waiting = review
        self.since = time.perf_counter()
        self._socket.sendall(post(f"{review.path}?timeout={DEADLINE_SECONDS}s", review.body))

    def answer(self) -> tuple[int, bytes]:
        """Status and body of the answer.

        Raises:
            TimeoutError: It does not come.
            ConnectionError: The connection has ended, or is about to.
        """
        received = self._more()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        head, body = received[:end].lower(), received[end + 4 :]
        version, status, _ = head.split(b" ", 2)
        assert version == b"http/1.1", head
        if b"\r\nconnection:" in head:
            raise ConnectionError(f"the connection would end: {head!r}")
        length = int(head.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += self._more()
        assert len(body) == length, f"{len(body) - length} bytes more than were announced"
        self.waiting = None
        return int(status), body

    def _more(self) -> bytes:
        if not (part := self._socket.recv(1 << 16)):
            raise ConnectionError("the connection ended without an answer")
        return part

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._socket.close()


def fuzzed_over_http(port: int, certificate: Path, seed: str, count: int) -> Tally:
    """Have mutated reviews answered by a server, and look at each answer.

    While the server judges the reviews of the other connections, the next one is made.

    Args:
        port: Where it listens.
        certificate: PEM of the authority to trust.
        seed: The same seed makes the same reviews.
        count: How many.
    """
    trusting = ssl.create_default_context(cafile=str(certificate))
    corpus()  # for a server does not wait long on a connection on which nothing is asked
    links = [_Link(port, trusting) for _ in range(CONNECTIONS)]
    tally = Tally()

    def take(place: int) -> None:
        link = links[place]
        if (review := link.waiting) is None:
            return
        try:
            status, body = link.answer()
            assert 200 <= status < 500, f"HTTP status {status}"
            tally.slowest = max(tally.slowest, (time.perf_counter() - link.since, review.name))
            tally.outcomes[checked(review.body, body)] += 1
        except Exception as error:
            tally.failures.append(review.failed(error))
            link.close()
            links[place] = _Link(port, trusting)

    for number, review in enumerate(mutated(seed, count)):
        take(number % CONNECTIONS)
        try:
            links[number % CONNECTIONS].ask(review)
        except OSError as error:
            tally.failures.append(review.failed(error))
            links[number % CONNECTIONS] = _Link(port, trusting)
    for place in range(CONNECTIONS):
        take(place)
        links[place].close()
    return tally
