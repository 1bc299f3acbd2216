"""A cluster's past, simulated: what ran on the embedded cluster starts in the same order in virtual time."""

import asyncio
import json

from pumice.api.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
from pumice.cluster.client import Client, Object
from pumice.traces.cluster_past import read_cluster_past
from tests.integration.cli.servers import Server
from tests.kit.builders import job, task
from tests.kit.traces import ran
from tests.kit.waiting import until

JOBS = (("a", 3, "3s"), ("b", 3, "1s"), ("s1", 1, "1s"), ("s2", 1, "1s"))
"""Name, pods of 1 cpu, and how long they run, on 4 cpus: `s1` runs beside `a`, `s2` after `s1`, and `b` after `a`."""


async def past_of(url: str) -> bytes:
    """Run the jobs, and dump the cluster as kubectl does."""
    async with Client.connect(server=url) as client:
        for name, pods, duration in JOBS:
            worker = task("w", pods, cpu="1")
            worker["template"]["metadata"] = {"annotations": {"pumice.dev/run-duration": duration}}
            await client.create(JOB, job(name, [worker], minAvailable=pods), "default")

        async def are_over() -> bool:
            return all(map(is_over, (await client.list(JOB, "default"))["items"]))

        await until(are_over, "all jobs are over")
        items: list[Object] = []
        for kind in (JOB, POD_GROUP, POD, NODE, QUEUE):
            found = (await client.list(kind, None))["items"]
            items += [kind.type_meta | each for each in found]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def is_over(raw: Object) -> bool:
    phase: str = ((raw.get("status") or {}).get("state") or {}).get("phase", "")
    return phase == "Completed"


def test_a_past_that_is_simulated_has_the_same_starts_in_the_same_order() -> None:
    with Server("4", components=True) as server:
        trace = read_cluster_past(asyncio.run(past_of(server.url)))
    past = ran(trace.jobs, trace.objects)
    assert [record.outcome for record in past.jobs] == ["Completed"] * len(JOBS)

    def order(starts: list[float | None]) -> list[str]:
        known = [
            (start, each.name)
            for start, each in zip(starts, trace.jobs, strict=True)
            if start is not None
        ]
        return [name for _, name in sorted(known)]

    assert order([each.scheduled for each in trace.jobs]) == ["a", "s1", "s2", "b"]
    assert order([each.start for each in past.jobs]) == ["a", "s1", "s2", "b"]
