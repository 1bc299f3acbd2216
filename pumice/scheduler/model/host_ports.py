"""Host ports of pods, many at once.

Ports are kept as bits of numbers, each of which has 256 neighbouring ports of one protocol: a pod with thousands of ports is counted
and compared in a few dozen steps. Two pods need the same port if the protocols and ports are equal and the addresses, too; the
address `0.0.0.0` is equal to all.
"""

from collections.abc import Iterable, Mapping

__all__ = ["HostPort", "PortBlock", "PortUse", "PortUsers", "are_taken", "port_use"]

HostPort = tuple[str, str, int]
"""Protocol, address (`0.0.0.0` for all) and port."""

PortBlock = tuple[str, int, str]
"""Protocol, number of the block of ports, and the address at which they are used; `*` for whichever address."""

PortUsers = Mapping[int, int]
"""How many pods use which ports of a block, the ports as bits of a number."""

_ANY_ADDRESS, _WHICHEVER = "0.0.0.0", "*"
_BITS = 8


class PortUse:
    """The ports of a pod.

    Attributes:
        taken: Ports that it takes, by block.
        wanted: Ports that no other pod may have taken, by block.
    """

    __slots__ = ("taken", "wanted")

    def __init__(
        self, taken: tuple[tuple[PortBlock, int], ...], wanted: tuple[tuple[PortBlock, int], ...]
    ) -> None:
        self.taken = taken
        self.wanted = wanted


def port_use(ports: Iterable[HostPort]) -> PortUse:
    """The ports of a pod in blocks."""
    taken: dict[PortBlock, int] = {}
    wanted: dict[PortBlock, int] = {}
    for protocol, address, port in ports:
        block, bit = port >> _BITS, 1 << (port & ((1 << _BITS) - 1))
        is_any = address == _ANY_ADDRESS
        for place in (address, _WHICHEVER):
            key = (protocol, block, place)
            taken[key] = taken.get(key, 0) | bit
        for place in (_WHICHEVER,) if is_any else (_ANY_ADDRESS, address):
            key = (protocol, block, place)
            wanted[key] = wanted.get(key, 0) | bit
    return PortUse(tuple(sorted(taken.items())), tuple(sorted(wanted.items())))


def are_taken(users: PortUsers, leaving: PortUsers | None, wanted: int) -> bool:
    """Whether pods on a node, other than those that are leaving it, use one of the ports of a block.

    Args:
        users: Pods on the node that use ports of the block.
        leaving: Those of them that are leaving.
        wanted: The ports.
    """
    if not leaving:
        return any(ports & wanted for ports in users)
    return any(ports & wanted and count > leaving.get(ports, 0) for ports, count in users.items())
