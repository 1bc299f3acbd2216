"""Host ports of pods, many at once.

Ports are kept as bits of numbers, each of which has 256 neighbouring ports of one protocol: a pod with thousands of ports is counted
and compared in a few dozen steps. Most pods have few; these find each other by the single port, and those with many by the block.
Two pods need the same port if the protocols and ports are equal and the addresses, too; the address `0.0.0.0` is equal to all.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

HostPort = tuple[str, str, int]
"""Protocol, address (`0.0.0.0` for all) and port."""

PortBlock = tuple[str, int, str]
"""Protocol, port, and the address at which it is used, `*` for any but `0.0.0.0`. Of a pod with many ports `many/TCP` and the number
of the block of ports stand in their places."""

PortUsers = Mapping[int, int]
"""How many pods use which ports of a block, the ports as bits of a number."""

_ANY_ADDRESS, _ANY_OTHER = "0.0.0.0", "*"
_BITS = 8
_MANY = 32
"""Ports of a pod from which on it is only found by blocks."""


class PortUse(NamedTuple):
    """The ports of a pod, by block: those that it takes, and those that no other pod may have taken."""

    taken: tuple[tuple[PortBlock, int], ...]
    wanted: Mapping[PortBlock, int]


def port_use(ports: Iterable[HostPort]) -> PortUse:
    """The ports of a pod in blocks."""
    listed = list(ports)
    has_many = len(listed) > _MANY
    taken: dict[PortBlock, int] = {}
    wanted: dict[PortBlock, int] = {}
    for protocol, address, port in listed:
        is_any = address == _ANY_ADDRESS
        one = (protocol, port, 1)
        block = (f"many/{protocol}", port >> _BITS, 1 << (port & ((1 << _BITS) - 1)))
        for place in (address,) if is_any else (address, _ANY_OTHER):
            name, number, bits = block if has_many else one
            _add(taken, (name, number, place), bits)
        for place in (_ANY_ADDRESS, _ANY_OTHER if is_any else address):
            for name, number, bits in (one, block):
                _add(wanted, (name, number, place), bits)
    return PortUse(tuple(sorted(taken.items())), wanted)


def _add(blocks: dict[PortBlock, int], block: PortBlock, ports: int) -> None:
    blocks[block] = blocks.get(block, 0) | ports


def is_one_port(block: PortBlock) -> bool:
    """Whether a block has a single port, so that all pods that use the block use that port."""
    return not block[0].startswith("many/")


def are_taken(users: PortUsers, leaving: PortUsers | None, wanted: int) -> bool:
    """Whether pods on a node, other than those that are leaving it, use one of the wanted ports of a block."""
    for ports, count in users.items():
        if ports & wanted and (not leaving or count > leaving.get(ports, 0)):
            return True
    return False
