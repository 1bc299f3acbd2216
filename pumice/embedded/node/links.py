"""Network interfaces by rtnetlink: a bridge, and for each pod a pair of interfaces, one end on the bridge and one in the pod.

A socket works on the network namespace in which it was opened.
"""

import os
import socket
import struct

_NEW_LINK, _NEW_ADDRESS, _NEW_ROUTE, _ERROR = 16, 20, 24, 2
_REQUEST, _ACKNOWLEDGE, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x200, 0x400
_NAME, _MASTER, _LINK_INFO, _NAMESPACE = 3, 10, 18, 28
_KIND, _DATA, _PEER = 1, 2, 1
_UP = 1
_HEADER = struct.Struct("=IHHII")
_INTERFACE = struct.Struct("=BxHiII")


class Links:
    """The interfaces of the network namespace in which this is made."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._number = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def add_bridge(self, name: str) -> None:
        """Add a bridge."""
        info = _nested(_LINK_INFO, _attribute(_KIND, b"bridge"))
        self._ask(_NEW_LINK, _INTERFACE.pack(0, 0, 0, 0, 0) + _text(_NAME, name) + info)

    def add_pair(self, name: str, bridge: int, peer: str, namespace: int) -> None:
        """Add a pair of interfaces.

        Args:
            name: Name of the near end.
            bridge: Index of the bridge to which it is connected.
            peer: Name of the far end.
            namespace: Descriptor of the network namespace of the far end.
        """
        far = (
            _INTERFACE.pack(0, 0, 0, 0, 0)
            + _text(_NAME, peer)
            + _attribute(_NAMESPACE, struct.pack("=I", namespace))
        )
        data = _nested(_DATA, _attribute(_PEER, far))
        info = _nested(_LINK_INFO, _attribute(_KIND, b"veth") + data)
        master = _attribute(_MASTER, struct.pack("=I", bridge))
        body = _INTERFACE.pack(0, 0, 0, _UP, _UP) + _text(_NAME, name) + master + info
        self._ask(_NEW_LINK, body)

    def set_up(self, name: str) -> None:
        """Let an interface send and receive."""
        self._ask(_NEW_LINK, _INTERFACE.pack(0, 0, socket.if_nametoindex(name), _UP, _UP), flags=0)

    def add_address(self, name: str, address: str, prefix: int) -> None:
        """Give an interface an IPv4 address."""
        packed = socket.inet_aton(address)
        body = struct.pack("=BBBBI", socket.AF_INET, prefix, 0, 0, socket.if_nametoindex(name))
        self._ask(_NEW_ADDRESS, body + _attribute(1, packed) + _attribute(2, packed))

    def add_default_route(self, gateway: str) -> None:
        """Send what goes to no neighbour to a gateway."""
        main, boot, unicast = 254, 3, 1
        body = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, main, boot, 0, unicast, 0)
        route = body + _attribute(5, socket.inet_aton(gateway))
        self._ask(_NEW_ROUTE, route)

    def _ask(self, kind: int, body: bytes, flags: int = _CREATE | _EXCLUSIVE) -> None:
        self._number += 1
        header = _HEADER.pack(
            _HEADER.size + len(body), kind, _REQUEST | _ACKNOWLEDGE | flags, self._number, 0
        )
        self._socket.send(header + body)
        answer = self._socket.recv(65536)
        _, answered, *_ = _HEADER.unpack_from(answer)
        assert answered == _ERROR, answered  # an acknowledgement is an error of number 0
        (code,) = struct.unpack_from("=i", answer, _HEADER.size)
        if code:
            raise OSError(-code, os.strerror(-code), "rtnetlink")


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def _nested(kind: int, value: bytes) -> bytes:
    return _attribute(kind | 0x8000, value)


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")
