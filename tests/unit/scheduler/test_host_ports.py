"""Host ports in blocks: two pods conflict exactly when they need the same port of an address."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.model.host_ports import HostPort, are_taken, port_use

PORTS = st.lists(
    st.tuples(
        st.sampled_from(["TCP", "UDP"]),
        st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"]),
        st.sampled_from([1, 2, 255, 256, 257, 65535]),
    ),
    max_size=4,
)


def _conflicts(one: HostPort, other: HostPort) -> bool:
    (protocol, address, port), (theirs, there, taken) = one, other
    alike = address == there or "0.0.0.0" in (address, there)
    return (protocol, port) == (theirs, taken) and alike


MANY = [("TCP", "0.0.0.0", number) for number in range(1000, 1040)]
"""So many that a pod is found by blocks alone."""


@given(
    st.lists(st.tuples(PORTS | PORTS.map(MANY.__add__), st.booleans()), max_size=3),
    PORTS | PORTS.map(MANY.__add__),
    st.booleans(),
)
def test_ports_are_taken_as_pod_by_pod(
    pods: list[tuple[list[HostPort], bool]], wanted: list[HostPort], later: bool
) -> None:
    users: dict[object, dict[int, int]] = {}
    leaving: dict[object, dict[int, int]] = {}
    for ports, leaves in pods:
        for block, bits in port_use(ports).taken:
            for table in (users, leaving) if leaves else (users,):
                known = table.setdefault(block, {})
                known[bits] = known.get(bits, 0) + 1
    found = any(
        are_taken(users[block], leaving.get(block) if later else None, bits)
        for block, bits in port_use(wanted).wanted.items()
        if block in users
    )
    staying = [ports for ports, leaves in pods if not (later and leaves)]
    assert found == any(
        _conflicts(one, other) for ports in staying for other in ports for one in wanted
    )


def test_thousands_of_ports_are_a_few_dozen_blocks() -> None:
    use = port_use([("TCP", "0.0.0.0", 20000 + number) for number in range(15000)])
    assert len(use.taken) == 59
    assert sum(bits.bit_count() for _, bits in use.taken) == 15000
