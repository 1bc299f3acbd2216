"""A load generator as a separate process: sends reviews over TLS, reads whole answers, and measures the time.

It reads orders from its standard input, one JSON object a line, and answers each with one. An order has
`port`, `path`, `body` (a file) and `fresh` (whether each review has a different number where the body has
the mark). It also has either `count`, to send one review after the other on each connection, or `rate` and
`seconds`, to send at a fixed rate. An answer has the seconds that the order took. With a rate it also has the
latencies at `SHARES` of all reviews, from the time at which each was due: the wait for an earlier review
counts.
"""

import json
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count as count_from
from pathlib import Path
from typing import Any

from benchmarks.subjects import MARK

SHARES = (0.5, 0.99, 0.999)
_NUMBERS = 1_000_000
"""Size of the range of numbers of each connection."""


def numbered(text: bytes, number: int) -> bytes:
    """The text of a review or request, with a number in the place of the mark."""
    return text.replace(MARK.encode(), b"%08d" % number)


def numbers(connection: int) -> Iterator[int]:
    """Numbers that no other connection uses."""
    return count_from(connection * _NUMBERS)


class Connection:
    """A connection that is kept open; it sends the same review each time, or reviews with different numbers."""

    def __init__(
        self, port: int, trusting: ssl.SSLContext, path: str, body: bytes, numbers: Iterator[int]
    ) -> None:
        head = (
            f"POST {path}?timeout=5s HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Accept-Encoding: gzip\r\n\r\n"
        )
        self._request = head.encode() + body
        self._numbers = numbers
        plain = socket.create_connection(("127.0.0.1", port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = trusting.wrap_socket(plain, server_hostname="127.0.0.1")

    def ask(self) -> bytes:
        """Send the review and read its answer."""
        number = next(self._numbers, None)
        request = self._request if number is None else numbered(self._request, number)
        self._socket.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._more()
        head, _, rest = received.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(head.decode())
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(rest) < length:
            rest += self._more()
        return rest

    def _more(self) -> bytes:
        found = self._socket.recv(65536)
        if not found:
            raise ConnectionError("the server has closed the connection")
        return found

    def close(self) -> None:
        """End it."""
        self._socket.close()


def steadily(connections: list[Connection], count: int) -> dict[str, Any]:
    """Send one review after the other on each connection."""
    each = count // len(connections)

    def work(connection: Connection) -> None:
        for _ in range(each):
            connection.ask()

    threads = [threading.Thread(target=work, args=(one,)) for one in connections]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"seconds": time.perf_counter() - start, "count": each * len(connections)}


def at_rate(connections: list[Connection], rate: float, seconds: float) -> dict[str, Any]:
    """Send reviews at a fixed rate, on the connections in turn."""
    found = []
    start = time.perf_counter()
    for number in range(int(seconds * rate)):
        due = start + number / rate
        while (now := time.perf_counter()) < due:
            time.sleep(max(0.0, due - now - 0.0002))
        connections[number % len(connections)].ask()
        found.append(time.perf_counter() - due)
    found.sort()
    latencies = [found[int(len(found) * share)] for share in SHARES]
    return {"seconds": time.perf_counter() - start, "count": len(found), "latencies": latencies}


def main() -> None:
    """Execute the orders of standard input until it ends."""
    authority, count, processors = sys.argv[1:]
    if processors:
        os.sched_setaffinity(0, {int(each) for each in processors.split(",")})
    trusting = ssl.create_default_context(cafile=authority)
    open_ones: dict[tuple[int, str], list[Connection]] = {}
    for line in sys.stdin:
        order = json.loads(line)
        # The same file may be used with numbers and without.
        key = order["port"], f"{order['body']} {order['fresh']}"
        if key not in open_ones:
            body = Path(order["body"]).read_bytes()
            open_ones[key] = [
                Connection(
                    order["port"],
                    trusting,
                    order["path"],
                    body,
                    numbers(each) if order["fresh"] else iter(()),
                )
                for each in range(int(count))
            ]
        connections = open_ones[key]
        if "rate" in order:
            answer = at_rate(connections, order["rate"], order["seconds"])
        else:
            answer = steadily(connections, order["count"])
        print(json.dumps(answer), flush=True)
    for connections in open_ones.values():
        for each in connections:
            each.close()


if __name__ == "__main__":
    main()
