"""The `pumice` of shells: asks the server for a child with its arguments, folder, environment and streams, and ends as that ends.

Run as `python -IS command.py SOCKET PROGRAM ARGUMENT…`; what it imports is there when Python has started.
"""

from __future__ import annotations

import _socket
import os
import signal
import sys

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def asked(server: str, arguments: list[str], streams: tuple[int, int, int]) -> _socket.socket:
    """A connection with an order of this process."""
    connection = _socket.socket(_socket.AF_UNIX)
    connection.connect(server)
    words = [os.fsencode(each) for each in arguments]
    variables = [b"=".join(each) for each in os.environb.items()]
    order = b"\0".join((os.fsencode(os.getcwd()), b"%d" % len(words), *words, *variables))  # noqa: PTH109 pathlib takes long
    rights = b"".join(each.to_bytes(4, sys.byteorder) for each in streams)
    length = len(order).to_bytes(4, sys.byteorder)
    connection.sendmsg([length], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    connection.sendall(order)
    return connection


def main(server: str, *arguments: str) -> None:
    connection = asked(server, [*arguments], (0, 1, 2))
    pid = int.from_bytes(connection.recv(4), sys.byteorder)
    for each in FORWARDED:
        signal.signal(each, lambda number, _: os.kill(pid, number))
    code = os.waitstatus_to_exitcode(int.from_bytes(connection.recv(4), sys.byteorder))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
