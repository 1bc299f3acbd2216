"""A good tenant's gangs, first alone and then beside a hostile tenant, on a release whose components run as processes."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pumice.api.kinds import LEASE, POD
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from tests.kit.waiting import NotReadyError, followed
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.start import started
from tests.support.edit_users import Gangs, edit_user, pods_of
from tests.support.hostile import Hostile, Sizes
from tests.support.installation import COMPONENTS, NAMESPACE, Installation, installed
from tests.support.vitals import Leases, Vitals, watched_vitals

Raw = dict[str, Any]

GOOD, EVIL = "good", "hostile"

NODES = 20
"""Nodes that have room for all pods of both tenants."""

AMOUNTS = ("64", "256Gi", "500")
"""Processors, memory and pods of a node."""

LATE = 60.0
"""Seconds after which a gang counts as not bound."""

GOES_ON = 5.0
"""Seconds for which gangs are submitted when all pods of the hostile tenant are there: then they are to be scheduled."""


@dataclass
class Beside:
    """What became of it.

    Attributes:
        alone: Seconds from the submission of a gang until it was bound, for each, without the hostile tenant.
        beside: The same beside the hostile tenant; `LATE` for one that was not bound by then.
        seconds: How long it took from the first hostile submission until all pods that follow from them were created.
        created: Pods of the hostile tenant that were created.
        wanted: How many were to be created.
        answers: What the API server answered the hostile tenant, by attack.
        vitals: What each component showed beside the hostile tenant.
        holders: Who held each Lease then.
        renewals: The longest time in seconds between two renewals of each Lease then.
    """

    alone: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    seconds: float = 0.0
    created: int = 0
    wanted: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    vitals: dict[str, Vitals] = field(default_factory=dict)
    holders: dict[str, list[str]] = field(default_factory=dict)
    renewals: dict[str, float] = field(default_factory=dict)

    def growth(self, component: str) -> float:
        """The most memory that a component had beside the hostile tenant, by what it had before."""
        vitals = self.vitals[component]
        return vitals.peak / vitals.before


def measured(folder: Path, sizes: Sizes, *, alone: int, limit: float) -> Beside:
    """Submit gangs alone, then beside the hostile tenant, until it has had all of its pods for a while.

    The control plane is of this alone and ends with it: to delete thousands of pods would take as long as to make them.

    Args:
        folder: For the logs of the components.
        sizes: What the hostile tenant submits.
        alone: How many gangs are submitted alone; as many are submitted beside at least.
        limit: Seconds after which the hostile tenant is given up.
    """
    with started(Builder().ensure()) as plane:
        for number in range(NODES):
            plane.add_node(f"node-{number}", *AMOUNTS)
        with installed(plane, folder) as installation:
            return asyncio.run(_measured(plane, installation, sizes, alone, limit))


async def _measured(
    plane: ControlPlane, installation: Installation, sizes: Sizes, alone: int, limit: float
) -> Beside:
    found = Beside(wanted=sizes.created)
    async with AsyncExitStack() as stack:
        for namespace in (GOOD, EVIL):
            await asyncio.to_thread(plane.add_namespace, namespace)
        good = await stack.enter_async_context(edit_user(plane, GOOD))
        evil = await stack.enter_async_context(edit_user(plane, EVIL))
        admin = await stack.enter_async_context(Client.connect(plane.kubeconfig))
        watched = pods_of(good)
        leases: WatchCache[Raw] = WatchCache(admin, LEASE, dict, namespace=NAMESPACE)
        await stack.enter_async_context(followed(watched, leases))
        gangs = Gangs(good, watched)
        await gangs.one(LATE)  # what is made once
        found.alone = [await gangs.one(LATE) for _ in range(alone)]
        renewals = Leases(leases)
        attacker = Hostile(evil.client, evil.namespace)
        with ExitStack() as probed:
            for name in COMPONENTS:
                url = installation.url(name, "/healthz")
                process = installation.processes[name]
                found.vitals[name] = probed.enter_context(watched_vitals(process, url))
            await _beside(attacker, sizes, gangs, admin, found, limit)
        found.answers = dict(sorted(attacker.answers.items()))
        found.holders, found.renewals = renewals.holders, renewals.longest
    return found


async def _beside(
    attacker: Hostile, sizes: Sizes, gangs: Gangs, admin: Client, found: Beside, limit: float
) -> None:
    """Attack, and submit gangs meanwhile."""
    attack = asyncio.create_task(attacker.attack(sizes))
    arriving = asyncio.create_task(_arrived(admin, found, limit))
    try:
        while not arriving.done() or len(found.beside) < len(found.alone):
            found.beside.append(await gangs.one(LATE))
    except NotReadyError:
        found.beside.append(LATE)
    await arriving
    await attack


async def _arrived(admin: Client, found: Beside, limit: float) -> None:
    """Wait until all pods of the hostile tenant have been there for a while, or until it is given up."""
    start = time.monotonic()
    while found.created < found.wanted and time.monotonic() < start + limit:
        await asyncio.sleep(0.5)
        answer = json.loads(await admin.raw("GET", POD.collection(EVIL), query={"limit": "1"}))
        rest = answer["metadata"].get("remainingItemCount", 0)
        found.created = len(answer["items"]) + rest
    found.seconds = time.monotonic() - start
    await asyncio.sleep(GOES_ON)
