"""Parts that Pumice's leaders depend on, as further victims: the API server, its etcd, and the webhook.

Each is killed and started again on the same port and the same data, while the controllers and schedulers go on.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.kill.components import Component, exceptions
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process
from tests.support.installation import Installation

PARTS = ("webhook", "etcd", "kube-apiserver")
"""The victims, in the order in which they are killed."""

RESTART_SECONDS = 60.0
"""How long a part may take to be ready again."""


class Gate:
    """Holds the load's own writes back while a part restarts.

    So the test knows which of them the API server carried out. The writes of controllers and schedulers are not held
    back: whether a write at that moment was carried out is what these must find out.
    """

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._under_way = 0

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """Wait until the gate is open; it does not close within the block."""
        await self._open.wait()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Close the gate for as long as the block lasts."""
        self._open.clear()
        try:
            await until(lambda: not self._under_way, "writes of the load to end")
            yield
        finally:
            self._open.set()


@dataclass(frozen=True)
class _Part:
    process: Process
    ready: Callable[[], bool]


class Parts:
    """The parts, of which one after the other is killed.

    Attributes:
        killed: How often each was killed.
        away: The longest time in seconds from the death of each until it was ready again.
        leaderless: The longest time in seconds from then until all components had renewed their Leases.
    """

    def __init__(self, plane: ControlPlane, installation: Installation, gate: Gate) -> None:
        """Describe them.

        Args:
            plane: The control plane.
            installation: The webhook.
            gate: Is closed while a part restarts.
        """
        self.killed: Counter[str] = Counter()
        self.away: dict[str, float] = {}
        self.leaderless: dict[str, float] = {}
        self._plane = plane
        self._gate = gate
        self._parts = {name: _Part(plane.part(name), plane.ready) for name in PARTS[1:]}
        webhook = installation.processes["webhook"]
        self._parts["webhook"] = _Part(webhook, lambda: installation.ready("webhook"))

    async def kill(self, components: Sequence[Component]) -> str:
        """Kill the next part, start it again, and wait until all components lead.

        Returns:
            Its name.
        """
        name = PARTS[self.killed.total() % len(PARTS)]
        part = self._parts[name]
        async with self._gate.closed():
            start = time.monotonic()
            part.process.restart()  # in this thread, with which it ends
            await until(
                lambda: asyncio.to_thread(part.ready), f"{name} to be ready", RESTART_SECONDS
            )
            ready = time.monotonic()
            self._plane.close()  # connections to the one that is gone
        self.killed[name] += 1
        self.away[name] = max(self.away.get(name, 0.0), round(ready - start, 2))
        renewed = {each.name: each.renewals for each in components}
        for each in components:
            await until(
                lambda: each.renewals > renewed[each.name],  # noqa: B023
                f"a {each.name} to lead after the restart of {name}",
            )
        since = round(time.monotonic() - ready, 2)
        self.leaderless[name] = max(self.leaderless.get(name, 0.0), since)
        return name

    def faults(self) -> list[str]:
        """Parts that ended by themselves, and exceptions of the webhook."""
        found = [ending for each in self._parts.values() if (ending := each.process.ending)]
        return [*found, *exceptions(self._parts["webhook"].process)]
