"""How fast pods are created: by a loop of creates, and by the controller for one Job that no node suits.

Once in a few thousand pods the API server collects garbage, which takes it up to a second of processor time, as much as
hundreds of pods. So a turn takes thousands of pods, its collections are counted, and the turns alternate.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from benchmarks.manifests import like, pod
from pumice.api import keys
from pumice.api.kinds import CONFIG_MAP, POD
from pumice.cluster.client import Client, Object

__all__ = ["LIMIT_SECONDS", "Turn", "follow", "loop", "owner_in", "together", "turn"]

AT_ONCE = 64
"""Requests under way at once, in the bare loop and when Jobs are submitted."""

UNDER_WAY = 128
"""Last pods of a Job that are waited for; more than the requests that the controller has under way."""

SETTLE_SECONDS = 2.0
"""How long after the last pod the work of the API server still counts as caused by the pods: watches, the Job's status."""

LIMIT_SECONDS = 300.0
_SAMPLE = re.compile(
    r"^(process_cpu_seconds_total|go_gc_cycles_total_gc_cycles_total|go_memstats_alloc_bytes_total) (\S+)$",
    re.M,
)


@dataclass
class Turn:
    """Creation of pods, once.

    Attributes:
        by: What created them.
        rate: Pods a second.
        cpu: Processor milliseconds of the API server for a pod.
        allocated: KB of memory that the API server allocated for a pod; unlike times the same on a busy machine.
        collections: Garbage collections of the API server.
    """

    by: str
    rate: float = 0.0
    cpu: float = 0.0
    allocated: float = 0.0
    collections: int = 0


async def turn(by: str, client: Client, pods: int, seconds: Awaitable[float]) -> Turn:
    """Measure a turn.

    Args:
        by: What creates the pods.
        client: An administrator's session with the API server.
        pods: How many there are.
        seconds: Creates them, and returns how long that took.
    """
    before = await _samples(client)
    rate = pods / await seconds
    await asyncio.sleep(SETTLE_SECONDS)
    after = await _samples(client)
    cpu, collections, allocated = (now - then for now, then in zip(after, before, strict=True))
    return Turn(by, rate, cpu / pods * 1e3, allocated / pods / 1e3, int(collections))


async def _samples(client: Client) -> tuple[float, float, float]:
    """Processor seconds, garbage collections and allocated bytes of the API server until now."""
    found = dict(_SAMPLE.findall((await client.raw("GET", "/metrics")).decode()))
    return (
        float(found["process_cpu_seconds_total"]),
        float(found["go_gc_cycles_total_gc_cycles_total"]),
        float(found["go_memstats_alloc_bytes_total"]),
    )


async def loop(client: Client, namespace: str, number: int, owner: Object, model: Object) -> float:
    """Seconds that a loop of creates takes.

    Args:
        client: Session of the user who creates them.
        namespace: Where the pods are created.
        number: How many.
        owner: Their owner, if they have a model.
        model: A pod like which they are, but for their owner; if empty, they are plain ones.
    """
    pods = [like(model, each, owner) if model else pod(each) for each in range(number)]
    start = time.monotonic()
    await together(client.create(POD, each, namespace) for each in pods)
    return time.monotonic() - start


async def owner_in(client: Client, namespace: str) -> Object:
    """An object that can own the pods of a loop."""
    return await client.create(CONFIG_MAP, {"metadata": {"name": "owner"}}, namespace)


async def follow(client: Client, namespace: str, number: int) -> asyncio.Task[float]:
    """Measure how long the controller creates pods of the one Job that is about to be submitted.

    A watch shows the first pod and the last ones; pods are created in the order of their indexes. Counting pods by lists
    would take the API server's time, and would see the last pod late: a list waits until the API server's
    cache is up to date.

    Returns:
        Seconds from the first pod to the last.
    """
    last = range(max(1, number - UNDER_WAY), number)
    selector = f"{keys.TASK_INDEX} in ({','.join(map(str, (0, *last)))})"
    listed: str = (await client.list(POD, namespace))["metadata"]["resourceVersion"]

    async def added() -> AsyncGenerator[str, None]:
        """Indexes of new pods. The API server may end a watch at any time; it is renewed then."""
        version = listed
        while True:
            watch = client.watch(POD, namespace, resource_version=version, label_selector=selector)
            async with aclosing(watch):
                async for event, raw in watch:
                    meta = msgspec.json.decode(raw)["metadata"]
                    version = meta["resourceVersion"]
                    if event == "ADDED":
                        yield meta["labels"][keys.TASK_INDEX]

    async def seconds() -> float:
        start, remaining = 0.0, len(last)
        async with asyncio.timeout(LIMIT_SECONDS), aclosing(added()) as indexes:
            async for index in indexes:
                if index == "0":
                    start = time.monotonic()
                else:
                    remaining -= 1
                if start and not remaining:
                    break
        return time.monotonic() - start

    return asyncio.create_task(seconds())


async def together(requests: Iterable[Awaitable[object]]) -> None:
    """Carry requests out, many at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(request: Awaitable[object]) -> None:
        async with gate:
            await request

    await asyncio.gather(*map(one, requests))
